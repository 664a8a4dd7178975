"""The named windows."""

from __future__ import annotations

import pytest

from shardforge.dicom.presets import COMBINATIONS, PRESETS

# OHIF's and radiopaedia's numbers, and those of the RSNA challenges.
KNOWN = {
    "lung": (-600, 1500),
    "mediastinum": (50, 350),
    "soft-tissue": (40, 400),
    "abdomen": (60, 400),
    "liver": (90, 150),
    "liver-narrow": (30, 150),
    "bone": (480, 2500),
    "temporal-bone": (600, 2800),
    "brain": (40, 80),
    "subdural": (80, 200),
    "stroke": (40, 40),
    "posterior-fossa": (80, 250),
    "spine-soft": (50, 250),
    "spine-bone": (400, 1800),
    "angio": (300, 600),
    "pelvis": (40, 400),
    "breast": (-50, 400),
    "full": (500, 3000),
}


def test_presets_have_the_numbers_in_use() -> None:
    assert {name: (preset.center, preset.width) for name, preset in PRESETS.items()} == KNOWN


@pytest.mark.parametrize(
    ("name", "windows"),
    [
        ("brain-subdural-bone", ((40, 80), (80, 200), (600, 2800))),
        ("brain-subdural-soft", ((40, 80), (80, 200), (40, 380))),
        ("pe", ((-600, 1500), (100, 700), (40, 400))),
    ],
)
def test_combinations_have_the_numbers_in_use(name: str, windows: tuple[tuple[float, float], ...]) -> None:
    assert COMBINATIONS[name].windows == windows


def test_full_goes_from_air_to_dense_bone() -> None:
    full = PRESETS["full"]
    assert (full.center - full.width / 2, full.center + full.width / 2) == (-1000, 2000)


def test_no_variant_repeats_the_preset_and_no_name_has_two_meanings() -> None:
    assert not PRESETS.keys() & COMBINATIONS.keys()
    for preset in PRESETS.values():
        assert (preset.center, preset.width) not in preset.variants
        assert all(width > 0 for _, width in (*preset.variants, (preset.center, preset.width)))
