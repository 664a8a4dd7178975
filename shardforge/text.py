"""Numbers and foreign text as people read them on a terminal."""

from __future__ import annotations

import unicodedata


def plain(text: str) -> str:
    """Text with control characters escaped, so that a file's name can never steer a terminal."""
    return "".join(
        char if char == "\t" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp") else _escape(char)
        for char in text
    )


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


def size(count: float) -> str:
    """Bytes with a binary unit: ``1.5 GiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
