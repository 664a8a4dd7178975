"""Datasets built once of corpus data, and a key of the tests' own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.pictures import run


@pytest.fixture(scope="session")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where builds of this session keep the identity key; never the user's own."""
    return tmp_path_factory.mktemp("key") / "identity.key"


@pytest.fixture(scope="session")
def whole_build(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """The command that built all DICOM files of the corpus at once, three channels, sizes untouched, names kept; its
    last argument is the folder."""
    out = tmp_path_factory.mktemp("whole") / "out"
    given = ("--kind", "dicom", "--resize", "none", "--format", "png", "--channels", "3", "--shard-samples", "300")
    policies = ("--burned-in", "keep", "--keep-identifiers", "--max-errors", "100%", "--workers", "2")
    return run("build", *given, *policies, corpus / "dicom", out)


@pytest.fixture(scope="session")
def whole(whole_build: subprocess.CompletedProcess[str]) -> Path:
    """The dataset of :func:`whole_build`."""
    return Path(whole_build.args[-1])
