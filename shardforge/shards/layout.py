"""The names of the files of a dataset."""

from __future__ import annotations

import re
from pathlib import Path

FORMAT = "shardforge/1"
MANIFEST = "dataset.json"
CARD = "README.md"
BUILD_RECORD = "build.json"
STAGING = ".staging"
TIMM = "_info.json"
WIDS = "shardindex.json"

SPLIT_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
"""A split's name becomes part of file names and of Hugging Face split names."""

_OWN_SHARD = re.compile(rf"{SPLIT_NAME.pattern}-[0-9]{{6}}")
_OWN_FILE = re.compile(
    rf"{SPLIT_NAME.pattern}-[0-9]{{6}}\.(tar|parquet|idx)|{SPLIT_NAME.pattern}\.(index\.arrow|shardindex\.json)|"
    r"shardindex\.json|dataset\.json|README\.md|build\.json|_info\.json"
)


def shard_name(split: str, number: int) -> str:
    """``train-000012``: numbering per split, six digits, no gaps."""
    return f"{split}-{number:06d}"


def tar_path(root: Path, shard: str) -> Path:
    return root / f"{shard}.tar"


def parquet_path(root: Path, shard: str) -> Path:
    return root / f"{shard}.parquet"


def index_path(root: Path, split: str) -> Path:
    return root / f"{split}.index.arrow"


def is_shard(name: str, *, foreign: bool) -> bool:
    """Whether a manifest may name a shard so. Of tars made elsewhere it is the path without ``.tar``, inside the
    dataset's folder."""
    if not foreign:
        return _OWN_SHARD.fullmatch(name) is not None
    return "\0" not in name and all(part and not part.startswith(".") for part in name.split("/"))


def is_own_file(name: str) -> bool:
    """Whether a file of this name in a dataset's folder is one that a build writes (and may therefore remove)."""
    return _OWN_FILE.fullmatch(name) is not None
