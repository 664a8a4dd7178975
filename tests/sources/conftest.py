"""Fixtures that lay out raw data."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
"""Enough of a PNG to be recognised; scanning reads no pixels."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """An empty source folder."""
    root = tmp_path / "raw"
    root.mkdir()
    return root


@pytest.fixture
def lay(source: Path) -> Callable[..., Path]:
    """Creates files below the source folder: names (made recognisable images), and name=content pairs in a dict."""

    def _lay(*names: str | bytes, contents: dict[str, str | bytes] | None = None) -> Path:
        files: dict[str | bytes, str | bytes] = dict.fromkeys(names, PNG)
        files.update(contents or {})
        for name, content in files.items():
            path = source / os.fsdecode(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return source

    return _lay
