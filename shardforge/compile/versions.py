"""The versions of the libraries that decide a dataset's bytes."""

from __future__ import annotations

from importlib import metadata

_DISTRIBUTIONS = (
    "shardforge",
    "pillow-simd",
    "pillow",
    "simplejpeg",
    "opencv-python-headless",
    "imagecodecs",
    "numpy",
    "pyarrow",
    "pydicom",
)


def library_versions() -> dict[str, str]:
    """Distribution → version, of those that are installed."""
    versions = {}
    for name in _DISTRIBUTIONS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions
