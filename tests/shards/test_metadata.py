"""The parquet rows: schema, joining plan and outcome, reading and writing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shardforge.errors import DamagedError
from shardforge.shards import metadata
from shardforge.shards.catalogue import Flag, Reason, Status
from shardforge.shards.manifest import LabelInfo
from shardforge.shards.metadata import Outcome
from shardforge.shards.tar import Extent

USER = pa.schema([("age", pa.int32()), ("weight", pa.float64())])
PLANNED = pa.RecordBatch.from_pydict(
    {
        "key": pa.array(["a", "b", None]),
        "shard": pa.array(["train-000000"] * 3),
        "position": pa.array([0, 1, 2], pa.int32()),
        "source": pa.array(["x.png", "y.png", "z.png"]),
        "frame": pa.array([0, 0, 0], pa.int32()),
        "group": pa.array([None, "g", None], pa.string()),
        "split": pa.array(["train"] * 3),
        "label": pa.array([4, None, 1], pa.int64()),
        "label_name": pa.array(["d", None, "a"]),
        "age": pa.array([30, 40, None], pa.int32()),
        "weight": pa.array([0.1, None, 2.5], pa.float64()),
    }
)
OUTCOMES = [
    Outcome(
        Status.SUCCESS,
        width=4,
        height=5,
        bytes=9,
        scale_x=0.1,
        flags=(Flag.ORIENTED, Flag.SUSPECT),
        extents={"jpg": Extent(512, 9), "mask.png": Extent(1536, 70)},
        sample_crc32=2**32 - 1,
    ),
    Outcome(Status.FAILED, Reason.TRUNCATED, source_bytes=3),
    Outcome(Status.SKIPPED, Reason.NOT_AN_IMAGE),
]
TARGET = metadata.schema(("mask.png", "jpg"), LabelInfo("class"), USER)


def test_numbers_of_the_format_are_int64_int32_or_float32() -> None:
    own = metadata.schema(("jpg", "cls"), LabelInfo("number", 3), pa.schema([]))
    kinds = {str(kind) for kind in own.types}
    assert kinds == {"string", "int32", "int64", "float", "list<item: string>", "list<item: float>"}
    assert "float64" not in kinds


@pytest.mark.parametrize(
    ("info", "label", "name"),
    [
        (LabelInfo("class"), pa.int64(), pa.string()),
        (LabelInfo("none"), pa.int64(), pa.string()),
        (LabelInfo("multi"), pa.list_(pa.int64()), pa.list_(pa.string())),
        (LabelInfo("number"), pa.float32(), pa.string()),
        (LabelInfo("number", 2), pa.list_(pa.float32()), pa.string()),
    ],
)
def test_label_columns_fit_the_kind_of_label(info: LabelInfo, label: pa.DataType, name: pa.DataType) -> None:
    assert metadata.label_types(info) == (label, name)


def test_rows_join_what_was_planned_and_what_became_of_it(tmp_path: Path) -> None:
    metadata.write(tmp_path / "a.parquet", metadata.table(PLANNED, OUTCOMES, TARGET))
    found = pq.read_table(tmp_path / "a.parquet")
    assert found.schema.equals(TARGET)
    rows = found.to_pylist()
    assert [row["status"] for row in rows] == ["success", "failed", "skipped"]
    assert [row["reason"] for row in rows] == [None, "truncated", "not_an_image"]
    assert [(row["jpg_offset"], row["jpg_size"]) for row in rows] == [(512, 9), (None, None), (None, None)]
    assert [(row["mask.png_offset"], row["mask.png_size"]) for row in rows] == [
        (1536, 70),
        (None, None),
        (None, None),
    ]
    assert [row["flags"] for row in rows] == [["oriented", "suspect"], [], []]
    assert [row["key"] for row in rows] == ["a", "b", None]
    assert [(row["age"], row["weight"]) for row in rows] == [(30, 0.1), (40, None), (None, 2.5)]
    assert rows[0]["sample_crc32"] == 4294967295
    assert rows[0]["scale_x"] == pytest.approx(0.1, abs=1e-8)
    assert rows[1]["source_bytes"] == 3


def test_a_file_is_one_zstd_row_group(tmp_path: Path) -> None:
    metadata.write(tmp_path / "a.parquet", metadata.table(PLANNED, OUTCOMES, TARGET))
    found = pq.ParquetFile(tmp_path / "a.parquet").metadata
    assert found.num_row_groups == 1
    assert {found.row_group(0).column(i).compression for i in range(found.num_columns)} == {"ZSTD"}


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        metadata.write(tmp_path / name, metadata.table(PLANNED, OUTCOMES, TARGET))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_own_columns_are_those_of_the_schema() -> None:
    own = metadata.own_columns(("mask.png", "jpg"))
    assert sorted([*own, "age", "weight"]) == sorted(TARGET.names)
    assert len(set(own)) == len(own)


def test_plan_and_outcomes_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="2 outcomes for 3 items"):
        metadata.table(PLANNED, OUTCOMES[:2], TARGET)


def test_some_columns_can_be_read_alone(tmp_path: Path) -> None:
    metadata.write(tmp_path / "a.parquet", metadata.table(PLANNED, OUTCOMES, TARGET))
    assert metadata.read(tmp_path / "a.parquet", ["key", "age"]).to_pydict() == {
        "key": ["a", "b", None],
        "age": [30, 40, None],
    }


@pytest.mark.parametrize("data", [None, b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"no parquet at all"])
def test_what_is_no_parquet_is_damage(tmp_path: Path, data: bytes | None) -> None:
    path = tmp_path / "train-000000.parquet"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(DamagedError, match=r"train-000000\.parquet"):
        metadata.read(path)


def test_facts_are_added_as_replace_does() -> None:
    known = Outcome(Status.FAILED, Reason.CORRUPT, width=4)
    more = known.but(status=Status.SUCCESS, reason=None, height=5)
    assert more == replace(known, status=Status.SUCCESS, reason=None, height=5)
    assert known == Outcome(Status.FAILED, Reason.CORRUPT, width=4)
    with pytest.raises(TypeError, match="heigth"):
        known.but(heigth=5)
