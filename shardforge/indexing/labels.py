"""What kind of label tars from elsewhere carry, and the label of each sample."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from shardforge.errors import SampleError, UsageError
from shardforge.shards.catalogue import Reason
from shardforge.shards.class_text import class_id
from shardforge.shards.manifest import LabelInfo

MOST_CLASSES = 1_000_000
"""Ids from here on are taken for something else than classes."""

_NONE = LabelInfo("none")
Scalar = str | int | float
Label = Any
"""As the parquet has it: a class id, a list of them, a number, a list of numbers, or None."""


def value_of(text: str | None) -> Scalar | tuple[Scalar, ...] | None:
    """A label as it was found, from its JSON: digits in a text are an id; blanks, objects and NaN are no label."""
    value = None if text is None else json.loads(text)
    if isinstance(value, list):
        parts = tuple(_scalar(part) for part in value)
        return None if None in parts else parts  # type: ignore[return-value]
    return _scalar(value)


def _scalar(value: Any) -> Scalar | None:
    if isinstance(value, str):
        number = class_id(value.encode("utf-8", "replace"))
        return value or None if number is None else number
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        # Larger ones fit neither a label's column nor, beyond 300 digits, a float.
        return value if -(2**63) <= value < 2**63 else str(value)
    return value if isinstance(value, float) and math.isfinite(value) else None


@dataclass
class LabelCounts:
    """What the labels of all samples are, counted while they are read."""

    words: set[str] = field(default_factory=set)
    id_words: set[str] = field(default_factory=set)
    ids: int = 0
    others: int = 0
    largest: int = -1
    floats: int = 0
    lists: Counter[int] = field(default_factory=Counter)
    single: int = 0

    def add(self, value: Scalar | tuple[Scalar, ...] | None) -> None:
        if value is None:
            return
        if isinstance(value, tuple):
            self.lists[len(value)] += 1
        else:
            self.single += 1
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, str):
                self.words.add(part)
                self.others += 1
            elif isinstance(part, int):
                self.ids += 1
                self.largest = max(self.largest, part)
                if len(self.id_words) < MOST_CLASSES:
                    self.id_words.add(str(part))
            else:
                self.floats += 1


@dataclass(frozen=True)
class Labels:
    """The dataset's kind of label.

    Attributes:
        classes: class name → id.
        by_id: labels are written as ids, not as names.
    """

    info: LabelInfo
    classes: dict[str, int] = field(default_factory=dict)
    by_id: bool = False

    def of(self, value: Scalar | tuple[Scalar, ...] | None) -> tuple[Label, Label]:
        """(label, name) of one sample.

        Raises:
            SampleError: ``missing_label`` or ``bad_label``.
        """
        if self.info.kind == "none":
            return None, None
        if value is None:
            raise SampleError(Reason.MISSING_LABEL)
        if self.info.kind == "number":
            return self._number(value), None
        if self.info.kind == "class":
            if isinstance(value, tuple):
                raise SampleError(Reason.BAD_LABEL, "several classes")
            return self._class(value)
        pairs = sorted({self._class(part) for part in (value if isinstance(value, tuple) else (value,))})
        return [number for number, _ in pairs], [name for _, name in pairs]

    @cached_property
    def _names(self) -> list[str]:
        return list(self.classes)

    def _class(self, value: Scalar) -> tuple[int, str]:
        if self.by_id and isinstance(value, int) and 0 <= value < len(self._names):
            return value, self._names[value]
        if not self.by_id and str(value) in self.classes:
            return self.classes[str(value)], str(value)
        raise SampleError(Reason.BAD_LABEL, f"{value!r} is none of the classes")

    def _number(self, value: Scalar | tuple[Scalar, ...]) -> Label:
        parts = value if isinstance(value, tuple) else (value,)
        if len(parts) != self.info.size or any(isinstance(part, str) for part in parts):
            raise SampleError(Reason.BAD_LABEL, f"{len(parts)} values where {self.info.size} numbers belong")
        return float(parts[0]) if self.info.size == 1 else [float(part) for part in parts]


def decide_labels(found: LabelCounts, names: Sequence[str] | None) -> Labels:
    """What the labels are, by what most of them are.

    Args:
        names: of the classes, by id.

    Raises:
        UsageError: ids that cannot be classes, or names that do not fit them.
    """
    if not found.single and not found.lists:
        return Labels(_NONE)
    several = found.lists.total() > found.single
    if found.floats and found.floats + found.ids > found.others:
        size = found.lists.most_common(1)[0][0] if several else 1
        return Labels(LabelInfo("number", size))
    kind = LabelInfo("multi" if several else "class")
    if found.ids <= found.others:
        return Labels(kind, {name: number for number, name in enumerate(sorted(found.words | found.id_words))})
    if found.largest >= MOST_CLASSES:
        raise UsageError(f"labels up to {found.largest:,} are no class ids", todo="Use --label none.")
    if names is None:
        names = [str(number) for number in range(found.largest + 1)]
    if len(set(names)) != len(names):
        raise UsageError(f"{Counter(names).most_common(1)[0][0]!r} is named twice among the classes")
    if len(names) <= found.largest:
        raise UsageError(f"{len(names):,} names for class ids up to {found.largest:,}")
    return Labels(kind, {name: number for number, name in enumerate(names)}, by_id=True)
