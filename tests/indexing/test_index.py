"""``index``: tars from anywhere become datasets that the exact reader reads; what cannot be read is named."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tarfile
import threading
import zlib
from collections.abc import Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import webdataset
from PIL import Image

import shardforge
from shardforge.codecs.limits import Limits
from shardforge.errors import DamagedError, StorageError, UsageError
from shardforge.indexing.index import index
from shardforge.indexing.survey import survey
from shardforge.inspect.sample import find_sample
from shardforge.inspect.summary import summarise
from shardforge.shards.manifest import Manifest
from shardforge.shards.verify import verify
from shardforge.stream.dataset import ShardDataset
from shardforge.stream.loader import ShardLoader
from shardforge.stream.reader import open_dataset
from tests.datasets import encode, make_dataset, mask, picture
from tests.foreign_tars import sample, samples, write_tar


def digests(folder: Path) -> dict[str, str]:
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.rglob("*.tar"))}


def rows(root: Path, shard: str) -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in pq.read_table(root / f"{shard}.parquet").to_pylist()}


def read_all(root: Path, split: str = "train", fields: Sequence[str] = ("image", "label", "key")) -> dict[str, Any]:
    return {entry["key"]: entry for entry in ShardDataset(root, split=split, fields=fields)}


# --- the whole way ------------------------------------------------------------------------------------------------


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """Written by webdataset's own ShardWriter: train 0 … 11 in three tars, val 12 … 16 in one."""
    for split, numbers in (("train", range(12)), ("val", range(12, 17))):
        with webdataset.ShardWriter(f"{tmp_path}/{split}-%03d.tar", maxcount=4 if split == "train" else 9) as writer:
            for number in numbers:
                image = encode(picture(number), "png")
                writer.write({"__key__": f"{number:04d}", "png": image, "cls": number % 4, "json": {"n": number}})
    return tmp_path


def test_tars_of_webdataset_are_read_exactly_once_with_pixels_and_labels(plain: Path) -> None:
    before = digests(plain)
    report = shardforge.index(plain, quiet=True)
    assert (report.status, report.exit_code, report.samples, report.failed) == ("indexed", 0, 17, 0)
    assert {name: (s.samples, s.shards) for name, s in report.splits.items()} == {"train": (12, 3), "val": (5, 1)}
    for split, numbers in (("train", range(12)), ("val", range(12, 17))):
        found = read_all(plain, split, ("image", "label", "key", "json", "width"))
        assert sorted(found) == [f"{number:04d}" for number in numbers]
        for key, entry in found.items():
            assert np.array_equal(entry["image"].numpy(), picture(int(key)))
            assert int(entry["label"]) == int(key) % 4
            assert entry["json"] == {"n": int(key)}
            assert int(entry["width"]) == 32
    assert digests(plain) == before
    assert not (plain / "README.md").exists()


def test_the_result_is_sound_summarised_and_shown(plain: Path, tmp_path: Path) -> None:
    index(plain, quiet=True)
    found = verify(plain)
    assert (found.damage, found.notes, found.samples, found.items) == ((), (), 17, 17)
    summary = summarise(plain)
    assert summary.samples == 17
    assert summary.classes["1"] == {"train": 3, "val": 1}
    view = find_sample(plain, "0003")
    assert [path.name for path in view.save(tmp_path / "look")] == ["0003.cls", "0003.json", "0003.png"]
    assert (tmp_path / "look" / "0003.png").read_bytes() == encode(picture(3), "png")


@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_verify_names_the_sample_whose_bytes_were_changed(plain: Path, place: str) -> None:
    index(plain, quiet=True)
    row = rows(plain, "train-001")["0005"]
    offset = row["png_offset"] + {"first": 0, "middle": row["png_size"] // 2, "last": row["png_size"] - 1}[place]
    with open(plain / "train-001.tar", "r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 1]))
    (damage,) = verify(plain).damage
    assert (damage.file, damage.sample) == ("train-001.tar", "0005")


def test_verify_names_the_sample_whose_side_member_was_changed(plain: Path) -> None:
    """Neither the image nor the class: the row has its crc32 alone."""
    index(plain, quiet=True)
    tar = plain / "train-001.tar"
    row = rows(plain, "train-001")["0005"]
    data = tar.read_bytes()
    payloads = (data[row[f"{field}_offset"] :][: row[f"{field}_size"]] for field in ("cls", "json", "png"))
    assert row["sample_crc32"] == zlib.crc32(b"".join(payloads))
    changed = data.replace(b'{"n": 5}', b'{"n": 6}')
    assert changed != data
    tar.write_bytes(changed)
    (damage,) = verify(plain).damage
    assert (damage.file, damage.sample) == ("train-001.tar", "0005")
    assert "crc32 of its payloads" in damage.what


def test_verify_names_a_missing_and_a_shortened_tar(plain: Path) -> None:
    index(plain, quiet=True)
    (plain / "val-000.tar").unlink()
    os.truncate(plain / "train-000.tar", 5000)
    assert {damage.file for damage in verify(plain).damage} == {"val-000.tar", "train-000.tar"}


def test_again_is_up_to_date_until_a_tar_changes(plain: Path) -> None:
    index(plain, quiet=True)
    before = (plain / "dataset.json").read_bytes()
    assert index(plain, quiet=True).status == "up to date"
    assert index(plain, quiet=True, label="none").status == "indexed"
    assert index(plain, quiet=True).status == "indexed"
    assert (plain / "dataset.json").read_bytes() == before
    write_tar(plain / "train-003.tar", samples([20]))
    assert index(plain, quiet=True).splits["train"].samples == 13
    os.utime(plain / "train-003.tar", ns=(2**62, 2**62))
    assert index(plain, quiet=True).status == "indexed"
    (plain / "train-003.tar").unlink()
    assert index(plain, quiet=True).splits["train"].samples == 12
    assert not (plain / "train-003.parquet").exists() or verify(plain).sound


def test_another_folder_takes_the_index_where_the_tars_may_not_be_touched(plain: Path, tmp_path: Path) -> None:
    tars = tmp_path / "tars"
    tars.mkdir()
    for path in plain.glob("*.tar"):
        shutil.move(path, tars)
    names = sorted(path.name for path in tars.iterdir())
    out = tmp_path / "out"
    assert index(tars, out, quiet=True).samples == 17
    assert sorted(path.name for path in tars.iterdir()) == names
    assert len(read_all(out)) == 12
    assert verify(out).sound
    assert index(tars, out, quiet=True).status == "up to date"


def test_an_index_inside_the_folder_of_the_tars_is_refused(plain: Path) -> None:
    with pytest.raises(UsageError, match="would be taken for more tars"):
        index(plain, plain / "index", quiet=True)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_ranks_and_workers_of_the_loader_share_indexed_tars_exactly_once(plain: Path, method: Any) -> None:
    index(plain, quiet=True)
    given: list[str] = []
    for rank in range(2):
        options: Any = {"rank": rank, "world_size": 2, "workers": 2, "context": method, "tail": "mask"}
        with ShardLoader(plain, batch_size=2, fields=("image", "key"), **options) as loader:
            assert len(loader) == 3
            given += [key for batch in loader for key in batch["key"]]
    assert sorted(given) == [f"{number:04d}" for number in range(12)]


def test_interruptions_cost_only_the_tar_in_the_works(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the third tar is read; the second call reads that one and the rest."""
    from shardforge.indexing import index as module

    real, begun, read = module.survey, [], []

    def interrupted(tar: Path, *rest: Any) -> Any:
        begun.append(tar.name)
        if begun.count("train-002.tar") == 1 and tar.name == "train-002.tar":
            raise KeyboardInterrupt
        found = real(tar, *rest)
        read.append(tar.name)
        return found

    monkeypatch.setattr(module, "survey", interrupted)
    with pytest.raises(KeyboardInterrupt):
        index(plain, quiet=True)
    assert not (plain / "dataset.json").exists()
    assert "train-000.tar" in read
    assert index(plain, quiet=True).samples == 17
    assert sorted(read) == ["train-000.tar", "train-001.tar", "train-002.tar", "val-000.tar"]
    assert not (plain / ".indexing").exists()


def test_an_interruption_does_not_wait_for_the_end_of_a_tar(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", samples(range(3)))
    over = threading.Event()
    over.set()
    with pytest.raises(CancelledError):
        survey(path, tmp_path / "a.arrow", None, Limits(), over)
    assert not (tmp_path / "a.arrow").exists()


# --- what tars there are ------------------------------------------------------------------------------------------


def test_splits_come_from_words_in_paths(tmp_path: Path) -> None:
    for number, name in enumerate(
        ("imagenet-val-000", "training_1", "test/a", "Validation/x-1", "train-12", "train-2")
    ):
        write_tar(tmp_path / f"{name}.tar", samples([number]))
    index(tmp_path, quiet=True)
    splits = Manifest.read(tmp_path).splits
    assert {name: [shard.name for shard in info.shards] for name, info in splits.items()} == {
        "test": ["test/a"],
        "train": ["train-2", "train-12", "training_1"],
        "val": ["Validation/x-1", "imagenet-val-000"],
    }
    assert verify(tmp_path).sound
    assert set(read_all(tmp_path, "val")) == {"0000", "0003"}


def test_splits_by_pattern(tmp_path: Path) -> None:
    for number in range(4):
        write_tar(tmp_path / f"{'ab'[number % 2]}{number}.tar", samples([number]))
    write_tar(tmp_path / "other.tar", samples([9]))
    report = index(tmp_path, split={"train": "a*.tar", "held_out": "b*"}, quiet=True)
    assert {name: split.samples for name, split in report.splits.items()} == {"held_out": 2, "train": 2}
    assert any("1 tars fit no pattern" in note for note in report.notes)
    with pytest.raises(UsageError, match=r"no tar fits the pattern 'c\*'"):
        index(tmp_path, split={"train": "c*"})
    with pytest.raises(UsageError, match="no split name"):
        index(tmp_path, split={"Train": "a*"})


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tgz", "a.tar"])
def test_compressed_tars_are_refused_with_what_to_do(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / name, "w:gz"):
        pass
    with pytest.raises(UsageError, match=r"is compressed .*Unpack it .*SequentialDataset"):
        index(tmp_path)


def test_what_cannot_be_indexed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        index(tmp_path / "absent")
    with pytest.raises(UsageError, match="no tars here"):
        index(tmp_path)
    write_tar(tmp_path / "a.tar", [("a.txt", b"no picture")])
    with pytest.raises(UsageError, match="no sample holds a picture; members are: 1 txt"):
        index(tmp_path, quiet=True)
    with pytest.raises(UsageError, match="no sample has a picture 'png'"):
        index(tmp_path, image="png", quiet=True)
    with pytest.raises(UsageError, match="auto, cls, none or json:NAME"):
        index(tmp_path, label="csv")


def test_a_dataset_of_ours_needs_no_index(tmp_path: Path) -> None:
    make_dataset(tmp_path)
    with pytest.raises(UsageError, match="needs no index"):
        index(tmp_path)


# --- nothing of the user's is overwritten -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["train-000.parquet", "train.index.arrow", "dataset.json"])
def test_files_of_others_are_never_overwritten(plain: Path, name: str) -> None:
    """img2dataset, for one, puts its own parquet beside every tar."""
    if name.endswith("parquet"):
        pq.write_table(pa.table({"url": ["http://x"], "key": ["0"]}), plain / name)
    else:
        (plain / name).write_bytes(b'{"mine": 1}')
    before = (plain / name).read_bytes()
    with pytest.raises(UsageError):
        index(plain, quiet=True)
    assert (plain / name).read_bytes() == before
    assert index(plain, plain.parent / f"{plain.name}-out", quiet=True).samples == 17
    shutil.rmtree(plain.parent / f"{plain.name}-out")


def test_a_build_never_touches_indexed_tars(tmp_path: Path) -> None:
    """Their names may be those of a build's own shards, which --overwrite would remove."""
    write_tar(tmp_path / "data" / "train-000000.tar", samples(range(3)))
    index(tmp_path / "data", quiet=True)
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.png").write_bytes(encode(picture(0), "png"))
    before = digests(tmp_path / "data")
    with pytest.raises(UsageError, match="tars made elsewhere"):
        shardforge.build(tmp_path / "raw", tmp_path / "data", overwrite=True, quiet=True)
    assert digests(tmp_path / "data") == before
    assert verify(tmp_path / "data").sound


# --- how tars are written -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_and_foreign_names_in_every_format(tmp_path: Path, format: int) -> None:
    folders = "/".join(["n" * 40] * (3 if format == tarfile.USTAR_FORMAT else 8))
    names = (
        [f"{folders}/picture one", "größe", "./here/a-1"] if format != tarfile.USTAR_FORMAT else [folders + "/p", "b"]
    )
    write_tar(tmp_path / "a.tar", [m for n, name in enumerate(names) for m in sample(name, n)], format)
    index(tmp_path, quiet=True)
    found = read_all(tmp_path)
    assert set(found) == {name.removeprefix("./") for name in names}
    for number, name in enumerate(names):
        assert np.array_equal(found[name.removeprefix("./")]["image"].numpy(), picture(number))
    assert verify(tmp_path).sound


def test_members_may_lie_anywhere_in_the_tar(tmp_path: Path) -> None:
    every = samples(range(5))
    write_tar(tmp_path / "a.tar", [*every[::2], *reversed(every[1::2])])
    index(tmp_path, quiet=True)
    found = read_all(tmp_path)
    assert {key: int(entry["label"]) for key, entry in found.items()} == {f"{n:04d}": n % 4 for n in range(5)}
    assert verify(tmp_path).sound


def test_keys_end_at_the_first_dot_of_the_base_name(tmp_path: Path) -> None:
    png = encode(picture(0), "png")
    write_tar(tmp_path / "a.tar", [("v1.2/a.PNG", png), ("v1.2/a.CLS", b"2"), ("b.left.txt", b"x"), ("b.png", png)])
    report = index(tmp_path, label="none", quiet=True)
    assert report.samples == 2
    assert set(rows(tmp_path, "a")) == {"v1.2/a", "b"}
    assert report.fields == {"cls": "text?", "left.txt": "text?", "png": "image"}


def test_what_is_no_member_of_a_sample_is_skipped_and_counted(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for kind, name in (
            (tarfile.DIRTYPE, "folder"),
            (tarfile.SYMTYPE, "link.png"),
            (tarfile.LNKTYPE, "hard.png"),
            (tarfile.FIFOTYPE, "pipe.png"),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "0000.png"
            tar.addfile(info)
        odd = [("README", b"text"), ("._0000.png", b"mac"), ("__meta__.json", b"{}"), ("0000.p g", b"?")]
        for name, payload in [*odd, *samples([0]), ("0000.png", b"again")]:
            info = tarfile.TarInfo(name)
            info.size = len(payload)
            tar.addfile(info, io.BytesIO(payload))
    report = index(tmp_path, quiet=True)
    assert (report.samples, report.failed, report.exit_code) == (1, 0, 0)
    assert report.skipped == {
        "folders": 1,
        "symbolic links": 1,
        "hard links": 1,
        "special entries": 1,
        "members without a suffix": 1,
        "hidden files": 1,
        "webdataset's own metadata": 1,
        "members whose suffix is no field name": 1,
        "members that a sample has twice": 1,
    }
    assert np.array_equal(read_all(tmp_path)["0000"]["image"].numpy(), picture(0))


def test_keys_that_repeat_from_tar_to_tar_get_the_tars_name_in_front(tmp_path: Path) -> None:
    write_tar(tmp_path / "a-0.tar", sample("0", 0) + sample("1", 1))
    write_tar(tmp_path / "a-1.tar", sample("1", 2) + sample("2", 3))
    report = index(tmp_path, quiet=True)
    assert any("keys repeat ('1' in a-0.tar and a-1.tar)" in note for note in report.notes)
    found = read_all(tmp_path)
    assert {key: int(entry["label"]) for key, entry in found.items()} == {
        "a-0/0": 0,
        "a-0/1": 1,
        "a-1/1": 2,
        "a-1/2": 3,
    }
    assert verify(tmp_path).sound


# --- truncated tails ----------------------------------------------------------------------------------------------

# Sample n: header, image (padded), header, one block of class; the end of the archive follows the last.
BLOCKS = 1 + -(-len(encode(picture(0), "png")) // 512) + 2


@pytest.mark.parametrize(
    ("cut", "kept", "failed"),
    [
        (lambda ends: ends[2] + 100, 3, 0),  # in the header of the fourth sample
        (lambda ends: ends[2] + 700, 3, 0),  # in its image
        (lambda ends: ends[3] - 1024 + 100, 3, 1),  # in the header of its class
        (lambda ends: ends[3] - 512, 3, 1),  # before its class
        (lambda ends: ends[3] - 510, 4, 0),  # inside the padding after its class, of one byte
        (lambda ends: ends[3], 4, 0),  # only the end of the archive is missing
        (lambda ends: ends[3] - 1024, 3, 1),  # right after its image: nothing says that a class belongs to it
    ],
)
def test_of_a_truncated_tar_what_is_whole_is_kept(tmp_path: Path, cut: Any, kept: int, failed: int) -> None:
    path = write_tar(tmp_path / "b.tar", samples(range(4)))
    write_tar(tmp_path / "a.tar", samples(range(10, 12)))
    with tarfile.open(path) as tar:
        ends = [m.offset_data + 512 for m in tar.getmembers() if m.name.endswith("cls")]
    os.truncate(path, cut(ends))
    report = index(tmp_path, quiet=True)
    assert (report.samples - 2, report.failed, report.exit_code) == (kept, failed, 1)
    assert list(report.damage) == ["b.tar"]
    assert report.reasons == ({"truncated": 1} if failed else {})
    assert set(read_all(tmp_path)) == {f"{n:04d}" for n in (*range(kept), 10, 11)}
    # The tar is as it was when it was indexed.
    found = verify(tmp_path)
    assert (found.sound, found.samples, found.items) == (True, kept + 2, kept + failed + 2)
    assert found.notes == ("1 tar was damaged already when indexed (b.tar): what could be read is listed",)


def test_verify_names_the_first_of_many_tars_that_were_damaged_when_indexed(tmp_path: Path) -> None:
    for number in range(4):
        path = write_tar(tmp_path / f"{number}.tar", sample(f"a{number}", number) + sample(f"b{number}", number))
        os.truncate(path, (BLOCKS + 1) * 512 + 100)
    index(tmp_path, quiet=True)
    found = verify(tmp_path)
    assert found.notes == (
        "4 tars were damaged already when indexed (0.tar, 1.tar, 2.tar, …): what could be read is listed",
    )
    # A tar that was changed since is damage, and nothing else is said of it.
    os.truncate(tmp_path / "0.tar", 5 * 512)
    found = verify(tmp_path)
    assert not found.sound
    assert found.notes[0].startswith("3 tars were damaged already when indexed (1.tar, ")


def test_verify_counts_no_items_that_failed_as_samples(plain: Path) -> None:
    broken = [("x.png", b"no picture"), ("x.cls", b"1"), ("y.cls", b"2"), ("z.png", encode(picture(0), "png"))]
    write_tar(plain / "train-003.tar", [*samples([30]), *broken])
    report = index(plain, quiet=True)
    assert (report.samples, report.failed) == (18, 3)
    found = verify(plain)
    assert (found.sound, found.samples, found.items) == (True, 18, 21)
    assert "18 samples of 21 items" in found.lines()[0]


def test_garbage_in_the_middle_ends_a_tar_and_is_named(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", samples(range(4)))
    with tarfile.open(path) as tar:
        third = tar.getmembers()[4].offset
    data = bytearray(path.read_bytes())
    data[third : third + 512] = b"\xab" * 512
    path.write_bytes(data)
    report = index(tmp_path, quiet=True)
    assert (report.samples, report.exit_code) == (2, 1)
    assert report.damage["a.tar"].startswith(f"byte {third:,}: no tar header")


def test_two_tars_joined_by_cat_are_one(tmp_path: Path) -> None:
    one, two = write_tar(tmp_path / "a.tar", samples([0])), write_tar(tmp_path / "b.tar", samples([1]))
    one.write_bytes(one.read_bytes() + two.read_bytes())
    two.unlink()
    report = index(tmp_path, quiet=True)
    assert (report.samples, report.exit_code) == (2, 0)
    for key, entry in read_all(tmp_path).items():
        assert np.array_equal(entry["image"].numpy(), picture(int(key)))
    assert verify(tmp_path).sound


@pytest.mark.parametrize("junk", [b"x", b"x" * 700])
def test_what_is_neither_padding_nor_another_archive_behind_one_is_named(tmp_path: Path, junk: bytes) -> None:
    path = write_tar(tmp_path / "a.tar", samples([0]))
    path.write_bytes(path.read_bytes() + junk + bytes(512) + path.read_bytes())
    report = index(tmp_path, quiet=True)
    assert (report.samples, report.exit_code) == (1, 1)
    assert "after the end of the archive" in report.damage["a.tar"]


# --- what samples hold --------------------------------------------------------------------------------------------


def test_samples_that_cannot_be_read_are_rows_with_a_reason(tmp_path: Path) -> None:
    png, jpg = encode(picture(1), "png"), encode(picture(1), "jpg")
    members = [
        *samples([0]),
        ("bare.cls", b"1"),
        ("other.jpg", jpg),
        ("lying.png", jpg),
        ("broken.png", png[:20]),
        ("empty.png", b""),
        ("text.png", b"no picture at all"),
        ("unlabelled.png", png),
        ("word.png", png),
        ("word.cls", b"cat"),
        *[(f"{name}.cls", b"1") for name in ("other", "lying", "broken", "empty", "text")],
    ]
    write_tar(tmp_path / "a.tar", members)
    report = index(tmp_path, quiet=True)
    assert {key: row["reason"] for key, row in rows(tmp_path, "a").items()} == {
        "0000": None,
        "bare": "missing_field",
        "other": "wrong_format",
        "lying": "wrong_format",
        "broken": "truncated",
        "empty": "empty",
        "text": "not_an_image",
        "unlabelled": "missing_label",
        "word": "bad_label",
    }
    assert (report.samples, report.failed, report.exit_code) == (1, 8, 1)
    assert verify(tmp_path).sound
    assert list(read_all(tmp_path)) == ["0000"]


def test_fields_of_every_kind(tmp_path: Path) -> None:
    array = encode(np.arange(6, dtype=np.float32).reshape(2, 3), "npy")
    members = []
    for n in range(3):
        members += sample(f"{n}", n, form="jpg")
        members += [(f"{n}.seg.png", encode(mask(n), "png")), (f"{n}.depth.npy", array), (f"{n}.mp4", b"film")]
        members += [(f"{n}.caption.txt", f"caption {n}".encode())] if n else []
    renamed = [(name.replace(".jpg", ".JPEG"), payload) for name, payload in members]
    write_tar(tmp_path / "a.tar", renamed)
    report = index(tmp_path, quiet=True)
    assert report.fields == {
        "caption.txt": "text?",
        "cls": "class",
        "depth.npy": "array",
        "jpg": "image",
        "seg.png": "mask",
    }
    assert report.left_out == {"mp4": 3}
    for key, entry in read_all(tmp_path, fields=("image", "key", "seg.png", "depth.npy", "caption.txt")).items():
        number = int(key)
        assert np.array_equal(entry["seg.png"].numpy(), mask(number))
        assert entry["depth.npy"].shape == (2, 3)
        assert entry["caption.txt"] == (f"caption {number}" if number else "")
    assert verify(tmp_path).sound


def test_the_image_can_be_chosen(tmp_path: Path) -> None:
    one, two = encode(picture(1), "png"), encode(picture(2), "png")
    write_tar(tmp_path / "a.tar", [("a.left.png", one), ("a.right.png", two)])
    report = index(tmp_path, image="right.png", quiet=True)
    assert (report.fields, report.left_out) == ({"left.png": "picture", "right.png": "image"}, {})
    assert np.array_equal(next(iter(open_dataset(tmp_path)))["image"], picture(2))


def test_further_pictures_are_fields_of_their_own_beside_masks(tmp_path: Path) -> None:
    members = []
    for n in range(3):
        members += sample(f"{n}", n)
        members += [(f"{n}.left.png", encode(picture(n + 10), "png")), (f"{n}.far.webp", encode(picture(n), "webp"))]
        members += [(f"{n}.near.jpeg", encode(picture(n, channels=1), "jpg"))]
        members += [(f"{n}.seg.png", encode(mask(n), "png")), (f"{n}.bits.png", one_bit())]
    write_tar(tmp_path / "a.tar", members)
    report = index(tmp_path, image="png", quiet=True)
    kinds = {"left.png": "picture", "far.webp": "picture", "near.jpg": "picture", "seg.png": "mask"}
    assert report.fields == {"cls": "class", "png": "image", **kinds}
    assert report.left_out == {"bits.png": 3}
    for key, entry in read_all(tmp_path, fields=("key", "left", "far", "near.jpg", "seg.png")).items():
        assert np.array_equal(entry["left"].numpy(), picture(int(key) + 10))
        assert entry["far"].shape == entry["near.jpg"].shape == (32, 32, 3)
        assert np.array_equal(entry["seg.png"].numpy(), mask(int(key)))
    assert verify(tmp_path).sound
    assert find_sample(tmp_path, "0", split="train") is not None


def one_bit() -> bytes:
    out = io.BytesIO()
    Image.new("1", (32, 32)).save(out, "PNG")
    return out.getvalue()


def test_grey_and_deep_pictures_are_given_as_they_are(tmp_path: Path) -> None:
    deep = (np.arange(64, dtype=np.uint16) * 1000).reshape(8, 8)
    write_tar(tmp_path / "grey" / "a.tar", [(f"{n}.png", encode(picture(n, channels=1), "png")) for n in range(2)])
    write_tar(tmp_path / "deep" / "a.tar", [("0.png", encode(deep, "png"))])
    for name in ("grey", "deep"):
        index(tmp_path / name, quiet=True)
    assert np.array_equal(open_dataset(tmp_path / "grey")[1]["image"], picture(1, channels=1))
    assert np.array_equal(open_dataset(tmp_path / "deep")[0]["image"][..., 0], deep)


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["dog", "cat", "dog"], "class", [1, 0, 1]),
        ([2, 0, 2], "class", [2, 0, 2]),
        (["2", "0", "1"], "class", [2, 0, 1]),
        ([["a", "c"], [], ["b"]], "multi", [[0, 2], [], [1]]),
        ([0.5, 1, -2.25], "number", [0.5, 1.0, -2.25]),
        ([[1.5, 2], [0, 0], [3, 4]], "number", [[1.5, 2.0], [0.0, 0.0], [3.0, 4.0]]),
    ],
)
def test_labels_in_json(tmp_path: Path, values: list[Any], kind: str, expected: list[Any]) -> None:
    members = []
    for n, value in enumerate(values):
        members += [(f"{n}.png", encode(picture(n), "png")), (f"{n}.json", json.dumps({"y": value}).encode())]
    write_tar(tmp_path / "a.tar", members)
    report = index(tmp_path, label="json:y", quiet=True)
    assert (report.labels.partition(",")[0], report.samples) == (kind, 3)
    assert [row["label"] for row in open_dataset(tmp_path).metadata.to_pylist()] == expected
    assert verify(tmp_path).sound
    with pytest.raises(UsageError, match="no json member has a label under 'z'"):
        index(tmp_path, label="json:z", quiet=True)


def test_words_in_cls_are_classes_too(tmp_path: Path) -> None:
    write_tar(tmp_path / "a.tar", sample("0", 0, label="zebra\n") + sample("1", 1, label="ant"))
    report = index(tmp_path, quiet=True)
    assert report.fields["cls"] == "text"
    assert open_dataset(tmp_path).classes == {"ant": 0, "zebra": 1}
    assert [entry["label"] for entry in open_dataset(tmp_path)] == [1, 0]


def test_class_names_and_gaps_in_ids(tmp_path: Path) -> None:
    write_tar(tmp_path / "a.tar", sample("0", 0, label=0) + sample("1", 1, label=" 3 "))
    index(tmp_path, quiet=True)
    assert open_dataset(tmp_path).classes == {"0": 0, "1": 1, "2": 2, "3": 3}
    index(tmp_path, quiet=True, classes=["ant", "bee", "cat", "dog"])
    assert open_dataset(tmp_path).metadata["label_name"].to_pylist() == ["ant", "dog"]
    assert verify(tmp_path).sound
    with pytest.raises(UsageError, match="2 names for class ids up to 3"):
        index(tmp_path, quiet=True, classes=["ant", "bee"])
    with pytest.raises(UsageError, match="'ant' is named twice"):
        index(tmp_path, quiet=True, classes=["ant", "ant", "b", "c"])


def test_statistics_are_those_of_the_pixels(tmp_path: Path) -> None:
    write_tar(
        tmp_path / "a.tar", [*samples(range(3)), ("bad.png", encode(picture(0), "png")[:-60]), ("bad.cls", b"0")]
    )
    report = index(tmp_path, stats=True, quiet=True)
    assert (report.samples, report.failed) == (3, 1)
    stats = Manifest.read(tmp_path).splits["train"].stats
    pixels = np.stack([picture(n) for n in range(3)]).reshape(-1, 3) / 255
    assert stats is not None
    assert np.allclose(stats.mean, pixels.mean(0))
    assert np.allclose(stats.std, pixels.std(0))
    assert verify(tmp_path).sound


# --- hostile input ------------------------------------------------------------------------------------------------


def header(name: str, size: int, kind: bytes = b"0") -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (header("x", 2**40, b"x") + bytes(512), "an extension header of 1,099,511,627,776 bytes"),
        (header("x", 2**40, b"L") + bytes(512), "an extension header of"),
        (header("x", 4, b"x") + b"9 a\n" + bytes(508), "a PAX header that is none"),
        (header("x", 15, b"x") + b"15 size=-99999\n" + bytes(497) + header("b.png", 0), "a member of '-99999' bytes"),
        (header("b.png", 2**50), "runs past the end of the file"),
    ],
    ids=["pax bomb", "name bomb", "no pax", "negative size", "huge"],
)
def test_hostile_headers_end_the_look_at_a_tar_without_filling_memory(
    tmp_path: Path, entry: bytes, told: str
) -> None:
    path = write_tar(tmp_path / "a.tar", samples([0]))
    with tarfile.open(path) as tar:
        end = tar.getmembers()[-1].offset_data + 512
    path.write_bytes(path.read_bytes()[:end] + entry + bytes(1024))
    report = index(tmp_path, quiet=True)
    assert (report.samples, report.exit_code) == (1, 1)
    assert told in report.damage["a.tar"]


def test_a_manifest_that_names_files_outside_is_not_followed(plain: Path) -> None:
    index(plain, quiet=True)
    path = plain / "dataset.json"
    content = json.loads(path.read_bytes())
    content["splits"]["train"]["shards"][0]["name"] = "../../etc/passwd"
    del content["checksum"]
    content["checksum"] = hashlib.sha256(dump(content)).hexdigest()
    path.write_bytes(dump(content))
    with pytest.raises((DamagedError, StorageError)):
        summarise(plain)
    assert any("no path inside the dataset" in damage.what for damage in verify(plain).damage)


def dump(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, indent=1, ensure_ascii=False).encode() + b"\n"
