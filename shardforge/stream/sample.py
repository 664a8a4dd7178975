"""Making samples: fields gathered, decoded and transformed, place by place."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch.utils.data import get_worker_info

from shardforge.errors import DamagedError, StorageError, UsageError
from shardforge.shards.index import Ids
from shardforge.stream.fields import MISSING_LABEL, Field, blank
from shardforge.stream.permute import key_of, words
from shardforge.stream.tally import ErrorTally

OnError = Literal["raise", "mask"]
Sample = dict[str, Any]
Callback = Callable[..., Any]

_EXAMPLE = 2**63
"""The place of the sample that missing rows are modelled on: none that an epoch has."""
_EXAMPLES_TRIED = 100


@dataclass(frozen=True)
class Step:
    """A callable of the user's (or ours) on the way of a sample, and whether it takes ``generator=``."""

    call: Callback
    generator: bool

    @classmethod
    def of(cls, call: Callback) -> Step:
        if not callable(call):
            raise UsageError(f"transform {call!r} cannot be called")
        target = call.forward if isinstance(call, torch.nn.Module) else call
        try:
            return cls(call, "generator" in inspect.signature(target).parameters)
        except (TypeError, ValueError):
            return cls(call, False)

    def __call__(self, value: Any, generator: np.random.Generator) -> Any:
        return self.call(value, generator=generator) if self.generator else self.call(value)


def steps_of(transform: Callback | Sequence[Callback] | None) -> tuple[Step, ...]:
    """One transform or several, in order."""
    if transform is None:
        return ()
    calls = transform if isinstance(transform, Sequence) else [transform]
    return tuple(Step.of(call) for call in calls)


def generator_at(seed: int, epoch: int, place: int) -> np.random.Generator:
    """The generator of a place in the order: the same on any topology."""
    key = np.array([int(key_of("augment", seed)), epoch], np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=np.array([0, 0, 0, place], np.uint64)))


class SampleMaker:
    """Makes the samples of one split. Pure but for errors counted: a sample depends on seed, epoch and place alone.

    Args:
        fields: name → where it comes from.
        image_steps: applied to ``image``, a NumPy array [H, W, C], in order.
        sample_steps: applied to the whole sample afterwards; each returns a mapping.
        seed: of the generators.
        on_error: ``raise``, or ``mask``: a sample that cannot be read counts as missing.
        tally: counts those.
    """

    def __init__(
        self,
        fields: Mapping[str, Field],
        image_steps: Sequence[Step],
        sample_steps: Sequence[Step],
        seed: int,
        on_error: OnError,
        tally: ErrorTally,
    ) -> None:
        if on_error not in ("raise", "mask"):
            raise UsageError(f"on_error={on_error!r}", todo="Choose 'raise' or 'mask'.")
        self._fields, self._image_steps, self._sample_steps = dict(fields), image_steps, sample_steps
        self._seed, self._on_error, self._tally = seed, on_error, tally
        self._uses_globals = not all(step.generator for step in (*image_steps, *sample_steps))

    def rows(self, ids: Ids, places: Ids, epoch: int) -> Iterator[Sample | None]:
        """The samples ``ids`` (int64 [n]) that stand at ``places``; None where the place is −1 or the sample is bad.

        Raises:
            DamagedError, StorageError: a sample cannot be read (``on_error="raise"``).
        """
        real = np.flatnonzero(places >= 0)
        gathered = {name: field.gather(ids[real]) for name, field in self._fields.items()}
        position = 0
        for number, place in zip(ids.tolist(), places.tolist(), strict=True):
            if place < 0:
                yield None
                continue
            parts = {name: column[position] for name, column in gathered.items()}
            position += 1
            yield self._make_or_mask(number, place, epoch, parts)

    def _make_or_mask(self, number: int, place: int, epoch: int, gathered: Mapping[str, Any]) -> Sample | None:
        try:
            values = {name: field.value(number, gathered[name]) for name, field in self._fields.items()}
        except (DamagedError, StorageError) as error:
            if self._on_error == "raise":
                raise
            worker = get_worker_info()
            self._tally.add(0 if worker is None else worker.id, error.what, error)
            return None
        return self._transformed(values, place, epoch)

    def _transformed(self, sample: Sample, place: int, epoch: int) -> Sample:
        if not self._image_steps and not self._sample_steps:
            return sample
        generator = generator_at(self._seed, epoch, place)
        # In the training process itself the global generators belong to the trainer.
        if self._uses_globals and get_worker_info() is not None:
            self._seed_globals(place, epoch)
        if "image" in sample:
            for step in self._image_steps:
                sample["image"] = step(sample["image"], generator)
        for step in self._sample_steps:
            sample = step(sample, generator)
            if not isinstance(sample, Mapping):
                raise UsageError(f"transform_sample returned {type(sample).__name__}, not the sample's mapping")
        return dict(sample)

    def _seed_globals(self, place: int, epoch: int) -> None:
        word = int(words(key_of("globals", self._seed, epoch), np.array([place], np.uint64))[0])
        random.seed(word)
        np.random.seed(word % 2**32)
        torch.manual_seed(word % 2**63)

    def blank(self, ids: Ids) -> Sample:
        """A missing row: like the first of the samples ``ids`` that can be read, but empty.

        Raises:
            DamagedError, StorageError: none of the first hundred can be read.
        """
        error: Exception | None = None
        for number in ids[:_EXAMPLES_TRIED].tolist():
            try:
                values = {
                    name: field.value(number, field.gather(np.array([number]))[0])
                    for name, field in self._fields.items()
                }
            except (DamagedError, StorageError) as problem:
                error = error or problem
                continue
            example = self._transformed(values, _EXAMPLE, 0)
            return {name: self._blank(name, value) for name, value in example.items()}
        raise error or UsageError("there are no samples to read")

    def _blank(self, name: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return torch.full_like(value, MISSING_LABEL) if name == "label" else torch.zeros_like(value)
        field = self._fields.get(name)
        return blank(value) if field is None else field.blank(value)
