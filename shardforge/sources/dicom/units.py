"""What becomes one sample: headers → items, one for every slice, stack or volume, and for whatever is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shardforge.dicom.series import group_slices
from shardforge.dicom.slices import SeriesFinding, Slice, SliceGroup
from shardforge.shards.catalogue import Reason
from shardforge.sources.dicom.columns import item_columns
from shardforge.sources.dicom.header import Header
from shardforge.sources.dicom.options import DicomSourceOptions
from shardforge.sources.item import Item, SourceFile, frame_name
from shardforge.sources.names import source_name


@dataclass(frozen=True, slots=True)
class Units:
    """Items, by source and frame, and what was found of the groups of slices that they come from."""

    items: list[Item]
    findings: tuple[SeriesFinding, ...]


def make_units(
    headers: Sequence[Header], options: DicomSourceOptions, digest: Callable[[Header], bytes | None]
) -> Units:
    """Items of all headers but whole segmentations, which are no samples of their own.

    Fields of an item: ``image`` is the slice itself, or the first slice of a volume. A stack has ``slice.-1``,
    ``slice.+1``, … up to the number of neighbours, the edge slices repeated; a volume has ``slice.001``, … in
    ascending order along the normal, unless all its slices are frames of one file, which is then the only field;
    ``spare.001.1``, … are further copies of that slice (``spare.000.…`` of ``image``), with other pixels. For both,
    ``dicom_frames`` has the frame of every slice in its file, in ascending order along the normal. For the other
    units such a copy is an item of its own.

    Args:
        headers: by path.
        digest: of a file's pixels, or None.
    """
    items = [_problem_item(header, options) for header in headers if header.problem is not None]
    pictures = [header for header in headers if header.problem is None and header.kind != "segmentation"]
    places = [(header, frame) for header in pictures for frame in range(header.frames)]
    slices = [_slice(header, frame) for header, frame in places]

    def digest_at(index: int) -> bytes | None:
        header, frame = places[index]
        found = digest(header)
        return None if found is None else found + b"%d" % frame

    groups = group_slices(slices, digest_at)
    for group in groups:
        items += _Builder(group, places, options).items()
    items.sort(key=lambda item: (item.source, item.frame))
    return Units(items, tuple(group.finding for group in groups))


def _problem_item(header: Header, options: DicomSourceOptions) -> Item:
    identified = header.patient or header.study or header.series or header.sop_instance
    return Item(
        source=source_name(header.file.path),
        files={"image": header.file},
        group=_group_key(header, options) if identified else None,
        columns=item_columns(header),
        problem=header.problem,
        detail=header.detail,
    )


def _group_key(header: Header, options: DicomSourceOptions) -> str | None:
    match options.group_by:
        case "patient":
            return header.patient_key
        case "study":
            return header.study_key
        case "series":
            return header.series_key
        case _:
            return None


def _slice(header: Header, frame: int) -> Slice:
    place = header.places[frame] if header.places else None
    # Frames without places of their own do not all lie where the object's one position says.
    alone = header.frames == 1
    position = header.position if alone else None
    numbers = (header.acquisition_number, header.echo_number, header.temporal_position, header.b_value)
    if place is not None:
        position = place.position or position
        numbers = (place.acquisition, place.echo, place.temporal, place.b_value)  # type: ignore[assignment]
    acquisition, echo, temporal, b_value = numbers
    return Slice(
        name=header.file.path,
        series=header.series_key,
        sop=header.sop_instance,
        frame=frame,
        position=position,
        orientation=header.orientation if place is None else place.orientation or header.orientation,
        rows=header.rows,
        columns=header.columns,
        spacing=header.spacing if place is None else place.spacing or header.spacing,
        image_type=header.image_type,
        instance=header.instance_number,
        acquisition=acquisition,
        echo=echo,
        temporal=temporal,
        b_value=b_value,
        spacing_between_slices=header.spacing_between_slices,
        cut=header.cut,
    )


class _Builder:
    """Makes the items of one group of slices."""

    def __init__(self, group: SliceGroup, places: Sequence[tuple[Header, int]], options: DicomSourceOptions) -> None:
        self._group, self._options = group, options
        self._slices = [places[index] for index in group.order]
        self._duplicates = [(places[index], places[kept]) for index, kept in group.duplicates.items()]
        number = {index: n for n, index in enumerate(group.order)}
        self._spares = [(places[index], number[kept]) for index, kept in group.spares.items()]
        found = group.finding
        grid = found.regular and not found.tilted and not found.same_position
        self._bad = not grid and options.irregular == "fail"

    def items(self) -> Iterator[Item]:
        whole = self._options.unit == "volume"
        for (header, frame), kept in self._duplicates:
            same = f"the same slice as {source_name(kept[0].file.path)}"
            item = self._item(header, frame, None, {}, {}, Reason.DUPLICATE_SLICE, same)
            sample, number = self._slices[0] if whole else kept
            yield replace(item, same_as=frame_name(source_name(sample.file.path), number))
        match self._options.unit:
            case "stack":
                for index in range(len(self._slices)):
                    yield self._stack(*self._slices[index], index)
                for place, index in self._spares:
                    yield self._stack(*place, index)
            case "volume":
                yield self._volume()
            case _:
                for index, (header, frame) in enumerate(self._slices):
                    yield self._item(header, frame, index, {}, {})
                for (header, frame), index in self._spares:
                    yield self._item(header, frame, index, {}, {})

    def _stack(self, header: Header, frame: int, index: int) -> Item:
        reach = range(-self._options.neighbours, self._options.neighbours + 1)
        last = len(self._slices) - 1
        members = [self._slices[min(max(index + step, 0), last)] if step else (header, frame) for step in reach]
        files = {f"slice.{step:+d}": one.file for step, (one, _) in zip(reach, members, strict=True) if step}
        frames = {"dicom_frames": [number for _, number in members]}
        return self._item(header, frame, index, files, frames, *self._problem())

    def _volume(self) -> Item:
        header, frame = self._slices[0]
        files: dict[str, SourceFile] = {}
        if any(one.file != header.file for one, _ in self._slices):
            width = max(3, len(str(len(self._slices) - 1)))
            files = {f"slice.{n:0{width}d}": one.file for n, (one, _) in enumerate(self._slices) if n}
            copies: Counter[int] = Counter()
            for (one, _), n in self._spares:
                copies[n] += 1
                files[f"spare.{n:0{width}d}.{copies[n]}"] = one.file
        else:
            # Every frame has its spare in the same file.
            others = dict.fromkeys(one.file for (one, _), _ in self._spares)
            files = {f"spare.000.{n}": one for n, one in enumerate(others, 1)}
        frames = {"dicom_frames": [number for _, number in self._slices]}
        return self._item(header, frame, None, files, frames, *self._problem())

    def _problem(self) -> tuple[Reason | None, str]:
        alone = len(self._slices) == 1 and not self._group.finding.same_position
        if self._options.unit == "volume" and alone:
            return Reason.SINGLE_SLICE, ""
        words = ", ".join(self._group.finding.words)
        return (Reason.BAD_GEOMETRY, words) if self._bad else (None, "")

    def _item(
        self,
        header: Header,
        frame: int,
        index: int | None,
        files: dict[str, SourceFile],
        columns: dict[str, Any],
        problem: Reason | None = None,
        detail: str = "",
    ) -> Item:
        return Item(
            source=source_name(header.file.path),
            files={"image": header.file, **files},
            group=_group_key(header, self._options),
            columns={**item_columns(header, self._group, index, frame), **columns},
            problem=problem,
            detail=detail,
            frame=frame,
            frames=header.frames,
        )
