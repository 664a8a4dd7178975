"""One batch in the making, by one thread or several."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from shardforge.stream.collate import Collate, stack
from shardforge.stream.fields import VALID
from shardforge.stream.resizing import Image
from shardforge.stream.sample import Rows, Sample, SampleMaker
from shardforge.stream.slots import Slots

Content = dict[str, Any]


class BatchJob:
    """Makes the rows of one batch, in any order, and then the batch.

    Images that have one shape are written straight into the batch's memory. Whoever makes the last row also puts the
    batch together.

    Args:
        maker: of the samples.
        rows: gathers them; called once.
        size: how many there are.
        blank: a missing row; called if there are any.
        slots: gives memory.
        collate: makes the batch of complete rows instead.
        with_valid: whether the batch says which rows are valid.
    """

    def __init__(
        self,
        maker: SampleMaker,
        rows: Callable[[], Rows],
        size: int,
        *,
        blank: Callable[[], Sample],
        slots: Slots,
        collate: Collate | None,
        with_valid: bool,
    ) -> None:
        self._maker, self._gathered, self.size = maker, rows, size
        self._blank, self._slots, self._collate, self._with_valid = blank, slots, collate, with_valid
        whole = bool(maker.sample_steps) or collate is not None
        self._ready = () if whole else tuple(name for name, field in maker.fields.items() if field.ready)
        self._made_singly = tuple(name for name in maker.fields if name not in self._ready)
        self._lock = threading.Lock()
        self._rows: Rows | None = None
        self._made: list[Sample | None] = [None] * size
        self._begun, self._left = 0, size
        self._placed = np.zeros(size, bool)
        self._slot: torch.Tensor | None = None
        self._view: Image | None = None
        self._content: Content | None = None

    def make_all(self) -> Content:
        """The batch, made here and now."""
        self._make(0, self.size)
        return self.content

    @property
    def content(self) -> Content:
        """The batch, once all of its rows are made."""
        if self._content is None:
            raise RuntimeError("a batch was asked for before it was made")
        return self._content

    def work(self, rows: int) -> None:
        """Makes so many rows at a time until none are left that nobody has begun. Several threads may do so.

        Raises:
            UsageError: a transform or the batch makes no sense.
            DamagedError, StorageError: a sample cannot be read.
        """
        while True:
            with self._lock:
                first = self._begun
                self._begun += rows
            if first >= self.size:
                return
            self._make(first, min(first + rows, self.size))

    def stop(self) -> None:
        """Lets nobody begin rows any more."""
        with self._lock:
            self._begun = self.size

    def _make(self, first: int, end: int) -> None:
        with self._lock:
            if self._rows is None:
                self._rows = self._gathered()
        for row in self._make_straight(self._rows, first, end):
            self._make_row(self._rows, row)
        with self._lock:
            self._left -= end - first
            last = not self._left
        if last:
            self._content = self._together(self._rows)
            self._rows, self._made = None, []

    def _make_straight(self, rows: Rows, first: int, end: int) -> Sequence[int]:
        """Makes rows that need no more than an image in the batch's memory; returns those that are left."""
        field = self._maker.straight
        if field is None or self._collate is not None or self._made_singly != ("image",):
            return range(first, end)
        if self._view is None:
            # The first row shows what the memory is for.
            self._make_row(rows, first)
            first += 1
        view = self._view
        if view is None:
            return range(first, end)
        wanted = np.flatnonzero(rows.places[first:end] >= 0) + first
        left = self._maker.make_straight(field, rows, view, wanted.tolist())
        self._placed[wanted] = True
        self._placed[left] = False
        return left

    def _make_row(self, rows: Rows, row: int) -> None:
        if not self._made_singly:
            self._made[row] = {} if rows.places[row] >= 0 else None
            return
        # A transform of whole samples may keep what it is given.
        view = None if self._maker.sample_steps else self._view
        out = None if view is None else view[row]
        sample = self._maker.make(rows, row, self._made_singly, out, writable=self._collate is not None)
        if sample is not None and self._collate is None:
            image = sample.get("image")
            if image is not None and image is out:
                self._placed[row] = True
            elif isinstance(image, np.ndarray) and image.ndim == 3:
                slot = self._fitting(row, image.shape, image.dtype)
                if slot is not None:
                    np.copyto(slot, image)
                    self._placed[row] = True
        self._made[row] = sample

    def _fitting(self, row: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Image | None:
        """The row's part of the batch's memory, if that is for images of this shape and type."""
        if self._view is None:
            with self._lock:
                if self._view is None:
                    self._slot = self._slots.take((self.size, *shape), dtype)
                    self._view = self._slot.numpy()
        view: Image = self._view[row]
        return view if view.shape == shape and view.dtype == dtype else None

    def _together(self, rows: Rows) -> Content:
        valid = self._placed | np.fromiter((sample is not None for sample in self._made), bool, self.size)
        missing = np.flatnonzero(~valid).tolist()
        blank = self._blank() if missing else {}
        if self._collate is not None:
            return self._collated(self._collate, blank)
        content: Content = {}
        names = self._sample(0, blank) if self._maker.sample_steps else self._maker.fields
        for name in names:
            if name in self._ready:
                content[name] = _scattered(rows.columns[name], missing, blank.get(name))
            elif name == "image" and self._view is not None and self._placed[valid].all():
                self._view[missing] = 0
                content[name] = self._slot
            else:
                content[name] = stack(name, [self._sample(row, blank) for row in range(self.size)], self._slots)
        if self._with_valid:
            content[VALID] = torch.from_numpy(valid)
        return content

    def _sample(self, row: int, blank: Sample) -> Sample:
        sample = self._made[row]
        if sample is None and self._placed[row] and self._view is not None:
            # It was made straight.
            return {"image": self._view[row]}
        return blank if sample is None else sample

    def _collated(self, collate: Collate, blank: Sample) -> Content:
        complete = []
        for sample in self._made:
            valid = {VALID: np.bool_(sample is not None)} if self._with_valid else {}
            complete.append({**(copy.deepcopy(blank) if sample is None else sample), **valid})
        return dict(collate(complete))


def _scattered(column: Any, missing: Sequence[int], blank: Any) -> Any:
    """A column as a tensor or a list, with ``blank`` in the missing rows."""
    if not isinstance(column, np.ndarray):
        out = list(column)
        for row in missing:
            out[row] = blank
        return out
    array = np.array(column)
    array[list(missing)] = blank if missing else 0
    return torch.from_numpy(array)
