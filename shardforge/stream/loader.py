"""``ShardLoader``: whole batches, ready for the device."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Self

import pyarrow.compute as pc
import torch
from torch.utils.data import DataLoader, IterableDataset

from shardforge.errors import ShardforgeError, UsageError
from shardforge.stream.dataset import ShardDataset
from shardforge.stream.sample import Callback, OnError
from shardforge.stream.select import Weights
from shardforge.stream.share import Tail


class ShardLoader:
    """Iterates over batches of one split: dicts of uint8 or uint16 [B, H, W, C] images, labels and whatever else is
    asked for.

    One pass is one epoch; the next pass reads the next epoch, unless :meth:`set_epoch` says otherwise. A pass
    that was left before its last batch does not count: the next one reads the same epoch from its start. Worker
    processes live on between passes, until :meth:`close`, the end of a ``with`` block, or the loader's own end.

    Args:
        batch_size: rows per rank.
        workers: processes that make batches; 0: this one does.
        context: how workers are started: ``fork``, ``spawn``, ``forkserver``, or None for Python's default.
        channels_first: images are given as [B, C, H, W] (a view: in memory channels stay last).
        path, split, shuffle, seed, fields, transform, rank, world_size, tail, on_error, where, weights, as_tuple,
        transform_sample: as for :class:`~shardforge.stream.dataset.ShardDataset`.

    Attributes:
        dataset: the :class:`~shardforge.stream.dataset.ShardDataset` underneath.

    Raises:
        UsageError, StorageError, DamagedError: as ``ShardDataset``.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        split: str = "train",
        batch_size: int = 64,
        *,
        transform: Callback | Sequence[Callback] | None = None,
        workers: int = 0,
        context: Literal["fork", "spawn", "forkserver"] | None = None,
        channels_first: bool = False,
        shuffle: bool | int = True,
        seed: int = 0,
        fields: Sequence[str] | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        tail: Tail | None = None,
        on_error: OnError = "raise",
        where: pc.Expression | None = None,
        weights: Weights = None,
        as_tuple: bool = False,
        transform_sample: Callback | Sequence[Callback] | None = None,
    ) -> None:
        if workers < 0:
            raise UsageError(f"workers={workers}: not negative")
        self.dataset = ShardDataset(
            path,
            split=split,
            shuffle=shuffle,
            seed=seed,
            fields=fields,
            transform=transform,
            batch_size=batch_size,
            rank=rank,
            world_size=world_size,
            tail=tail,
            on_error=on_error,
            where=where,
            weights=weights,
            as_tuple=as_tuple,
            transform_sample=transform_sample,
        )
        self._workers, self._context, self._channels_first = workers, context, channels_first
        self._batches: DataLoader[Any] | None = None
        self._running: Generator[Any, None, None] | None = None
        self._epoch, self._epoch_given = 0, False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_batches": None, "_running": None}

    def __len__(self) -> int:
        """Batches per rank and epoch."""
        return len(self.dataset)

    @property
    def epoch(self) -> int:
        """The epoch that the next pass reads."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """The next pass reads ``epoch``."""
        self.dataset.set_epoch(epoch)
        self._epoch, self._epoch_given = epoch, True

    def __iter__(self) -> Iterator[Any]:
        if self._running is not None:
            self._running.close()
        self.dataset.set_epoch(self._epoch)
        self._epoch_given = False
        if self._batches is None:
            self._batches = DataLoader(
                _ErrorsAsData(self.dataset),
                batch_size=None,
                num_workers=self._workers,
                collate_fn=_unchanged,
                multiprocessing_context=self._context if self._workers else None,
                persistent_workers=self._workers > 0,
            )
        self._running = self._pass(iter(self._batches))
        return self._running

    def _pass(self, batches: Iterator[Any]) -> Generator[Any, None, None]:
        for content in batches:
            if isinstance(content, ShardforgeError):
                raise content
            yield self._with_channels_first(content) if self._channels_first else content
        if not self._epoch_given:
            self._epoch += 1

    def _with_channels_first(self, content: Any) -> Any:
        if self.dataset.as_tuple:
            return tuple(
                _channels_first(value) if name == "image" else value
                for name, value in zip(self.dataset.names, content, strict=True)
            )
        return {name: _channels_first(value) if name == "image" else value for name, value in content.items()}

    def close(self) -> None:
        """Ends the worker processes. The loader starts new ones if it is iterated again."""
        running, self._running, self._batches = self._running, None, None
        if running is not None:
            running.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _ErrorsAsData(IterableDataset[Any]):
    """Hands our own errors over as the last element: a DataLoader would bury them in a worker's traceback."""

    def __init__(self, dataset: ShardDataset) -> None:
        super().__init__()
        self._dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        return self._guarded(iter(self._dataset))

    def _guarded(self, content: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from content
        except ShardforgeError as error:
            yield error


def _unchanged(content: Any) -> Any:
    return content


def _channels_first(images: torch.Tensor) -> torch.Tensor:
    return images.permute(0, 3, 1, 2)
