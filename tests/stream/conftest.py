"""Datasets that many tests only read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.datasets import make_dataset


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PNG, classes; train: 40 samples in shards of 16, 0, 7 and 17 with a failed row each; val: 11; test: 3."""
    root = tmp_path_factory.mktemp("plain")
    make_dataset(root, {"train": [16, 0, 7, 17], "val": [11], "test": [3]}, format="png", failed_per_shard=1)
    return root


@pytest.fixture(scope="session")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """JPEG, classes, every sidecar; ``txt`` is optional and absent from every third sample. train: 8 + 8, val: 5."""
    root = tmp_path_factory.mktemp("rich")
    make_dataset(root, sidecars=["txt", "json", "mask.png"], optional=["txt"])
    return root
