"""What a file is that is no DICOM file, by its first bytes."""

from __future__ import annotations

from shardforge.codecs.sniff import sniff

ZIP = "zip archive"
_MAGIC = (
    (b"PK\x03\x04", ZIP),
    (b"PK\x05\x06", ZIP),
    (b"\x1f\x8b", "gzip file"),
    (b"7z\xbc\xaf\x27\x1c", "7z archive"),
    (b"Rar!", "rar archive"),
    (b"%PDF-", "PDF"),
    (b"MZ", "program"),
    (b"\x7fELF", "program"),
)
FIRST_BYTES = 512


def describe_foreign(first: bytes) -> str:
    """A few words, such as ``jpeg picture``, ``zip archive``, ``text``.

    Args:
        first: the file's first :data:`FIRST_BYTES` bytes.
    """
    if not first:
        return "empty"
    for magic, words in _MAGIC:
        if first.startswith(magic):
            return words
    picture = sniff(first)
    if picture is not None:
        return f"{picture} picture"
    if first[257:262] == b"ustar":
        return "tar archive"
    return "text" if _is_text(first) else "not a DICOM file"


def _is_text(first: bytes) -> bool:
    return not any(byte < 9 or 13 < byte < 32 for byte in first)
