"""The README's picture of windows is what the script draws, by the presets' own numbers."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from scripts import make_window_pictures as script
from shardforge.dicom.presets import COMBINATIONS, PRESETS

ROWS = ((script.chest, script.CHEST), (script.head, script.HEAD))


def _pixels(path: Path) -> np.ndarray:
    return cv2.cvtColor(cv2.imread(str(path), cv2.IMREAD_UNCHANGED), cv2.COLOR_BGR2RGB)


def _tiles(picture: np.ndarray) -> dict[tuple[int, str], np.ndarray]:
    found = {}
    for row, (_, names) in enumerate(ROWS):
        for column, name in enumerate(names):
            top, left = script.place_of(row, column)
            found[row, name] = picture[top : top + script.TILE, left : left + script.TILE]
    return found


def test_the_script_draws_the_committed_picture_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(sys, "argv", ["make_window_pictures.py", str(tmp_path / "new.png")])
    script.main()
    drawn, committed = _pixels(tmp_path / "new.png"), _pixels(script.TARGET)
    assert drawn.shape == committed.shape
    # Letters are OpenCV's, and may change with its version; the slices may not.
    for place, pixels in _tiles(committed).items():
        assert np.array_equal(_tiles(drawn)[place], pixels), place


def test_every_tile_is_its_window_by_the_formula_of_the_standard() -> None:
    """PS3.3 C.11.2.1.2.1, LINEAR, rounded half up."""
    tiles = _tiles(_pixels(script.TARGET))
    for row, (tissues, names) in enumerate(ROWS):
        hu = script.draw(tissues()).astype(np.float64)[:, :, 0]
        for name in names:
            preset = PRESETS.get(name)
            windows = COMBINATIONS[name].windows if preset is None else ((preset.center, preset.width),)
            shown = [np.clip((hu - (c - 0.5)) / (w - 1) + 0.5, 0, 1) for c, w in windows]
            expected = np.stack([np.floor(255 * y + 0.5) for y in shown], axis=2)
            assert np.array_equal(tiles[row, name], np.broadcast_to(expected, tiles[row, name].shape)), name


def test_the_picture_is_small_and_holds_nothing_but_pixels() -> None:
    content = script.TARGET.read_bytes()
    kinds, at = [], 8
    while at < len(content):
        length = int.from_bytes(content[at : at + 4], "big")
        kinds.append(content[at + 4 : at + 8])
        at += 12 + length
    assert set(kinds) == {b"IHDR", b"IDAT", b"IEND"}
    assert len(content) <= 150_000


def test_what_a_window_is_for_can_be_told_apart_in_it() -> None:
    """The subdural crescent melts into the bone in the brain window, and stands out in the subdural one."""
    slice_ = script.draw(script.head())
    blood = slice_[:, :, 0] == 72
    assert blood.sum() > 300
    bone = slice_[:, :, 0] == 1500
    levels = {name: script.tile(slice_, name) for name in ("brain", "subdural")}
    gap = {name: int(shown[bone].min()) - int(shown[blood].max()) for name, shown in levels.items()}
    assert gap["brain"] < 32 < 64 < gap["subdural"]
