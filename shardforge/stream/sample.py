"""Making samples: fields gathered for many places at once, then decoded and transformed one by one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch.utils.data import get_worker_info

from shardforge.errors import DamagedError, StorageError, UsageError
from shardforge.shards.index import Ids
from shardforge.stream.augment import Numbers
from shardforge.stream.decode import Reduce
from shardforge.stream.fields import MISSING_LABEL, Field, Gathered, Member, blank
from shardforge.stream.permute import key_of, permute, words
from shardforge.stream.pipeline import ImagePipeline, Step, generator_at
from shardforge.stream.resizing import Image
from shardforge.stream.tally import ErrorTally

OnError = Literal["raise", "mask"]
Sample = dict[str, Any]

_EXAMPLE = 2**62
"""The place of the sample that missing rows are modelled on: none that an epoch has."""
_SPREAD = np.array([key_of("examples")])
EXAMPLES_TRIED = 1000
"""So many that even where only one sample in a hundred can be read, one is found but in 4 of 100 000 cases."""


@dataclass(frozen=True)
class Rows:
    """The cheap part of some samples, computed for all of them at once.

    Attributes:
        ids: numbers of the samples in the split, int64 [n].
        places: where they stand in the epoch's order, int64 [n]; −1 where a row is missing.
        epoch: which.
        columns: by field, what it gathered; of missing rows something meaningless.
        numbers: what built-in transforms draw, float64 [n, draws].
    """

    ids: Ids
    places: Ids
    epoch: int
    columns: Mapping[str, Gathered]
    numbers: Numbers

    def part(self, first: int, end: int) -> Rows:
        """The rows ``first`` … ``end`` - 1."""
        part = slice(first, end)
        columns = {name: column[part] for name, column in self.columns.items()}
        return Rows(self.ids[part], self.places[part], self.epoch, columns, self.numbers[part])


class SampleMaker:
    """Makes the samples of one split. Pure but for errors counted: a sample depends on seed, epoch and place alone.
    Threads may share one object.

    Args:
        fields: name → where it comes from.
        image_steps: applied to ``image``, a NumPy array [H, W, C], in order.
        sample_steps: applied to the whole sample afterwards; each returns a mapping.
        seed: of the generators.
        on_error: ``raise``, or ``mask``: a sample that cannot be read counts as missing.
        tally: counts those.
        key: of a sample, by its number; named where a transform fails.

    Attributes:
        fields: as given.
        sample_steps: as given.
    """

    def __init__(
        self,
        fields: Mapping[str, Field],
        image_steps: Sequence[Step],
        sample_steps: Sequence[Step],
        seed: int,
        on_error: OnError,
        tally: ErrorTally,
        key: Callable[[int], str],
    ) -> None:
        if on_error not in ("raise", "mask"):
            raise UsageError(f"on_error={on_error!r}", todo="Choose 'raise' or 'mask'.")
        self.fields, self.sample_steps = dict(fields), tuple(sample_steps)
        self._pipeline = ImagePipeline(image_steps, seed)
        self._seed, self._on_error, self._tally, self._key = seed, on_error, tally, key

    @cached_property
    def uses_globals(self) -> bool:
        """Whether a transform may draw from the global generators of Python, NumPy or torch."""
        return self._pipeline.uses_globals or not all(step.generator for step in self.sample_steps)

    def gather(self, ids: Ids, places: Ids, epoch: int) -> Rows:
        """Prepares the samples ``ids`` (int64 [n]) that stand at ``places``; −1 for missing rows in both."""
        real = np.maximum(ids, 0)
        columns = {name: field.gather(real) for name, field in self.fields.items()}
        return Rows(ids, places, epoch, columns, self._pipeline.numbers(epoch, places))

    @cached_property
    def straight(self) -> Member | None:
        """The image's field if :meth:`make_straight` can make it."""
        field = self.fields.get("image")
        straight = self._pipeline.straight and not self.sample_steps
        return field if straight and isinstance(field, Member) else None

    def make_straight(self, field: Member, rows: Rows, outs: Image, wanted: Iterable[int]) -> list[int]:
        """The images ``field`` of the rows ``wanted``; see :meth:`ImagePipeline.run_straight`."""
        decode = field.images(rows.ids, rows.columns["image"])
        return self._pipeline.run_straight(decode, rows.numbers, outs, wanted, reducible=field.reducible)

    def make(
        self, rows: Rows, row: int, names: Sequence[str], out: Image | None = None, *, writable: bool = False
    ) -> Sample | None:
        """One sample with the fields ``names``, or None where it is missing or bad.

        Args:
            out: where the image belongs; see :meth:`ImagePipeline.run`.
            writable: somebody may write into the image, which else may be a view of the shard.

        Raises:
            DamagedError, StorageError: the sample cannot be read (``on_error="raise"``).
        """
        place = int(rows.places[row])
        if place < 0:
            return None
        try:
            return self._made(rows, row, place, names, out, writable=writable or bool(self.sample_steps))
        except Exception as problem:
            if not isinstance(problem, _Unreadable):
                key = self._key(int(rows.ids[row]))
                problem.add_note(f"sample {key}, place {place} of epoch {rows.epoch}")
                raise
            if self._on_error == "raise":
                raise problem.error from None
            worker = get_worker_info()
            self._tally.add(0 if worker is None else worker.id, problem.error.what, problem.error)
            return None

    def _made(
        self,
        rows: Rows,
        row: int,
        place: int,
        names: Sequence[str],
        out: Image | None = None,
        *,
        writable: bool = False,
    ) -> Sample:
        # In the training process itself the global generators belong to the trainer.
        if self.uses_globals and get_worker_info() is not None:
            self._seed_globals(place, rows.epoch)
        generator = _Once(self._seed, rows.epoch, place)
        sample: Sample = {}
        for name in names:
            field, gathered = self.fields[name], rows.columns[name][row]
            if name == "image" and isinstance(field, Member):
                decode = _Decoder(field, int(rows.ids[row]), gathered, writable)
                sample[name] = self._pipeline.run(decode, rows.numbers[row], generator, out)
            else:
                try:
                    sample[name] = field.value(int(rows.ids[row]), gathered)
                except (DamagedError, StorageError) as error:
                    raise _Unreadable(error) from None
        for step in self.sample_steps:
            sample = step(sample, generator)
            if not isinstance(sample, Mapping):
                raise UsageError(f"transform_sample returned {type(sample).__name__}, not the sample's mapping")
            sample = dict(sample)
        return sample

    def _seed_globals(self, place: int, epoch: int) -> None:
        word = int(words(key_of("globals", self._seed, epoch), np.array([place], np.uint64))[0])
        random.seed(word)
        np.random.seed(word % 2**32)
        torch.manual_seed(word % 2**63)

    def blank(self, ids: Ids) -> Sample:
        """A missing row: like one of the samples ``ids`` that can be read, but empty. That is the first of them, or
        else one of a thousand spread over all: whole shards at the beginning may be lost.

        Raises:
            DamagedError, StorageError: none of those can be read.
        """
        error: Exception | None = None
        spread = permute(np.arange(min(len(ids), EXAMPLES_TRIED), dtype=np.uint64), len(ids), _SPREAD)
        for number in ids[np.concatenate([np.zeros(1, np.int64), spread.astype(np.int64)])].tolist():
            try:
                rows = self.gather(np.array([number]), np.array([_EXAMPLE]), 0)
                example = self._made(rows, 0, _EXAMPLE, tuple(self.fields), writable=True)
            except _Unreadable as problem:
                error = error or problem.error
                continue
            return {name: self._blank(name, value) for name, value in example.items()}
        raise error or UsageError("there are no samples to read")

    def _blank(self, name: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return torch.full_like(value, MISSING_LABEL) if name == "label" else torch.zeros_like(value)
        field = self.fields.get(name)
        return blank(value) if field is None else field.blank(value)


class _Unreadable(Exception):
    """A sample that cannot be read, told apart from whatever a transform may raise."""

    def __init__(self, error: DamagedError | StorageError) -> None:
        super().__init__(error)
        self.error = error


class _Decoder:
    """Decodes one image for :meth:`ImagePipeline.run`."""

    __slots__ = ("_extent", "_field", "_number", "_writable")

    def __init__(self, field: Member, number: int, extent: tuple[int, int, int], writable: bool) -> None:
        self._field, self._number, self._extent, self._writable = field, number, extent, writable

    def __call__(self, reduce: Reduce | None, writable: bool) -> Image:
        try:
            return self._field.decoded(self._number, self._extent, reduce, writable or self._writable)  # type: ignore[no-any-return]
        except (DamagedError, StorageError) as error:
            raise _Unreadable(error) from None


class _Once:
    """The generator of one place, made when first asked for."""

    __slots__ = ("_key", "_made")

    def __init__(self, seed: int, epoch: int, place: int) -> None:
        self._key = seed, epoch, place
        self._made: np.random.Generator | None = None

    def __call__(self) -> np.random.Generator:
        if self._made is None:
            self._made = generator_at(*self._key)
        return self._made
