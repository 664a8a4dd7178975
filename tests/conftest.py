"""Fixtures every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real and broken files with independently established facts."""
    path = Path(os.environ.get("SHARDFORGE_CORPUS", ROOT.parent / "shared" / "corpus"))
    if not (path / "expected.jsonl").is_file():
        pytest.skip(f"corpus absent: {path} has no expected.jsonl (set SHARDFORGE_CORPUS)")
    return path
