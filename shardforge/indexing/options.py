"""Options of ``shardforge index`` as they are typed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shardforge.errors import StorageError, UsageError


def split_patterns(given: Sequence[str]) -> dict[str, str] | None:
    """``NAME=GLOB`` texts → split → pattern; None for none.

    Raises:
        UsageError: a text of another form, or a split named twice.
    """
    found: dict[str, str] = {}
    for text in given:
        name, equals, pattern = text.partition("=")
        if not (name and equals and pattern):
            raise UsageError(f"--split {text!r}: NAME=GLOB is needed", todo="For example --split val='b-*.tar'.")
        if name in found:
            raise UsageError(f"--split names {name!r} twice")
        found[name] = pattern
    return found or None


def class_names(path: str) -> list[str]:
    """The lines of a text file.

    Raises:
        UsageError: an empty line, or no UTF-8.
        StorageError: it cannot be read.
    """
    try:
        names = [line.strip() for line in Path(path).read_text(encoding="utf-8-sig").splitlines()]
    except OSError as error:
        raise StorageError(f"cannot be read ({error.strerror})", where=path) from None
    except UnicodeDecodeError:
        raise UsageError("is not UTF-8", where=path) from None
    if not names or not all(names):
        raise UsageError("names a class in every line, and has none or an empty line", where=path)
    return names
