"""``find_sample``: by key, by number, with all its files."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shardforge.errors import DamagedError, StorageError, UsageError
from shardforge.inspect.sample import find_sample
from shardforge.shards import metadata
from shardforge.shards.manifest import LabelKind
from tests.datasets import make_dataset


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("samples")
    make_dataset(
        path,
        {"train": [8, 7], "val": [5]},
        sidecars=("txt", "json", "mask.png"),
        optional=("txt",),
        failed_per_shard=2,
    )
    return path


def rows_of(root: Path, split: str = "") -> list[dict[str, object]]:
    return [row for path in sorted(root.glob(f"{split}*.parquet")) for row in pq.read_table(path).to_pylist()]


def test_every_key_finds_its_row(root: Path) -> None:
    rows = rows_of(root)
    assert len(rows) == (8 + 2) + (7 + 2) + (5 + 2)
    for row in rows:
        view = find_sample(root, str(row["key"]))
        assert view.row == row
        assert (view.split, view.shard, view.position) == (row["split"], row["shard"], row["position"])


def test_numbers_count_samples_over_all_splits_or_in_one(root: Path) -> None:
    good = [row for row in rows_of(root) if row["status"] == "success"]
    for number, row in enumerate(good):
        view = find_sample(root, str(number))
        assert (view.row, view.number) == (row, number)
    val = [row for row in good if row["split"] == "val"]
    for number, row in enumerate(val):
        view = find_sample(root, str(number), "val")
        assert (view.row, view.number) == (row, len(good) - len(val) + number)


def test_an_exact_key_wins_over_a_number(root: Path) -> None:
    assert find_sample(root, "000000012").row["key"] == "000000012"
    assert find_sample(root, "12").row["key"] != "000000012"
    for near in ("0000000012", "012", "00000012"):
        with pytest.raises(UsageError, match="no sample"):
            find_sample(root, near)


def test_members_are_those_of_the_tar(root: Path) -> None:
    with tarfile.open(root / "train-000001.tar", "r:") as tar:
        members = {member.name: (member, tar.extractfile(member).read()) for member in tar}  # type: ignore[union-attr]
    row = next(row for row in rows_of(root, "train-000001") if row["status"] == "success")
    view = find_sample(root, str(row["key"]))
    expected = sorted(name for name in members if name.startswith(f"{row['key']}."))
    assert [member.name for member in view.members] == expected
    for member in view.members:
        info, data = members[member.name]
        assert (member.offset, member.size) == (info.offset_data, info.size)
        assert view.read(member) == data


def test_saved_files_are_those_of_the_tar(root: Path, tmp_path: Path) -> None:
    view = find_sample(root, "1")
    saved = view.save(tmp_path / "new" / "folder")
    assert [path.name for path in saved] == [member.name for member in view.members]
    assert all(
        path.parent == tmp_path / "new" / "folder" and path.read_bytes() == view.read(member)
        for path, member in zip(saved, view.members, strict=True)
    )
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == sorted(p.name for p in saved)
    assert view.save(tmp_path / "new" / "folder") == saved


def test_an_item_without_a_sample_is_shown_but_has_no_files(root: Path, tmp_path: Path) -> None:
    row = next(row for row in rows_of(root, "val") if row["status"] == "failed")
    view = find_sample(root, str(row["key"]))
    assert (view.row, view.members, view.number) == (row, (), None)
    assert view.save(tmp_path) == []
    assert any(line.split() == ["reason", "truncated"] for line in view.lines())


@pytest.mark.parametrize("text", ["20", "000000099", "-1", "", "1.0", "²", "٣", "9" * 30, "../000000001", "%"])
def test_unknown_keys_and_numbers_are_answered_with_a_hint(root: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"Keys look like '000000000'; numbers go from 0 to 19\."):
        find_sample(root, text)


def test_an_unknown_split_is_answered_with_those_there_are(root: Path) -> None:
    with pytest.raises(UsageError, match=r"no split 'test'.*train, val"):
        find_sample(root, "0", "test")
    with pytest.raises(UsageError, match="no sample"):
        find_sample(root, "000000000", "val")


def test_a_dataset_of_failures_alone_says_so(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [0]}, failed_per_shard=2)
    with pytest.raises(UsageError, match="no samples here"):
        find_sample(tmp_path, "0")


def test_an_unfinished_dataset_says_so(tmp_path: Path) -> None:
    (tmp_path / ".staging").mkdir()
    with pytest.raises(StorageError, match="unfinished"):
        find_sample(tmp_path, "0")


@pytest.mark.parametrize("kind", ["class", "multi", "number", "none"])
def test_json_is_plain(tmp_path: Path, kind: LabelKind) -> None:
    make_dataset(tmp_path, {"train": [2]}, label_kind=kind, label_size=2)
    view = find_sample(tmp_path, "1")
    content = json.loads(json.dumps(view.to_json(), allow_nan=False))
    assert content["row"]["label"] == view.row["label"]
    assert content["row"]["age"] == 1
    assert content["members"][-1]["size"] == view.members[-1].size


def test_values_that_json_does_not_know_become_text(root: Path) -> None:
    import datetime

    row = {"key": "a", "day": datetime.date(2024, 2, 29), "x": float("nan"), "deep": {"raw": [b"\x00"]}}
    view = replace(find_sample(root, "0"), row=row)
    content = json.loads(json.dumps(view.to_json(), allow_nan=False))
    assert content["row"] == {"key": "a", "day": "2024-02-29", "x": None, "deep": {"raw": ["b'\\x00'"]}}


def test_control_characters_in_user_data_never_reach_the_terminal(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [1]})
    path = tmp_path / "train-000000.parquet"
    table = pq.read_table(path).append_column("no\x1b[1mte", pa.array(["\x1b[2J\r\nfake line\u202e"]))
    metadata.write(path, table)
    assert all(line.isprintable() for line in find_sample(tmp_path, "0").lines())


def test_a_tar_that_holds_something_else_is_damage(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [2]})
    view = find_sample(tmp_path, "1")
    tar = tmp_path / "train-000000.tar"
    good = tar.read_bytes()
    tar.write_bytes(good[: view.members[-1].offset + 5])
    with pytest.raises(DamagedError, match="ends before or inside"):
        view.save(tmp_path / "out")
    changed = bytearray(good)
    changed[view.members[0].offset - 512] ^= 1
    tar.write_bytes(changed)
    with pytest.raises(DamagedError, match="is not at byte"):
        view.save(tmp_path / "out")
    tar.unlink()
    with pytest.raises(StorageError, match="cannot be read"):
        view.save(tmp_path / "out")


@pytest.mark.parametrize(
    "values", [{"jpg_offset": -1}, {"jpg_size": -1}, {"jpg_size": None}, {"jpg_size": 2**60}, {"key": "../../x"}]
)
def test_rows_that_lead_elsewhere_are_damage(tmp_path: Path, values: dict[str, object]) -> None:
    make_dataset(tmp_path, {"train": [1]})
    path = tmp_path / "train-000000.parquet"
    table = pq.read_table(path)
    for name, value in values.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array([value], table.schema.field(name).type))
    metadata.write(path, table)
    with pytest.raises(DamagedError, match="not that of a sample"):
        find_sample(tmp_path, "0")
