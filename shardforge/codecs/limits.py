"""Budgets checked from the header, before anything is decoded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one file may cost.

    Attributes:
        pixels: width × height of one frame.
        frames: frames or pages in one file.
        source_bytes: size of the file itself.
    """

    pixels: int = 200_000_000
    frames: int = 10_000
    source_bytes: int = 2**30
