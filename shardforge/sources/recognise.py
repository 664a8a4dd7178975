"""Which files are images: by their name, or else by their first bytes. The content decides again when decoding."""

from __future__ import annotations

import os

from shardforge.codecs.sniff import sniff

# fmt: off
IMAGE_EXTENSIONS = frozenset({
    "jpg", "jpeg", "jpe", "jfif", "jif", "png", "apng", "gif", "bmp", "dib", "tif", "tiff", "webp", "ico", "mpo",
    "avif", "avifs", "heic", "heics", "heif", "heifs", "hif", "jp2", "j2k", "j2c", "jpc", "jpf", "jpx", "jxl",
    "pbm", "pgm", "ppm", "pnm", "pam", "pcx", "psd", "qoi", "tga", "dcm", "dicom",
})
# fmt: on
"""Lower case, without the dot."""

_FIRST_BYTES = 512
_SYSTEM_FILES = frozenset({"thumbs.db", "ehthumbs.db", "desktop.ini"})


def image_extension(name: str) -> str | None:
    """The extension of a base name, lower case, if it is an image's; ``.jpg`` alone is a name, not an extension."""
    stem, dot, extension = name.rpartition(".")
    extension = extension.lower()
    return extension if dot and stem and extension in IMAGE_EXTENSIONS else None


def image_stem(name: str) -> str:
    """What an image's sidecars share: its name without the extension, or all of it if that is no image's."""
    return name if image_extension(name) is None else name.rpartition(".")[0]


def is_hidden(name: str) -> bool:
    """Whether a base name is one that systems leave behind (``.DS_Store``, ``._x.jpg``, ``Thumbs.db``)."""
    return name.startswith(".") or name.lower() in _SYSTEM_FILES


def why_no_image(name: str, path: str) -> str | None:
    """Why a regular file is not an image, or None if it is one.

    Args:
        name: base name.
        path: where to open it; only done when the name does not decide.
    """
    hidden = is_hidden(name)
    if not hidden and image_extension(name) is not None:
        return None
    try:
        first = read_first(path)
    except OSError:
        return "cannot be read"
    if sniff(first) is not None:
        return None
    return "hidden" if hidden else "not an image or sidecar"


def read_first(path: str) -> bytes:
    """The first 512 bytes of a file.

    Raises:
        OSError: it cannot be read.
    """
    # Non-blocking: should a pipe have taken the file's place since it was listed, opening it must not hang.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _FIRST_BYTES)
    finally:
        os.close(descriptor)
