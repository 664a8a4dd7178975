"""The manifest: round trip, and hostile JSON."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardforge.errors import DamagedError, StorageError
from shardforge.shards.layout import MANIFEST, STAGING
from shardforge.shards.manifest import FieldInfo, InputInfo, LabelInfo, Manifest, ShardInfo, SplitInfo
from shardforge.shards.statistics import PixelStatistics

SHARDS = (
    ShardInfo("train-000000", 2, 4096, "a" * 64, "b" * 64),
    ShardInfo("train-000001", 1, 2048, "c" * 64, "d" * 64),
)
STATS = PixelStatistics((0.5, 0.25, 1.0), (0.0, 0.125, 1 / 3), ((1,) * 256,) * 3)
WHOLE = Manifest(
    recipe={"size": 256, "name": "Grüße \u2028", "deep": {"list": [1, 2.5, None, True]}},
    seed=7,
    fields={"jpg": FieldInfo("image"), "cls": FieldInfo("class"), "txt": FieldInfo("text", optional=True)},
    label=LabelInfo("class"),
    channels=3,
    classes={"cat": 0, "dog": 1},
    inputs=InputInfo(6, "e" * 64),
    splits={
        "train": SplitInfo(3, 1, 1, 0, 6144, "f" * 64, SHARDS, STATS),
        "val": SplitInfo(0, 0, 0, 1, 0, "0" * 64, ()),
    },
    groups={"train": ("aa", "bb")},
).with_fingerprint()


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    WHOLE.write(tmp_path / MANIFEST)
    assert Manifest.read(tmp_path) == WHOLE
    assert WHOLE.items == 6
    assert WHOLE.image_field == "jpg"


def test_checksum_is_the_digest_of_the_file_without_that_entry() -> None:
    content = json.loads(WHOLE.to_json())
    checksum = content.pop("checksum")
    text = json.dumps(content, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    assert hashlib.sha256(text.encode()).hexdigest() == checksum
    assert list(content) == sorted(content)


def test_fingerprint_covers_names_counts_and_payloads_but_not_parquet_bytes() -> None:
    def fingerprint(**changes: Any) -> str:
        shard = replace(SHARDS[0], **changes)
        split = replace(WHOLE.splits["train"], shards=(shard, SHARDS[1]))
        return replace(WHOLE, splits={**WHOLE.splits, "train": split}).compute_fingerprint()

    assert fingerprint() == WHOLE.fingerprint
    assert fingerprint(parquet_sha256="9" * 64) == WHOLE.fingerprint
    changed = {fingerprint(name="train-000009"), fingerprint(samples=3), fingerprint(sha256="9" * 64)}
    assert len(changed | {WHOLE.fingerprint}) == 4


def test_any_changed_byte_is_noticed(tmp_path: Path) -> None:
    data = WHOLE.to_json()
    for place in range(0, len(data), 7):
        for bit in (0, 5):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            with pytest.raises(DamagedError):
                Manifest.parse(bytes(changed), tmp_path)


def test_other_spellings_of_the_same_content_are_noticed(tmp_path: Path) -> None:
    content = json.loads(WHOLE.to_json())
    with pytest.raises(DamagedError, match="checksum"):
        Manifest.parse(json.dumps(content).encode(), tmp_path)
    manifest, intact = Manifest.parse_unchecked(json.dumps(content).encode(), tmp_path)
    assert (manifest, intact) == (WHOLE, False)


def test_a_missing_manifest_says_whether_a_build_is_unfinished(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="not a shardforge dataset"):
        Manifest.read(tmp_path)
    (tmp_path / STAGING).mkdir()
    with pytest.raises(StorageError, match="unfinished"):
        Manifest.read(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="cannot be read"):
        Manifest.read(tmp_path / "file")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def signed(content: Any) -> bytes:
    """Content with a checksum that is right, as somebody who means harm would make it."""
    text = json.dumps(content, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    checksum = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    whole = json.dumps({**content, "checksum": checksum}, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    return whole.encode("utf-8", "surrogatepass")


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything inside a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for name, item in inner for place in places(item, (*path, name)))]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_signed_nonsense_is_damage_or_a_manifest_with_the_right_types(data: st.DataObject) -> None:
    content = json.loads(replace(WHOLE, splits={"train": replace(WHOLE.splits["train"], stats=None)}).to_json())
    del content["checksum"]
    path = data.draw(st.sampled_from([place for place in places(content) if place]))
    holder = content
    for name in path[:-1]:
        holder = holder[name]
    if data.draw(st.booleans()):
        holder[path[-1]] = data.draw(JSON)
    else:
        del holder[path[-1]]
    try:
        manifest = Manifest.parse(signed(content), Path("dataset.json"))
    except DamagedError:
        return
    assert type(manifest.seed) is int
    assert all(type(shard.samples) is int for split in manifest.splits.values() for shard in split.shards)
    manifest.compute_fingerprint()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"[" * 100_000,
        b'{"checksum": 1}',
        b"\xff\xfe",
        b'{"a": ' * 5000,
        b'{"seed": ' + b"9" * 5000 + b"}",
        b'{"checksum": "", "format": "shardforge/1", "recipe": "\\ud800"}',
        json.dumps({**json.loads(WHOLE.to_json()), "format": "shardforge/2"}).encode(),
    ],
)
def test_bytes_that_are_no_manifest_are_damage(data: bytes, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(data)
    with pytest.raises(DamagedError) as caught:
        Manifest.read(tmp_path)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("entry", "value"),
    [("seed", True), ("seed", 1.0), ("channels", "3"), ("classes", {"a": None}), ("label", {"kind": "class"})],
)
def test_entries_of_another_type_are_damage_under_a_right_checksum(entry: str, value: Any) -> None:
    content = json.loads(WHOLE.to_json())
    del content["checksum"]
    assert Manifest.parse(signed(content), Path("dataset.json")) == WHOLE
    with pytest.raises(DamagedError):
        Manifest.parse(signed({**content, entry: value}), Path("dataset.json"))
