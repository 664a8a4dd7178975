"""What happens to an image between its payload and the batch: built-in transforms fused with decoding, then the rest.

Built-in transforms draw from a hash of (seed, epoch, step, place), computed for many places at once; other callables
may take a ``generator``, which depends on (seed, epoch, place). Either way the draws are the same on any topology.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from shardforge.errors import UsageError
from shardforge.shards.index import Ids
from shardforge.stream.augment import Numbers, Transform
from shardforge.stream.decode import Reduce
from shardforge.stream.permute import key_of, uniforms
from shardforge.stream.resizing import Image

Callback = Callable[..., Any]
Decode = Callable[[Reduce | None, bool], Image]
"""Decodes the image of a sample: reduced as the first argument says; the second: whether it must be writable."""

_REDUCTIONS = (8, 4, 2)


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

    def __call__(self, value: Any, generator: Callable[[], np.random.Generator]) -> Any:
        return self.call(value, generator=generator()) if self.generator else self.call(value)


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


class _Reduction:
    """Answers a decoder that asks for the scale, and remembers the size that the picture has in full."""

    __slots__ = ("_first", "_numbers", "full")

    def __init__(self, first: Transform, numbers: Numbers) -> None:
        self.full: tuple[int, int] | None = None
        self._first, self._numbers = first, numbers

    def __call__(self, height: int, width: int) -> int:
        self.full = height, width
        spare = self._first.spare(height, width, self._numbers)
        return next((factor for factor in _REDUCTIONS if factor <= spare), 1)


def _is_built_in(call: Callback) -> bool:
    """Whether calling it does no more than its :meth:`Transform.apply`; a class of a user's derived from it may."""
    return isinstance(call, Transform) and type(call).__call__ is Transform.__call__


class ImagePipeline:
    """The steps of ``transform``, in order.

    Attributes:
        size: height and width of every result, if the steps alone say so; else None.
    """

    def __init__(self, steps: Sequence[Step], seed: int) -> None:
        self._seed = seed
        built_in = [_is_built_in(step.call) for step in steps]
        fused = built_in.index(False) if False in built_in else len(built_in)
        self._fused: tuple[Transform, ...] = tuple(step.call for step in steps[:fused])  # type: ignore[misc]
        self._others = tuple(steps[fused:])
        ends = np.cumsum([step.draws for step in self._fused]).tolist()
        self._parts = [slice(end - step.draws, end) for step, end in zip(self._fused, ends, strict=True)]
        self.size: tuple[int, int] | None = None
        for step in self._fused:
            self.size = step.size(self.size)
        if self._others:
            self.size = None

    @property
    def empty(self) -> bool:
        return not self._fused and not self._others

    @cached_property
    def uses_globals(self) -> bool:
        """Whether a step may draw from the generators that all threads share."""
        return not all(step.generator for step in self._others)

    def numbers(self, epoch: int, places: Ids) -> Numbers:
        """What the fused steps draw at ``places``, float64 [n, draws]."""
        columns = [np.empty((len(places), 0))]
        for position, step in enumerate(self._fused):
            if step.draws:
                counters = np.multiply.outer(places.astype(np.uint64), np.uint64(step.draws))[:, None]
                counters = counters + np.arange(step.draws, dtype=np.uint64)
                columns.append(uniforms(key_of("augment", self._seed, epoch, position), counters))
        return np.concatenate(columns, axis=1)

    @property
    def straight(self) -> bool:
        """Whether all steps are built in, and there are any: :meth:`run_straight` can take them."""
        return bool(self._fused) and not self._others

    def run_straight(
        self,
        decode: Callable[[int, Reduce | None], Image],
        numbers: Numbers,
        outs: Image,
        rows: Iterable[int],
        *,
        reducible: bool,
    ) -> list[int]:
        """Many images through all steps, with little of Python between the calls that leave it: that is when other
        threads have to wait, and to be woken takes them longer still.

        Args:
            decode: decodes the picture of a row, reduced as the second argument says.
            numbers: float64 [n, draws], of :meth:`numbers`.
            outs: [n, H, W, C], where the results belong.
            rows: which.
            reducible: whether pictures can be decoded at a reduced scale.

        Returns:
            Rows that are not there now: of another shape or type, or anything is wrong, which :meth:`run` will tell.
        """
        steps = [(step.apply, part) for step, part in zip(self._fused, self._parts, strict=True)]
        first, part_of_first = self._fused[0], self._parts[0]
        shape, dtype, left = outs.shape[1:], outs.dtype, []
        for row in rows:
            out, drawn = outs[row], numbers[row]
            try:
                reduction = _Reduction(first, drawn[part_of_first]) if reducible else None
                image = decode(row, reduction)
                full = None if reduction is None else reduction.full
                alike = image.shape[2] == shape[2] and image.dtype == dtype
                for apply, part in steps:
                    image = apply(image, drawn[part], full, out if alike else None)
                    full = None
            except Exception:
                left.append(row)
                continue
            if image is not out:
                if image.shape == shape and image.dtype == dtype:
                    np.copyto(out, image)
                else:
                    left.append(row)
        return left

    def run(
        self,
        decode: Decode,
        numbers: Numbers,
        generator: Callable[[], np.random.Generator],
        out: Image | None = None,
    ) -> Any:
        """One image through all steps.

        Args:
            numbers: float64 [draws], of :meth:`numbers`.
            generator: makes the generator of this place; asked only if a step takes one.
            out: where the result belongs if it has the same shape and type; see :meth:`Transform.apply`.
        """
        reduction = _Reduction(self._fused[0], numbers[self._parts[0]]) if self._fused else None
        image = decode(reduction, bool(self._others) and not self._fused)
        full = None if reduction is None else reduction.full
        if out is not None and not (
            self.size == out.shape[:2] and image.shape[2:] == out.shape[2:] and image.dtype == out.dtype
        ):
            out = None
        for step, part in zip(self._fused, self._parts, strict=True):
            image = step.apply(image, numbers[part], full, out)
            full = None
        if self._fused and self._others and not image.flags.writeable:
            image = image.copy()
        for other in self._others:
            image = other(image, generator)
            if image is None:
                raise UsageError(f"the transform {other.call!r} returned nothing", todo="Have it return the image.")
        return image
