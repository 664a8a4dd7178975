"""The parquet beside each shard: one row per planned item, whatever became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shardforge.errors import DamagedError
from shardforge.shards.catalogue import Flag, Reason, Status
from shardforge.shards.manifest import LabelInfo
from shardforge.shards.tar import Extent


@dataclass(frozen=True)
class Outcome:
    """What became of one item. Everything but ``status`` may be unknown for an item that did not succeed.

    Attributes:
        width, height, channels: of the stored image, in pixels.
        original_width, original_height: of the source image, upright, in pixels.
        original_format: of the source's content (``jpeg``, ``png``, …).
        n_frames: frames or pages in the source file; None where it only says that there are several.
        bytes, sha256: size and digest of the main payload.
        source_bytes, source_sha256: size and digest of the main source file.
        sidecar_sha256: one digest over the sidecar files, or None when there are none.
        scale_x, scale_y, offset_x, offset_y: a point (x, y) of the upright source image lies at
            (x·scale_x + offset_x, y·scale_y + offset_y) in the stored one; pixel edges are integers.
        decoder, resampler: who made the pixels.
        extents: field → place in the shard.
        sample_crc32: checksum of the sample's bytes in the shard, headers and padding included.
        pixels_hash: 64 bits of the stored pixels and their shape, in hex; what is equal in every pixel has the same.
        duplicate_of: key of the item that was kept in place of this one.
        annotations: column → boxes or points in pixels of the stored image (or fractions of it).
        dicom: column → what was learned of a DICOM image; see :data:`DICOM`.
    """

    status: Status
    reason: Reason | None = None
    width: int | None = None
    height: int | None = None
    channels: int | None = None
    original_width: int | None = None
    original_height: int | None = None
    original_format: str | None = None
    n_frames: int | None = None
    bytes: int | None = None
    sha256: str | None = None
    source_bytes: int | None = None
    source_sha256: str | None = None
    sidecar_sha256: str | None = None
    scale_x: float | None = None
    scale_y: float | None = None
    offset_x: float | None = None
    offset_y: float | None = None
    decoder: str | None = None
    resampler: str | None = None
    flags: tuple[Flag, ...] = ()
    extents: Mapping[str, Extent] = field(default_factory=dict)
    sample_crc32: int | None = None
    pixels_hash: str | None = None
    duplicate_of: str | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    dicom: Mapping[str, Any] = field(default_factory=dict)

    def but(self, **facts: Any) -> Outcome:
        """As :func:`dataclasses.replace`, in a tenth of the time: what is known of an item grows in several steps.

        Raises:
            TypeError: there is no such fact.
        """
        changed = object.__new__(Outcome)
        content = changed.__dict__
        content.update(self.__dict__)
        content.update(facts)
        if len(content) != len(self.__dict__):
            raise TypeError(f"no facts of an outcome: {sorted(content.keys() - self.__dict__.keys())}")
        return changed


DICOM: Mapping[str, pa.DataType] = {
    "dicom_transfer_syntax": pa.string(),
    "dicom_photometric": pa.string(),
    "dicom_bits_stored": pa.int32(),
    "dicom_signed": pa.bool_(),
    "dicom_slope": pa.float32(),
    "dicom_intercept": pa.float32(),
    "dicom_modality_source": pa.string(),
    "dicom_voi_source": pa.list_(pa.string()),
    "dicom_window_center": pa.list_(pa.float32()),
    "dicom_window_width": pa.list_(pa.float32()),
    "dicom_voi_function": pa.list_(pa.string()),
    "dicom_inverted": pa.bool_(),
    "dicom_padding_fraction": pa.float32(),
    "dicom_clip_low": pa.list_(pa.float32()),
    "dicom_clip_high": pa.list_(pa.float32()),
    "dicom_spacing_row": pa.float32(),
    "dicom_spacing_col": pa.float32(),
    "dicom_spacing_source": pa.string(),
    "dicom_position": pa.list_(pa.float32()),
    "dicom_orientation": pa.list_(pa.float32()),
    "dicom_chest_wall": pa.string(),
    "dicom_valid_rows": pa.int32(),
    "dicom_depth": pa.int32(),
    "dicom_affine": pa.list_(pa.float32()),
    "dicom_second_decoder": pa.string(),
}
"""What making a sample tells of a DICOM image, beside the plan's own ``dicom_*`` columns.

Lists have one entry per channel (``…_position`` and ``…_orientation`` are ImagePositionPatient and
ImageOrientationPatient). Distances are mm, spacings those of the source, or of a stored volume; ``dicom_depth``
counts the slices of a volume, ``dicom_affine`` is its affine [3, 4] row by row, from (z, y, x) to mm in patient
coordinates (LPS); ``dicom_chest_wall`` is the side of a mammogram where it is; ``dicom_valid_rows`` counts the rows
of a salvaged image that the file has; ``dicom_second_decoder`` gave the same pixels (``none``: there is none for such
an image), null where nothing was compared.
"""
_RESAMPLED = ("dicom_spacing_slice", "dicom_spacing_row", "dicom_spacing_col")
"""Planned from the source; resampling a volume gives it other ones."""


_PLANNED: tuple[tuple[str, pa.DataType], ...] = (
    ("key", pa.string()),
    ("shard", pa.string()),
    ("position", pa.int32()),
)
_SOURCE: tuple[tuple[str, pa.DataType], ...] = (
    ("source", pa.string()),
    ("frame", pa.int32()),
    ("group", pa.string()),
    ("split", pa.string()),
)
_LEARNED: tuple[tuple[str, pa.DataType], ...] = (
    ("width", pa.int32()),
    ("height", pa.int32()),
    ("channels", pa.int32()),
    ("original_width", pa.int32()),
    ("original_height", pa.int32()),
    ("original_format", pa.string()),
    ("n_frames", pa.int32()),
    ("bytes", pa.int64()),
    ("sha256", pa.string()),
    ("source_bytes", pa.int64()),
    ("source_sha256", pa.string()),
    ("sidecar_sha256", pa.string()),
    ("scale_x", pa.float32()),
    ("scale_y", pa.float32()),
    ("offset_x", pa.float32()),
    ("offset_y", pa.float32()),
    ("decoder", pa.string()),
    ("resampler", pa.string()),
    ("flags", pa.list_(pa.string())),
    ("sample_crc32", pa.int64()),
    ("pixels_hash", pa.string()),
    ("duplicate_of", pa.string()),
)


def label_types(label: LabelInfo) -> tuple[pa.DataType, pa.DataType]:
    """The column types of ``label`` and ``label_name``."""
    if label.kind == "multi":
        return pa.list_(pa.int64()), pa.list_(pa.string())
    if label.kind == "number":
        return (pa.float32() if label.size == 1 else pa.list_(pa.float32())), pa.string()
    return pa.int64(), pa.string()


def own_columns(fields: Sequence[str]) -> list[str]:
    """The names of the format's own columns; user columns may not have them."""
    names = [name for name, _ in (*_PLANNED, *_SOURCE, *_LEARNED)]
    return [*names, "status", "reason", "label", "label_name", *(name for name, _ in _extent_columns(fields))]


def schema(fields: Sequence[str], label: LabelInfo, user: pa.Schema) -> pa.Schema:
    """The schema of a dataset's parquet files.

    Args:
        fields: member names that samples may have.
        user: the user's own columns.
    """
    label_type, name_type = label_types(label)
    columns = [
        *_PLANNED,
        ("status", pa.string()),
        ("reason", pa.string()),
        *_SOURCE,
        ("label", label_type),
        ("label_name", name_type),
        *_LEARNED,
        *_extent_columns(fields),
    ]
    return pa.schema([*(pa.field(name, kind) for name, kind in columns), *user])


def _extent_columns(fields: Sequence[str]) -> list[tuple[str, pa.DataType]]:
    return [(f"{name}_{part}", pa.int64()) for name in sorted(fields) for part in ("offset", "size")]


def table(
    planned: pa.RecordBatch, outcomes: Sequence[Outcome], target: pa.Schema, annotations: Sequence[str] = ()
) -> pa.Table:
    """Joins what was planned with what became of it.

    Args:
        planned: one row per item in shard order, with the columns that are known before any pixel is read.
        outcomes: one per row of ``planned``.
        target: as :func:`schema` gives it.
        annotations: columns of ``target`` that hold the outcomes' boxes and points.
    """
    if planned.num_rows != len(outcomes):
        raise ValueError(f"{len(outcomes)} outcomes for {planned.num_rows} items")
    columns = []
    for column in target:
        name = column.name
        base, _, part = name.rpartition("_")
        if name in _RESAMPLED and name in planned.schema.names:
            stored = (outcome.dicom.get(name) for outcome in outcomes)
            pairs = zip(stored, planned.column(name).to_pylist(), strict=True)
            columns.append(pa.array([given if own is None else own for own, given in pairs], column.type))
        elif name in DICOM and name not in planned.schema.names:
            columns.append(pa.array([outcome.dicom.get(name) for outcome in outcomes], column.type))
        elif name in annotations:
            columns.append(pa.array([outcome.annotations.get(name) for outcome in outcomes], column.type))
        elif name in planned.schema.names:
            # Casting to the same type would still load all of pyarrow's functions.
            given = planned.column(name)
            columns.append(given if given.type == column.type else given.cast(column.type))
        elif part in ("offset", "size") and name not in dict(_LEARNED):
            extents = [outcome.extents.get(base) for outcome in outcomes]
            columns.append(pa.array([None if e is None else getattr(e, part) for e in extents], column.type))
        else:
            columns.append(pa.array([getattr(outcome, name) for outcome in outcomes], column.type))
    return pa.Table.from_arrays(columns, schema=target)


def write(path: Path, content: pa.Table) -> None:
    """Writes one row group, zstd-compressed, and brings it to the disk."""
    with open(path, "wb") as file:
        pq.write_table(content, file, compression="zstd", row_group_size=max(1, content.num_rows), store_schema=True)


def read(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Reads a shard's rows, all columns or some.

    Raises:
        DamagedError: the file is missing or no parquet.
    """
    try:
        return pq.read_table(path, columns=columns if columns is None else list(columns), partitioning=None)
    except (OSError, pa.ArrowException, KeyError) as error:
        raise DamagedError(f"cannot be read as parquet ({str(error).splitlines()[0]})", where=path) from None
