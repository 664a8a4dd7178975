"""``summarise`` against what was put into a dataset."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shardforge.errors import DamagedError, StorageError
from shardforge.inspect.summary import summarise
from shardforge.inspect.tally import EXAMPLES, Range, describe_sizes
from shardforge.shards import metadata
from shardforge.shards.manifest import LabelKind, Manifest
from tests.datasets import CLASS_NAMES, class_label, make_dataset, multi_label


def shape(number: int) -> tuple[int, int]:
    """(height, width)"""
    return (20 + number % 3, 30 + number % 4)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("summary")
    manifest = make_dataset(path, {"train": [9, 7], "val": [5]}, size=shape, failed_per_shard=2)
    recipe = {"size": 256, "resize": "shortest", "format": "jpg", "quality": 95, "keys": "index"}
    replace(manifest, recipe=recipe, seed=11).write(path / "dataset.json")
    return path


def good_items(root: Path, split: str) -> list[int]:
    rows = [row for path in sorted(root.glob(f"{split}-*.parquet")) for row in pq.read_table(path).to_pylist()]
    return [int(row["key"]) for row in rows if row["status"] == "success"]


def test_splits_have_their_counts_and_sizes(root: Path) -> None:
    found = summarise(root)
    assert list(found.splits) == ["train", "val"]
    train, val = found.splits["train"], found.splits["val"]
    assert (train.samples, train.failed, train.filtered, train.skipped, train.shards) == (16, 4, 0, 0, 2)
    assert (val.samples, val.failed, val.shards, found.samples) == (5, 2, 1, 21)
    sizes = [path.stat().st_size for path in sorted(root.glob("train-*.tar"))]
    assert train.bytes == sum(sizes)
    assert train.mean_shard_bytes == round(sum(sizes) / 2)


def test_classes_are_counted_for_each_split(root: Path) -> None:
    found = summarise(root)
    assert tuple(found.classes) == CLASS_NAMES
    for split in found.splits:
        expected = Counter(CLASS_NAMES[class_label(n)] for n in good_items(root, split))
        assert {name: counts[split] for name, counts in found.classes.items()} == {
            name: expected[name] for name in CLASS_NAMES
        }


def test_sizes_are_those_of_the_samples(root: Path) -> None:
    found = summarise(root).sizes
    assert found is not None
    shapes = [shape(n) for split in ("train", "val") for n in good_items(root, split)]
    for span, values in ((found.height, [s[0] for s in shapes]), (found.width, [s[1] for s in shapes])):
        assert span == Range(min(values), statistics.median_low(values), max(values))
    counts = Counter((width, height) for height, width in shapes)
    assert found.distinct == len(counts)
    assert [count for *_, count in found.common] == sorted(counts.values(), reverse=True)[:5]
    assert all(counts[width, height] == count for width, height, count in found.common)


@pytest.mark.parametrize("values", [[5], [1, 9], [3, 3, 3, 8], [4, 1, 7, 2, 2, 9]])
def test_median_is_the_lower_one(values: list[int]) -> None:
    found = describe_sizes(Counter((value, 1) for value in values))
    assert found is not None
    assert found.width.median == statistics.median_low(values)


def test_failures_come_with_their_first_sources(root: Path) -> None:
    (problem,) = summarise(root).problems
    failed = [
        row["source"]
        for path in sorted(root.glob("*.parquet"))
        for row in pq.read_table(path).to_pylist()
        if row["status"] == "failed"
    ]
    assert (problem.status, problem.reason, problem.count) == ("failed", "truncated", 6)
    assert problem.examples == tuple(failed[:EXAMPLES])


def test_multi_label_samples_count_for_each_of_their_classes(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [12]}, label_kind="multi")
    expected = Counter(CLASS_NAMES[i] for n in range(12) for i in multi_label(n))
    found = summarise(tmp_path)
    assert {name: counts["train"] for name, counts in found.classes.items()} == expected
    assert found.label_kind == "multi"


@pytest.mark.parametrize(("kind", "words"), [("number", "3 numbers"), ("none", "none")])
def test_without_classes_the_kind_of_label_is_told(tmp_path: Path, kind: LabelKind, words: str) -> None:
    make_dataset(tmp_path, {"train": [2]}, label_kind=kind, label_size=3)
    found = summarise(tmp_path)
    assert found.classes == {}
    assert any(line.split()[0] == "labels" and line.endswith(words) for line in found.lines())


def test_json_is_plain_and_complete(root: Path) -> None:
    found = summarise(root)
    content = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert content["samples"] == 21
    assert content["recipe"]["quality"] == 95
    assert content["splits"]["train"]["mean_shard_bytes"] == found.splits["train"].mean_shard_bytes
    assert content["fingerprint"] == Manifest.read(root).fingerprint
    stats = Manifest.read(root).splits["train"].stats
    assert stats is not None
    assert content["splits"]["train"]["mean"] == list(stats.mean)
    assert content["problems"][0]["examples"] == list(found.problems[0].examples)


def test_text_tells_the_essentials(root: Path) -> None:
    lines = summarise(root).lines()
    text = "\n".join(lines)
    assert "size 256, resize shortest, format jpg, quality 95, seed 11" in text
    assert Manifest.read(root).fingerprint in text
    assert "6 failed truncated: raw/picture 2.jpg, " in text
    assert any(line.split()[:3] == ["train", "16", "2"] for line in lines)
    assert any(line.split() == ["jpeg", "21"] for line in lines)


def test_text_names_twenty_classes_and_counts_the_rest(tmp_path: Path) -> None:
    classes = {f"class {n:02d}": n for n in range(26)}
    make_dataset(tmp_path, {"train": [27]}, size=(8, 8), classes=classes, label=lambda n: n % 26)
    found = summarise(tmp_path)
    lines = found.lines()
    told = [line for line in lines if line.startswith("class ") and line[6].isdigit()]
    # Item 26 makes class 00 the largest; equal ones follow by id.
    assert [line.split()[1] for line in told] == [f"{n:02d}" for n in range(20)]
    assert "… and 6 smaller classes" in lines
    assert len(found.classes) == 26


def test_large_numbers_are_grouped_by_thousands(root: Path) -> None:
    found = summarise(root)
    train = replace(found.splits["train"], samples=1_281_167, bytes=3 * 2**30)
    large = replace(found, splits={**found.splits, "train": train})
    text = "\n".join(large.lines())
    assert "1,281,167" in text
    assert "3.0 GiB" in text


def test_control_characters_in_user_data_never_reach_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\r\u202e\n"
    make_dataset(tmp_path, {"train": [3]}, classes={f"cat{evil}": 0}, label=lambda n: 0, failed_per_shard=1)
    path = tmp_path / "train-000000.parquet"
    table = pq.read_table(path)
    place = table.schema.get_field_index("source")
    metadata.write(path, table.set_column(place, "source", pa.array([f"a{evil}.jpg"] * table.num_rows)))
    found = summarise(tmp_path)
    assert f"cat{evil}" in found.classes
    assert all(line.isprintable() for line in found.lines())
    assert found.problems[0].examples == (f"a{evil}.jpg",)


def test_an_unfinished_dataset_says_so(tmp_path: Path) -> None:
    (tmp_path / ".staging").mkdir()
    with pytest.raises(StorageError, match="unfinished"):
        summarise(tmp_path)


def test_missing_and_broken_rows_are_told_apart(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [2]})
    path = tmp_path / "train-000000.parquet"
    good = pq.read_table(path)
    path.write_bytes(b"PAR1 and so on")
    with pytest.raises(DamagedError, match=r"train-000000\.parquet"):
        summarise(tmp_path)
    for broken in (good.drop_columns(["flags"]), good.set_column(3, "status", pa.array(["odd", "success"]))):
        pq.write_table(broken, path)
        with pytest.raises(DamagedError, match=r"train-000000\.parquet"):
            summarise(tmp_path)
    path.unlink()
    with pytest.raises(StorageError, match="missing"):
        summarise(tmp_path)


def test_a_summary_needs_no_torch(root: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from shardforge.inspect.summary import summarise; "
        f"summarise(Path({str(root)!r})).lines(); "
        "sys.exit([name for name in ('torch', 'cv2', 'PIL') if name in sys.modules] != [])"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
