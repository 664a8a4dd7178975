"""The parquet rows of a tar made elsewhere: one for each of its samples, whatever became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from shardforge.errors import SampleError
from shardforge.indexing.labels import value_of
from shardforge.indexing.pictures import FORMS
from shardforge.indexing.shape import Shape
from shardforge.indexing.survey import Survey
from shardforge.indexing.tars import FoundTar
from shardforge.shards import metadata
from shardforge.shards.catalogue import Reason, Status
from shardforge.shards.metadata import Outcome
from shardforge.shards.tar import Extent

Look = Callable[[Extent], None]
"""Is given where the image of a sample lies; raises SampleError if it is not to be one."""


def shard_rows(tar: FoundTar, survey: Survey, shape: Shape, *, prefixed: bool, look: Look | None = None) -> pa.Table:
    """All rows of one tar.

    Args:
        prefixed: keys get the shard's name in front.
        look: sees every image that is kept.
    """
    outcomes, planned = [], list(survey.rows())
    labels: list[tuple[Any, Any]] = []
    for row in planned:
        label: tuple[Any, Any] = (None, None)
        try:
            outcome, label = _outcome(row, shape)
            if look is not None:
                look(outcome.extents[shape.image])
        except SampleError as error:
            outcome = Outcome(Status.FAILED, error.reason)
        outcomes.append(outcome)
        labels.append(label)
    target = metadata.schema(tuple(shape.fields), shape.labels.info, pa.schema([]))
    count = len(planned)
    columns = {
        "key": [f"{tar.name}/{row['key']}" if prefixed else row["key"] for row in planned],
        "shard": [tar.name] * count,
        "position": list(range(count)),
        "source": [f"{tar.name}.tar/{row['source']}" for row in planned],
        "frame": [0] * count,
        "group": [None] * count,
        "split": [tar.split] * count,
        "label": [label for label, _ in labels],
        "label_name": [name for _, name in labels],
    }
    arrays = {name: pa.array(values, target.field(name).type) for name, values in columns.items()}
    return metadata.table(pa.RecordBatch.from_pydict(arrays), outcomes, target)


def keys(survey: Survey) -> Iterator[str]:
    """The keys of a tar as they are in it."""
    return (row["key"] for row in survey.rows())


def _outcome(row: Mapping[str, Any], shape: Shape) -> tuple[Outcome, tuple[Any, Any]]:
    extents = {m["name"]: Extent(m["offset"], m["size"]) for m in row["members"] if m["name"] in shape.fields}
    if row["cut"] == "lost" or (row["cut"] == "last" and not shape.always <= {m["name"] for m in row["members"]}):
        raise SampleError(Reason.TRUNCATED)
    picture = next((picture for picture in row["pictures"] if picture["name"] == shape.image), None)
    if picture is None:
        other = any(picture["name"] in FORMS for picture in row["pictures"])
        raise SampleError(Reason.WRONG_FORMAT if other else Reason.MISSING_FIELD)
    if picture["problem"] is not None:
        raise SampleError(Reason(picture["problem"]))
    form = shape.image.rpartition(".")[2]
    if picture["format"] != FORMS[form] or (form == "npy" and picture["channels"] != shape.channels):
        raise SampleError(Reason.WRONG_FORMAT)
    label = shape.labels.of(value_of(row["label"]))
    outcome = Outcome(
        Status.SUCCESS,
        width=picture["width"],
        height=picture["height"],
        channels=shape.channels,
        original_width=picture["width"],
        original_height=picture["height"],
        original_format=picture["format"],
        bytes=picture["size"],
        sha256=picture["sha256"],
        source_bytes=picture["size"],
        source_sha256=picture["sha256"],
        scale_x=1.0,
        scale_y=1.0,
        offset_x=0.0,
        offset_y=0.0,
        extents=extents,
        sample_crc32=row["crc32"],
    )
    return outcome, label
