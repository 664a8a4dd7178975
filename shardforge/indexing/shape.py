"""What dataset the samples of all tars together are: its image, its other fields, its labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shardforge.errors import UsageError
from shardforge.indexing.labels import LabelCounts, Labels, decide_labels, value_of
from shardforge.indexing.pictures import FORMS
from shardforge.indexing.survey import Survey
from shardforge.shards.manifest import FieldKind

_TEXTS: dict[str, FieldKind] = {"txt": "text", "text": "text", "caption": "text", "json": "json", "npy": "array"}


@dataclass(frozen=True)
class Shape:
    """What the dataset is.

    Attributes:
        image: field of the image.
        channels, depth: 1 or 3; 8 or 16 bits.
        fields: field → what it is, the image included.
        always: fields that no undamaged sample lacks.
        left_out: field that no reader of ours can give → samples that have it.
        turned: images with a declared orientation.
    """

    image: str
    channels: int
    depth: int
    fields: dict[str, FieldKind]
    always: frozenset[str]
    labels: Labels
    left_out: dict[str, int]
    turned: int


@dataclass
class _Counts:
    samples: int
    has: Counter[str]
    pictures: dict[str, Counter[tuple[int, int]]]
    masks: Counter[str]
    turned: Counter[str]
    labels: LabelCounts


def find_shape(
    surveys: Iterable[Survey], *, image: str | None, label: str | None, class_names: Sequence[str] | None
) -> Shape:
    """Looks at all samples once.

    Args:
        image: the field that holds the image; None: the most frequent of jpg, png and webp, else of ``*.jpg`` and so
            on, else npy.
        label: ``cls``, ``json:NAME``, or None for a dataset without labels.
        class_names: by id.

    Raises:
        UsageError: nothing here can be the image, or labels that make no sense.
    """
    counts = _Counts(0, Counter(), {}, Counter(), Counter(), LabelCounts())
    for each in surveys:
        for row in each.rows():
            _count(counts, row)
    if label is not None and not counts.labels.single and not counts.labels.lists and label.startswith("json:"):
        raise UsageError(f"no json member has a label under {label.removeprefix('json:')!r}")
    chosen = _image(counts, image)
    labels = decide_labels(counts.labels, class_names)
    fields: dict[str, FieldKind] = {chosen: "image"}
    if label == "cls" and labels.info.kind == "class" and labels.by_id:
        fields["cls"] = "class"
    for name in counts.has:
        kind = _kind(counts, name)
        if name not in fields and kind is not None:
            fields[name] = kind
    sizes = counts.pictures[chosen]
    return Shape(
        chosen,
        channels=1 if {channels for channels, _ in sizes} == {1} else 3,
        depth=16 if {depth for _, depth in sizes} == {16} and not chosen.endswith("jpg") else 8,
        fields=dict(sorted(fields.items())),
        always=frozenset(name for name, count in counts.has.items() if count == counts.samples),
        labels=labels,
        left_out={name: count for name, count in counts.has.most_common() if name not in fields},
        turned=counts.turned[chosen],
    )


def _count(counts: _Counts, row: Mapping[str, Any]) -> None:
    if row["cut"] == "no":
        counts.samples += 1
        counts.has.update(member["name"] for member in row["members"])
    for picture in row["pictures"]:
        name = picture["name"]
        if picture["problem"] is None and picture["format"] == FORMS[name.rpartition(".")[2]]:
            counts.pictures.setdefault(name, Counter())[picture["channels"], picture["depth"]] += 1
        counts.masks[name] += picture["mask"]
        counts.turned[name] += picture["turned"]
    counts.labels.add(value_of(row["label"]))


def _image(counts: _Counts, image: str | None) -> str:
    usable = {name: sizes.total() for name, sizes in counts.pictures.items()}
    if image is not None:
        if image not in usable:
            raise UsageError(f"no sample has a picture {image!r}", todo=_candidates(usable))
        return image
    raster = [name for name in usable if not name.endswith("npy")]
    for names in (
        [n for n in raster if n in FORMS],
        [n for n in raster if counts.masks[n] < usable[n]],
        raster,
        usable,
    ):
        if names:
            return max(sorted(names, key=lambda n: list(FORMS).index(n.rpartition(".")[2])), key=usable.__getitem__)
    told = ", ".join(f"{count:,} {name}" for name, count in counts.has.most_common(8)) or "none"
    raise UsageError(f"no sample holds a picture; members are: {told}")


def _candidates(usable: Mapping[str, int]) -> str:
    return f"There are: {', '.join(sorted(usable)) or 'none'}."


def _kind(counts: _Counts, name: str) -> FieldKind | None:
    form = name.rpartition(".")[2]
    if form == "png" and counts.masks[name] and counts.masks[name] >= counts.has[name]:
        return "mask"
    if form in ("jpg", "png", "webp"):
        # A grey PNG that is no mask as it is (fewer than 8 bits, say) would be stretched to other numbers.
        coloured = any(channels == 3 for channels, _ in counts.pictures.get(name, ()))
        return "picture" if coloured or (form != "png" and name in counts.pictures) else None
    return "text" if name == "cls" else _TEXTS.get(form)
