"""shardforge compiles raw images and DICOM into training shards, and streams them into training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardforge.errors import (
    DamagedError,
    SampleError,
    ShardforgeError,
    StorageError,
    TooManyFailuresError,
    UsageError,
)

if TYPE_CHECKING:
    from shardforge.compile.build import build
    from shardforge.indexing.index import index
    from shardforge.recipe import Recipe
    from shardforge.stream.dataset import ShardDataset
    from shardforge.stream.loader import ShardLoader
    from shardforge.stream.reader import open_dataset as open
    from shardforge.stream.sequential import SequentialDataset

__all__ = [
    "DamagedError",
    "Recipe",
    "SampleError",
    "SequentialDataset",
    "ShardDataset",
    "ShardLoader",
    "ShardforgeError",
    "StorageError",
    "TooManyFailuresError",
    "UsageError",
    "build",
    "index",
    "open",
]

# Loaded on first use: a training job does not pay for what building needs, and `shardforge --help` for neither.
_HOMES = {
    "build": ("shardforge.compile.build", "build"),
    "index": ("shardforge.indexing.index", "index"),
    "open": ("shardforge.stream.reader", "open_dataset"),
    "Recipe": ("shardforge.recipe", "Recipe"),
    "SequentialDataset": ("shardforge.stream.sequential", "SequentialDataset"),
    "ShardDataset": ("shardforge.stream.dataset", "ShardDataset"),
    "ShardLoader": ("shardforge.stream.loader", "ShardLoader"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
