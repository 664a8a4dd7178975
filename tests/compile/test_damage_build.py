"""Where the line between kept and failed lies: strict, as judged, or lax."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import shardforge
from shardforge.errors import UsageError
from shardforge.shards.manifest import Manifest
from shardforge.shards.verify import verify
from shardforge.stream.dataset import ShardDataset
from tests.compile.test_build import rows
from tests.pictures import run

FINE = "rgb.jpg"
SUSPECT = ("made_missing_eoi.jpg", "made_rst_misnumbered.jpg", "truncated_end_chunk.png")
CORRUPT = "made_corrupt_scan.jpg"
LOST = ("made_truncated_baseline_60pct.jpg", "made_truncated_progressive_60pct.jpg", "made_png_bad_crc.png")


@pytest.fixture(scope="module")
def raw(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("raw")
    shutil.copyfile(corpus / "images" / "color" / FINE, root / FINE)
    for name in (*SUSPECT, CORRUPT, *LOST):
        shutil.copyfile(corpus / "images" / "broken" / name, root / name)
    return root


@pytest.mark.parametrize(
    ("damage", "flag", "failed"),
    [
        ("strict", "--strict", {**dict.fromkeys(SUSPECT, "suspect"), CORRUPT: "corrupt"}),
        ("judge", None, {CORRUPT: "corrupt"}),
        ("keep", "--keep-suspect", {}),
    ],
)
def test_recipe_and_flags_decide_what_fails(
    raw: Path, tmp_path: Path, damage: str, flag: str | None, failed: dict[str, str]
) -> None:
    options = {"size": 64, "max_errors": "100%", "quiet": True}
    shardforge.build(raw, tmp_path / "out", damage=damage, **options)  # type: ignore[arg-type]
    found = {row["source"]: row for row in rows(tmp_path / "out")}
    lost = {LOST[0]: "truncated", LOST[1]: "truncated", LOST[2]: "corrupt"}
    assert {name: row["reason"] for name, row in found.items() if row["status"] == "failed"} == {**lost, **failed}
    for name in (*SUSPECT, CORRUPT):
        if name not in failed or failed[name] == "suspect":
            assert "suspect" in found[name]["flags"]
    if damage == "keep":
        assert "corrupt_data" in found[CORRUPT]["flags"]
    assert found[FINE]["status"] == "success"
    assert verify(tmp_path / "out").damage == ()
    assert len(list(ShardDataset(tmp_path / "out"))) == 8 - len(lost) - len(failed)
    assert Manifest.read(tmp_path / "out").recipe["damage"] == damage
    flags = [] if flag is None else [flag]
    result = run("build", raw, tmp_path / "out", "--size", 64, *flags, "--max-errors", "100%")
    assert "up to date" in result.stdout


def test_the_two_flags_exclude_each_other_and_other_words_are_refused(raw: Path, tmp_path: Path) -> None:
    result = run("build", raw, tmp_path / "out", "--strict", "--keep-suspect")
    assert result.returncode == 2
    assert "exclude each other" in result.stderr
    with pytest.raises(UsageError, match="damage"):
        shardforge.build(raw, tmp_path / "out", damage="lenient", quiet=True)


def test_a_flag_overrides_the_recipe(raw: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("damage: strict\nsize: 64\n")
    result = run("build", raw, tmp_path / "out", "--recipe", recipe, "--keep-suspect", "--max-errors", "100%")
    assert result.returncode == 1
    assert Manifest.read(tmp_path / "out").recipe["damage"] == "keep"
