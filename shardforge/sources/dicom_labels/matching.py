"""Which items a row of a table names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from shardforge.sources.dicom_labels.ids import SliceIds, plain
from shardforge.sources.dicom_labels.options import Key
from shardforge.sources.dicom_labels.paths import PathIndex
from shardforge.sources.recognise import image_stem


@dataclass(frozen=True, slots=True)
class Found:
    """Numbers of the items that a row names; ``several`` where it fits files or slices that have nothing in common,
    so that none is meant."""

    items: tuple[int, ...] = ()
    several: bool = False


_NOTHING = Found()


class Matcher:
    """Items by what tables call them.

    Args:
        items: per item the slices it is made of.
        first_slice: what the table calls the first slice of a series.
    """

    def __init__(self, items: Sequence[Sequence[SliceIds]], first_slice: int = 0) -> None:
        self._slices = [(number, ids) for number, slices in enumerate(items) for ids in slices]
        self._first_slice = first_slice

    def find(self, key: Key, words: Sequence[str]) -> Found:
        """The items that a row names.

        Args:
            words: its identifier, "" for none; for ``slice`` the patient and the slice number.
        """
        match key:
            case "sop":
                items = self._by_sop.get(words[0])
                return self._by_stem(words[0]) if items is None else Found(items)
            case "series":
                return Found(self._by_series.get(words[0], ()))
            case "study":
                return Found(self._by_study.get(words[0], ()))
            case "patient":
                return Found(self._by_patient.get(words[0], ()))
            case "slice":
                return self._slice(*words)
            case "path":
                path, several = self._paths.find(words[0])
                return Found(() if path is None else self._by_path[path], several)

    def contested(self) -> set[int]:
        """Items whose file was found under differing paths of the table."""
        return {item for path in self._paths.contested for item in self._by_path[path]}

    def slice_counts(self) -> dict[str, frozenset[int]]:
        """Patient → the numbers of slices that its series have."""
        counts: dict[str, dict[str, int]] = {}
        for (patient, index), by_series in self._by_slice.items():
            for series in by_series:
                known = counts.setdefault(patient, {})
                known[series] = max(index + 1, known.get(series, 0))
        return {patient: frozenset(by_series.values()) for patient, by_series in counts.items()}

    def _by_stem(self, word: str) -> Found:
        paths = self._stems.get(image_stem(word.replace("\\", "/").rpartition("/")[2]), ())
        return Found(self._by_path[paths[0]]) if len(paths) == 1 else Found(several=bool(paths))

    def _slice(self, patient: str, word: str) -> Found:
        if not (word.isascii() and word.isdecimal()):
            return _NOTHING
        by_series = self._by_slice.get((patient, int(word) - self._first_slice), {})
        items = tuple(next(iter(by_series.values()), ()))
        return Found(items) if len(by_series) == 1 else Found(several=bool(by_series))

    @cached_property
    def _by_sop(self) -> dict[str, tuple[int, ...]]:
        return self._index(lambda ids: plain(ids.sop))

    @cached_property
    def _by_series(self) -> dict[str, tuple[int, ...]]:
        return self._index(lambda ids: plain(ids.series))

    @cached_property
    def _by_study(self) -> dict[str, tuple[int, ...]]:
        return self._index(lambda ids: plain(ids.study))

    @cached_property
    def _by_patient(self) -> dict[str, tuple[int, ...]]:
        return self._index(lambda ids: plain(ids.patient))

    @cached_property
    def _by_path(self) -> dict[str, tuple[int, ...]]:
        return self._index(lambda ids: ids.path)

    @cached_property
    def _paths(self) -> PathIndex:
        return PathIndex(self._by_path)

    @cached_property
    def _stems(self) -> dict[str, list[str]]:
        stems: dict[str, list[str]] = {}
        for path in self._by_path:
            stems.setdefault(image_stem(path.rpartition("/")[2]), []).append(path)
        return stems

    @cached_property
    def _by_slice(self) -> dict[tuple[str, int], dict[str, dict[int, None]]]:
        slices: dict[tuple[str, int], dict[str, dict[int, None]]] = {}
        for number, ids in self._slices:
            if ids.slice_index is not None and plain(ids.patient):
                by_series = slices.setdefault((plain(ids.patient), ids.slice_index), {})
                by_series.setdefault(plain(ids.series), {})[number] = None
        return slices

    def _index(self, name: Callable[[SliceIds], str]) -> dict[str, tuple[int, ...]]:
        found: dict[str, dict[int, None]] = {}
        for number, ids in self._slices:
            if word := name(ids):
                found.setdefault(word, {})[number] = None
        return {word: tuple(numbers) for word, numbers in found.items()}
