"""The memory-mapped index against plain lists."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from shardforge.errors import DamagedError, StorageError
from shardforge.shards import index, metadata
from shardforge.shards.catalogue import Reason, Status
from shardforge.shards.manifest import LabelInfo
from shardforge.shards.metadata import Outcome
from shardforge.shards.tar import Extent

FIELDS = ("jpg", "txt")


def parquet(shard: int, rows: int, label: LabelInfo) -> pa.Table:
    """Rows of which every fifth failed and every third of the others lacks its ``txt``."""
    outcomes = [
        Outcome(Status.FAILED, Reason.CORRUPT)
        if place % 5 == 4
        else Outcome(
            Status.SUCCESS,
            extents={
                "jpg": Extent(shard * 10_000 + place * 10, place + 1),
                **({"txt": Extent(shard * 10_000 + place * 10 + 5, 3)} if place % 3 else {}),
            },
        )
        for place in range(rows)
    ]
    values = {
        "class": [place % 7 for place in range(rows)],
        "multi": [list(range(place % 4)) for place in range(rows)],
        "number": [place / 4 for place in range(rows)],
        "none": [None] * rows,
    }
    label_type, name_type = metadata.label_types(label)
    planned = pa.RecordBatch.from_pydict(
        {
            "key": pa.array([f"{shard}-{place}" for place in range(rows)]),
            "shard": pa.array([f"train-{shard:06d}"] * rows),
            "position": pa.array(range(rows), pa.int32()),
            "source": pa.array(["s"] * rows),
            "frame": pa.array([0] * rows, pa.int32()),
            "group": pa.array([None] * rows, pa.string()),
            "split": pa.array(["train"] * rows),
            "label": pa.array(values[label.kind], label_type),
            "label_name": pa.array([None] * rows, name_type),
        }
    )
    return metadata.table(planned, outcomes, metadata.schema(FIELDS, label, pa.schema([])))


def write(path: Path, sizes: list[int], kind: str) -> tuple[index.SplitIndex, list[dict[str, object]]]:
    """An index over shards of these sizes, and the same as plain rows."""
    label = LabelInfo(kind)  # type: ignore[arg-type]
    target = index.schema(FIELDS, label)
    tables = [parquet(shard, rows, label) for shard, rows in enumerate(sizes)]
    parts = (index.rows(shard, table.select(index.columns(target)), target) for shard, table in enumerate(tables))
    index.write(path, parts, target)
    plain = [
        {**row, "shard": shard}
        for shard, table in enumerate(tables)
        for row in table.to_pylist()
        if row["status"] == "success"
    ]
    return index.SplitIndex(path, target), plain


@pytest.mark.parametrize("kind", ["class", "multi", "number", "none"])
@pytest.mark.parametrize("batch", [7, 16, 1 << 20])
def test_gathering_gives_what_plain_lists_give(
    tmp_path: Path, kind: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "BATCH", batch)
    found, plain = write(tmp_path / "train.index.arrow", [20, 1, 33, 3], kind)
    assert len(found) == len(plain) == 47
    rng = np.random.default_rng(0)
    for ids in (np.arange(47), rng.permutation(47), rng.integers(0, 47, 100), np.array([46]), np.empty(0, np.int64)):
        rows = [plain[i] for i in ids]
        assert found.keys(ids) == [row["key"] for row in rows]
        for field in FIELDS:
            extents = found.extents(field, ids)
            assert extents.shard.tolist() == [row["shard"] for row in rows]
            missing = [row[f"{field}_offset"] is None for row in rows]
            assert (extents.size < 0).tolist() == missing
            kept = ~np.array(missing, bool)
            assert extents.offset[kept].tolist() == [row[f"{field}_offset"] for row in rows if row[f"{field}_size"]]
            assert extents.size[kept].tolist() == [row[f"{field}_size"] for row in rows if row[f"{field}_size"]]
        shards, positions = found.places(ids)
        assert (shards.dtype, positions.dtype) == (np.int32, np.int32)
        assert positions.tolist() == [row["position"] for row in rows]
        if kind != "none":
            assert found.labels(ids).to_pylist() == [row["label"] for row in rows]
    assert found.column("key").to_pylist() == [row["key"] for row in plain]


def test_every_batch_but_the_last_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "BATCH", 16)
    write(tmp_path / "i", [20, 1, 33, 3], "class")
    reader = pa.ipc.open_file(tmp_path / "i")
    assert [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)] == [16, 16, 15]


def test_an_index_of_no_samples_is_one(tmp_path: Path) -> None:
    found, plain = write(tmp_path / "i", [], "class")
    assert len(found) == len(plain) == 0
    assert found.find("a") is None
    assert found.keys(np.empty(0, np.int64)) == []
    assert found.places(np.empty(0, np.int64))[0].tolist() == []


def test_a_key_is_found_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "BATCH", 7)
    found, plain = write(tmp_path / "i", [20, 33], "class")
    assert [found.find(str(row["key"])) for row in plain] == list(range(len(plain)))
    assert found.find("0-4") is None
    assert found.find("") is None


def test_an_index_travels_to_another_process(tmp_path: Path) -> None:
    found, plain = write(tmp_path / "i", [20], "class")
    again = pickle.loads(pickle.dumps(found))  # noqa: S301
    assert again.keys(np.arange(len(plain))) == [row["key"] for row in plain]


def test_the_same_rows_give_the_same_bytes_however_they_are_cut(tmp_path: Path) -> None:
    label = LabelInfo("class")
    target = index.schema(FIELDS, label)
    whole = index.rows(0, parquet(0, 50, label), target)
    index.write(tmp_path / "a", [whole], target)
    index.write(tmp_path / "b", [whole.slice(0, 3), whole.slice(3, 0), whole.slice(3)], target)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_missing_index_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="missing"):
        index.SplitIndex(tmp_path / "i", index.schema(FIELDS, LabelInfo("class")))


def test_what_is_no_index_of_this_dataset_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = index.schema(FIELDS, LabelInfo("class"))
    write(tmp_path / "i", [20], "class")
    good = (tmp_path / "i").read_bytes()
    for number, data in enumerate((b"", b"ARROW1", good[:100], good[:-50], bytes(len(good)))):
        path = tmp_path / str(number)
        path.write_bytes(data)
        with pytest.raises(DamagedError):
            index.SplitIndex(path, target)
    with pytest.raises(DamagedError, match="columns differ"):
        index.SplitIndex(tmp_path / "i", index.schema(("jpg",), LabelInfo("class")))
    monkeypatch.setattr(index, "BATCH", 7)
    write(tmp_path / "short", [20], "class")
    monkeypatch.setattr(index, "BATCH", 16)
    with pytest.raises(DamagedError, match="wrong size"):
        index.SplitIndex(tmp_path / "short", target)
