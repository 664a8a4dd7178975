"""Types of the benchmarks' command lines."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from pathlib import Path


def positive(text: str) -> int:
    """A whole number above 0."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def names_of(known: Collection[str]) -> Callable[[str], list[str]]:
    """Some of the ``known`` names, with commas between."""

    def names(text: str) -> list[str]:
        given = text.split(",")
        if unknown := set(given) - set(known):
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: none of {', '.join(known)}")
        return given

    return names


def python_for(peers: Collection[str]) -> Callable[[str], tuple[str, Path]]:
    """PEER=PATH, an interpreter for one of the ``peers``."""

    def python(text: str) -> tuple[str, Path]:
        name, _, path = text.partition("=")
        if name not in peers or not path:
            raise argparse.ArgumentTypeError(f"{text!r}; write PEER=PATH with a peer of {', '.join(peers)}")
        return name, Path(path)

    return python
