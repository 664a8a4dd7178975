"""What the benchmarks' command lines have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Sequence
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


def add_only(parser: argparse.ArgumentParser, contenders: Collection[str]) -> None:
    """``--only``: some of the contenders."""
    parser.add_argument(
        "--only", type=names_of(contenders), default=list(contenders), help=f"of {','.join(contenders)}"
    )


def add_runs(parser: argparse.ArgumentParser) -> None:
    """``--workers`` of every contender and ``--repeats`` of every run."""
    parser.add_argument("--workers", type=positive, default=2)
    parser.add_argument("--repeats", type=positive, default=3)


def add_cache(parser: argparse.ArgumentParser) -> None:
    """``--cache``: where pictures, files and environments are kept from run to run."""
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "shardforge-bench")


def add_work(parser: argparse.ArgumentParser) -> None:
    """``--work``: where what is built may lie for a while."""
    parser.add_argument("--work", type=Path, help="folder for what is built (default: the system's temporary one)")


def add_python(parser: argparse.ArgumentParser, peers: Collection[str]) -> None:
    """``--python PEER=PATH``, again and again; :func:`parsed` makes a mapping of them."""
    parser.add_argument(
        "--python",
        type=python_for(peers),
        action="append",
        default=[],
        metavar="PEER=PATH",
        help="an interpreter that has the peer already, instead of an environment of its own",
    )


def add_json(parser: argparse.ArgumentParser, after: str) -> None:
    """``--json``: a file of all measurements, written anew after every ``after``."""
    parser.add_argument("--json", type=Path, help=f"write all measurements to this file, after every {after}")


def parsed(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; ``python`` is a mapping from peers to interpreters."""
    options = parser.parse_args(arguments)
    options.python = dict(options.python)
    return options
