"""Which images a segmentation object was made on, by its header."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from shardforge.sources.dicom.functional_groups import PER_FRAME, SHARED
from shardforge.sources.dicom.values import Values

_SERIES, _INSTANCES, _INSTANCE = 0x00081115, 0x0008114A, 0x00081155
_DERIVATIONS, _SOURCES = 0x00089124, 0x00082112
TOP_LEVEL = (_SERIES, _SOURCES, SHARED, PER_FRAME)
"""Elements of the dataset that may name images."""
_MOST = 1 << 16
"""References read of one object; no slice count of a study comes near."""


def referenced_instances(values: Values) -> tuple[str, ...]:
    """SOP instance UIDs, each once, in file order: those of the Common Instance Reference module (PS3.3 C.12.2), of
    the top level's source images (C.7.6.1.1.4), and of the shared and per-frame Derivation Image macros
    (C.7.6.16.2.6), which for many objects are the only ones."""
    return tuple(dict.fromkeys(uid for uid in islice(_all(values), _MOST) if uid))


def _all(values: Values) -> Iterator[str]:
    for series in values.items(_SERIES):
        yield from _named(series, _INSTANCES)
    yield from _named(values, _SOURCES)
    for groups in (SHARED, PER_FRAME):
        for group in values.items(groups):
            for derivation in group.items(_DERIVATIONS):
                yield from _named(derivation, _SOURCES)


def _named(values: Values, sequence: int) -> Iterator[str]:
    return (item.text(_INSTANCE) for item in values.items(sequence))
