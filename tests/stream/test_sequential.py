"""``SequentialDataset``: tars read forwards, from files, commands and a web server."""

from __future__ import annotations

import bz2
import functools
import gzip
import http.server
import io
import itertools
import json
import lzma
import os
import pickle
import shlex
import tarfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import psutil
import pytest
import torch
import webdataset
from torch.utils.data import DataLoader

import shardforge
from shardforge.errors import DamagedError, StorageError, UsageError
from shardforge.stream.sample import OnError
from shardforge.stream.sequential import SequentialDataset
from shardforge.transforms import RandomResizedCrop
from tests.datasets import encode, mask, picture

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")

SHARDS, PER_SHARD = 6, 5


def write_tar(path: Path, samples: Mapping[str, Mapping[str, bytes]]) -> Path:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for key, members in samples.items():
            for suffix, payload in members.items():
                info = tarfile.TarInfo(f"{key}.{suffix}")
                info.size = len(payload)
                tar.addfile(info, io.BytesIO(payload))
    return path


def sample(number: int) -> dict[str, bytes]:
    return {"png": encode(picture(number), "png"), "cls": str(number % 7).encode()}


@pytest.fixture(scope="module")
def tars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six shards of five samples, written by webdataset itself; sample n has picture n and class n % 7."""
    root = tmp_path_factory.mktemp("tars")
    for shard in range(SHARDS):
        with webdataset.TarWriter(str(root / f"train-{shard:03d}.tar")) as writer:
            for number in range(shard * PER_SHARD, (shard + 1) * PER_SHARD):
                writer.write({"__key__": f"{number:04d}", **sample(number)})
    return root


def urls(tars: Path) -> str:
    return f"{tars}/train-{{000..{SHARDS - 1:03d}}}.tar"


def numbers(content: Any) -> list[int]:
    return [int(entry["key"]) for entry in content]


ALL = list(range(SHARDS * PER_SHARD))


# --- what is read -------------------------------------------------------------------------------------------------


def test_samples_are_those_that_webdataset_was_given(tars: Path) -> None:
    data = list(SequentialDataset(urls(tars), fields=("image", "label", "key")))
    assert sorted(numbers(data)) == ALL
    for entry in data:
        assert np.array_equal(entry["image"].numpy(), picture(int(entry["key"])))
        assert entry["label"].dtype == torch.int64
        assert int(entry["label"]) == int(entry["key"]) % 7


def test_the_public_name_is_this_class() -> None:
    assert shardforge.SequentialDataset is SequentialDataset


@pytest.mark.parametrize("form", ["pattern", "list", "path", "file", "pipe"])
def test_every_way_to_name_shards_reads_the_same(tars: Path, form: str) -> None:
    paths = sorted(tars.glob("*.tar"))
    given: Any = {
        "pattern": f"{tars}/train-*.tar",
        "list": [str(path) for path in paths],
        "path": paths,
        "file": [f"file:{path}" for path in paths],
        "pipe": [f"pipe:cat {shlex.quote(str(path))}" for path in paths],
    }[form]
    assert numbers(SequentialDataset(given, shuffle=False, fields=("key",))) == ALL


@pytest.fixture
def server(tars: Path) -> Iterator[str]:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tars))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_a_web_server_is_read(server: str) -> None:
    data = SequentialDataset(f"{server}/train-{{000..005}}.tar", shuffle=False, fields=("key",))
    assert numbers(data) == ALL


def test_a_url_that_the_server_does_not_have_is_named(server: str) -> None:
    with pytest.raises(StorageError, match=r"/absent\.tar: the command that reads it failed \(exit status 22\)"):
        list(SequentialDataset(f"{server}/absent.tar", fields=("key",)))


def test_every_kind_of_member_is_decoded_by_its_suffix(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    members = {
        "JPEG": encode(picture(1), "jpg"),
        "seg.png": encode(mask(1), "png"),
        "txt": "größe".encode(),
        "json": json.dumps({"a": [1]}).encode(),
        "npy": encode(array, "npy"),
        "mp4": b"\0film",
        "cls": b"3\n",
    }
    path = write_tar(tmp_path / "a.tar", {"dir/one": members})
    (entry,) = SequentialDataset(path, fields=("image", "seg.png", "txt", "json", "npy", "mp4", "cls", "key"))
    assert entry["image"].shape == (32, 32, 3)
    assert np.array_equal(entry["seg.png"].numpy(), mask(1))
    assert (entry["txt"], entry["json"], entry["mp4"], int(entry["cls"])) == ("größe", {"a": [1]}, b"\0film", 3)
    assert np.array_equal(entry["npy"].numpy(), array)
    assert entry["key"] == "dir/one"


def test_a_picture_is_what_its_bytes_are_not_what_its_name_says(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", {"a": {"jpg": encode(picture(4), "png")}})
    (entry,) = SequentialDataset(path, fields=("image",))
    assert np.array_equal(entry["image"].numpy(), picture(4))


def test_a_png_in_colour_is_a_picture_and_a_grey_one_a_mask(tmp_path: Path) -> None:
    deep = np.asarray(picture(5), np.uint16) * 257
    members = {
        "jpg": encode(picture(1), "jpg"),
        "left.png": encode(picture(2), "png"),
        "deep.png": imagecodecs.png_encode(deep),
        "grey.jpg": encode(picture(3, channels=1), "jpg"),
        "far.webp": encode(picture(3), "webp"),
        "seg.png": encode(mask(1), "png"),
    }
    path = write_tar(tmp_path / "a.tar", {"a": members})
    names = ("image", *list(members)[1:])
    (entry,) = SequentialDataset(path, fields=names, channels=1)
    assert {name: tuple(entry[name].shape) for name in names} == {
        "image": (32, 32, 1),
        **dict.fromkeys(("left.png", "deep.png", "grey.jpg", "far.webp"), (32, 32, 3)),
        "seg.png": (32, 32),
    }
    assert np.array_equal(entry["left.png"].numpy(), picture(2))
    assert np.array_equal(entry["deep.png"].numpy(), picture(5))
    assert np.array_equal(entry["seg.png"].numpy(), mask(1))


def test_pickles_are_given_as_bytes_and_never_loaded(tmp_path: Path) -> None:
    bomb = b"cos\nsystem\n(S'touch " + str(tmp_path / "executed").encode() + b"'\ntR."
    path = write_tar(tmp_path / "a.tar", {"a": {"pyd": bomb, "pkl": bomb, "pth": bomb}})
    (entry,) = SequentialDataset(path, fields=("pyd", "pkl", "pth"))
    assert set(entry.values()) == {bomb}
    assert not (tmp_path / "executed").exists()


# --- order and shares ---------------------------------------------------------------------------------------------


def test_order_is_a_function_of_seed_and_epoch(tars: Path) -> None:
    def order(seed: int, epoch: int) -> list[int]:
        data = SequentialDataset(urls(tars), seed=seed, fields=("key",))
        data.set_epoch(epoch)
        return numbers(data)

    assert order(0, 0) == order(0, 0) != ALL
    assert len({tuple(order(seed, epoch)) for seed in (0, 1) for epoch in (0, 1)}) == 4
    assert all(sorted(order(0, epoch)) == ALL for epoch in range(3))


def test_epochs_move_on_by_themselves(tars: Path) -> None:
    data = SequentialDataset(urls(tars), fields=("key",))
    first, second = numbers(data), numbers(data)
    assert first != second
    assert data.epoch == 2
    data.set_epoch(0)
    assert numbers(data) == first


@pytest.mark.parametrize(("world", "workers"), [(1, 2), (2, 1), (2, 3), (3, 2), (6, 1)])
def test_ranks_and_workers_share_the_shards_without_overlap(tars: Path, world: int, workers: int) -> None:
    found: list[int] = []
    for rank in range(world):
        data = SequentialDataset(urls(tars), fields=("key",), rank=rank, world_size=world)
        found += numbers(DataLoader(data, batch_size=None, num_workers=workers))
    assert sorted(found) == ALL


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_every_start_method_reads_the_same_two_epochs(tars: Path, method: str) -> None:
    def epochs(context: str) -> list[list[int]]:
        loader = DataLoader(
            SequentialDataset(urls(tars), fields=("key",)),
            batch_size=None,
            num_workers=2,
            persistent_workers=True,
            multiprocessing_context=context,
        )
        return [numbers(loader) for _ in range(2)]

    found = epochs(method)
    assert found == epochs("fork")
    assert found[0] != found[1]
    assert all(sorted(epoch) == ALL for epoch in found)


@pytest.mark.parametrize(("world", "workers"), [(1, 0), (1, 4), (2, 3), (4, 1), (6, 1)])
@pytest.mark.parametrize("steps", [1, 4, 11])
def test_every_rank_gives_the_fixed_number_of_whole_batches(tars: Path, world: int, workers: int, steps: int) -> None:
    """Eleven batches of three from shares as small as one shard of five: shares are read again and again."""
    for rank in range(world):
        data = SequentialDataset(
            urls(tars), fields=("key",), batch_size=3, steps_per_epoch=steps, rank=rank, world_size=world
        )
        batches = list(DataLoader(data, batch_size=None, num_workers=workers))
        assert len(data) == steps
        assert [len(entry["key"]) for entry in batches] == [3] * steps


def test_a_share_is_read_whole_before_it_is_read_again(tars: Path) -> None:
    data = SequentialDataset(urls(tars), fields=("key",), steps_per_epoch=75)
    found = numbers(data)
    assert sorted(found[:30]) == sorted(found[30:60]) == ALL
    assert found[:30] != found[30:60]


def test_without_steps_there_is_no_length(tars: Path) -> None:
    with pytest.raises(TypeError, match="only with steps_per_epoch"):
        len(SequentialDataset(urls(tars)))


def test_more_ranks_than_shards_are_refused_before_any_worker_starts(tars: Path) -> None:
    with pytest.raises(UsageError, match="6 shards for 7 ranks: 1 of them"):
        SequentialDataset(urls(tars), fields=("key",), rank=0, world_size=7)


@pytest.mark.parametrize(("world", "workers", "told"), [(2, 4, "2 ranks with 4 workers each"), (1, 7, "7 workers")])
def test_a_worker_that_would_get_no_shard_is_refused(tars: Path, world: int, workers: int, told: str) -> None:
    data = SequentialDataset(urls(tars), fields=("key",), rank=0, world_size=world)
    with pytest.raises(UsageError) as caught:
        list(DataLoader(data, batch_size=None, num_workers=workers))
    # torch puts the worker's traceback in front; what there is to know stands at the end, in one line.
    last = str(caught.value).rstrip().splitlines()[-1]
    assert f"6 shards for {told}" in last
    assert "Use fewer workers or more shards." in last


def test_the_buffer_mixes_shards_and_its_size_bounds_how_far(tars: Path) -> None:
    data = SequentialDataset(urls(tars), shuffle=4, fields=("key",))
    shards = [number // PER_SHARD for number in numbers(data)]
    visited = list(dict.fromkeys(shards))
    # A sample may wait for long, but none is given before it was read.
    for place, shard in enumerate(shards):
        assert visited.index(shard) * PER_SHARD < place + 1 + 4
    assert shards != sorted(shards, key=visited.index)


def test_one_shard_is_mixed_differently_every_time_it_is_read(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", {f"{number}": {"txt": b""} for number in range(30)})
    data = SequentialDataset(path, fields=("key",), steps_per_epoch=60)
    orders = [tuple(found[start : start + 30]) for found in (numbers(data), numbers(data)) for start in (0, 30)]
    assert len(set(orders)) == 4
    assert all(sorted(order) == list(range(30)) for order in orders)


def test_crops_depend_on_sample_and_epoch_not_on_topology(tars: Path) -> None:
    def crops(workers: int, epoch: int) -> dict[str, bytes]:
        data = SequentialDataset(urls(tars), fields=("image", "key"), transform=RandomResizedCrop(8))
        data.set_epoch(epoch)
        return {
            e["key"]: e["image"].numpy().tobytes() for e in DataLoader(data, batch_size=None, num_workers=workers)
        }

    assert crops(0, 0) == crops(3, 0) != crops(0, 1)


def test_tuples_and_transforms_of_whole_samples(tars: Path) -> None:
    def doubled(content: dict[str, Any]) -> dict[str, Any]:
        return {**content, "label": content["label"] * 2}

    for key, label in SequentialDataset(urls(tars), fields=("key", "label"), as_tuple=True, transform_sample=doubled):
        assert int(label) == int(key) % 7 * 2
    with pytest.raises(UsageError, match="left out 'key'"):
        next(iter(SequentialDataset(urls(tars), fields=("key",), as_tuple=True, transform_sample=lambda _: {})))


def test_it_pickles(tars: Path) -> None:
    data = SequentialDataset(urls(tars), fields=("key",), seed=3)
    assert numbers(pickle.loads(pickle.dumps(data))) == numbers(data)  # noqa: S301


# --- damage -------------------------------------------------------------------------------------------------------


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Shard 0: a broken picture and a sample without one; shard 1 is whole."""
    write_tar(tmp_path / "0.tar", {"0": sample(0), "1": {"png": b"\x89PNG", "cls": b"1"}, "2": {"cls": b"2"}})
    write_tar(tmp_path / "1.tar", {"3": sample(3)})
    return tmp_path


def test_a_broken_sample_is_named(broken: Path) -> None:
    with pytest.raises(DamagedError, match=r"0\.tar, sample 1: its member 'png': no PNG"):
        list(SequentialDataset(f"{broken}/*.tar", shuffle=False))


def test_masked_samples_are_skipped_and_counted(broken: Path) -> None:
    data = SequentialDataset(f"{broken}/*.tar", shuffle=False, on_error="mask", fields=("image", "key"))
    assert numbers(data) == [0, 3]
    assert data.masked_errors == 2
    loader = DataLoader(data, batch_size=None, num_workers=2)
    assert sorted(numbers(loader)) == [0, 3]
    assert data.masked_errors == 4


def cut(path: Path, length: int) -> Path:
    data = path.read_bytes()[:length]
    path.write_bytes(data)
    return path


# A sample here is a header, 1 KiB of picture, a header and a block of class: cut in a payload, in a header, and
# exactly between two members, where webdataset's own stages see nothing wrong.
@pytest.mark.parametrize("length", [512 * 9 + 100, 512 * 10 + 100, 512 * 10, 512 * 5])
@pytest.mark.parametrize("command", [False, True], ids=["file", "pipe"])
def test_a_shard_that_breaks_off_is_named_wherever_it_does(tmp_path: Path, length: int, command: bool) -> None:
    samples = {f"{n}": {"txt": b"x" * 1000, "cls": b"1"} for n in range(4)}
    path = cut(write_tar(tmp_path / "a.tar", samples), length)
    whole = write_tar(tmp_path / "b.tar", {"9": {"txt": b"y"}})
    given = [f"pipe:cat {path}" if command else str(path), str(whole)]
    with pytest.raises(DamagedError, match=r"a\.tar: no whole tar"):
        list(SequentialDataset(given, shuffle=False, fields=("key",)))
    data = SequentialDataset(given, shuffle=False, fields=("key", "txt"), on_error="mask")
    found = [entry["key"] for entry in data]
    assert found[: length // 2560] == [f"{n}" for n in range(length // 2560)]
    assert found[-1] == "9"
    assert data.masked_errors == 1


@pytest.mark.parametrize("packed", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_archives_in_a_row_are_all_read(tars: Path, tmp_path: Path, packed: Callable[[bytes], bytes]) -> None:
    """As ``cat a.tar b.tar`` makes them; what ends one sample never begins the next, though the keys are the same."""
    twice = write_tar(tmp_path / "one.tar", {"0000": {"txt": b"other"}}).read_bytes()
    parts = [(tars / f"train-00{n}.tar").read_bytes() for n in (1, 0)] + [twice]
    (tmp_path / "all.tar").write_bytes(b"".join(map(packed, parts)))
    for url in (tmp_path / "all.tar", f"pipe:cat {shlex.quote(str(tmp_path / 'all.tar'))}"):
        assert numbers(SequentialDataset(url, shuffle=False, fields=("key",))) == [5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 0]


def test_what_follows_an_archive_and_is_neither_zeros_nor_an_archive_is_damage(tars: Path, tmp_path: Path) -> None:
    whole = (tars / "train-000.tar").read_bytes()
    for junk in (b"x", b"x" * 600):
        (tmp_path / "a.tar").write_bytes(whole + junk + bytes(1024) + whole)
        with pytest.raises(DamagedError, match="neither padding nor another archive follows"):
            list(SequentialDataset(tmp_path / "a.tar", shuffle=False, fields=("key",)))
        data = SequentialDataset(tmp_path / "a.tar", shuffle=False, fields=("key",), on_error="mask")
        assert (numbers(data), data.masked_errors) == (list(range(5)), 1)
    (tmp_path / "a.tar").write_bytes(whole + bytes(512 * 7))
    assert numbers(SequentialDataset(tmp_path / "a.tar", shuffle=False, fields=("key",))) == list(range(5))


def test_a_damaged_header_amid_an_archive_is_told(tmp_path: Path) -> None:
    data = bytearray(write_tar(tmp_path / "a.tar", {f"{n}": {"txt": b"x"} for n in range(4)}).read_bytes())
    data[1024 * 2 + 5] ^= 1
    (tmp_path / "a.tar").write_bytes(data)
    reader = SequentialDataset(tmp_path / "a.tar", shuffle=False, fields=("key",), on_error="mask")
    assert (numbers(reader), reader.masked_errors) == ([0, 1], 1)
    with pytest.raises(DamagedError, match=r"no tar header at byte 2,048"):
        list(SequentialDataset(tmp_path / "a.tar", shuffle=False, fields=("key",)))


@pytest.mark.parametrize("end", ["exit 3", "kill -9 $$"])
def test_everything_before_a_failure_is_read_and_the_failure_counted_once(tars: Path, end: str) -> None:
    """The command is over long before its output is read."""
    url = f"pipe:cat {shlex.quote(str(tars / 'train-000.tar'))}; {end}"
    data = SequentialDataset([url, str(tars / "train-001.tar")], shuffle=False, fields=("key",), on_error="mask")
    found = []
    for entry in data:
        if not found:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        found.append(int(entry["key"]))
    assert (found, data.masked_errors) == (list(range(10)), 1)


def test_the_half_that_a_failing_command_leaves_is_counted_once_with_it(tmp_path: Path) -> None:
    samples = {f"{n}": {"txt": b"x" * 1000, "cls": b"1"} for n in range(4)}
    path = shlex.quote(str(write_tar(tmp_path / "a.tar", samples)))
    for blocks, whole in ((10, 2), (13, 2), (14, 2), (15, 3)):
        url = f"pipe:head -c {512 * blocks} {path}; exit 3"
        data = SequentialDataset(url, shuffle=False, fields=("key", "label"), on_error="mask")
        assert (numbers(data), data.masked_errors) == (list(range(whole)), 1)
        with pytest.raises(StorageError, match="exit status 3"):
            list(SequentialDataset(url, shuffle=False, fields=("key", "label")))


def test_only_the_names_of_webdatasets_own_metadata_are_left_out(tmp_path: Path) -> None:
    names = {"__meta__/a": {"txt": b""}, "__b": {"txt": b"", "__key__": b"x"}, "c": {"txt": b""}}
    path = write_tar(tmp_path / "a.tar", names)
    assert [entry["key"] for entry in SequentialDataset(path, shuffle=False, fields=("key",))] == ["__b", "c"]


def test_a_file_url_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file"):
        list(SequentialDataset(f"file:{tmp_path}/absent.tar", fields=("key",)))


def test_a_command_that_fails_late_is_an_error(tars: Path) -> None:
    path = shlex.quote(str(tars / "train-000.tar"))
    with pytest.raises(StorageError, match=r"the command that reads it failed \(exit status 3\)"):
        list(SequentialDataset(f"pipe:cat {path}; exit 3", fields=("key",)))


@pytest.mark.parametrize(
    ("content", "error"), [(b"", "no whole tar"), (b"no tar at all" * 100, "no whole tar"), (None, "No such file")]
)
def test_what_is_no_tar_is_named(tmp_path: Path, content: bytes | None, error: str) -> None:
    path = tmp_path / "x.tar"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises((DamagedError, StorageError), match=error):
        list(SequentialDataset(path, fields=("key",)))


def test_members_of_two_broken_off_shards_never_make_one_sample(tmp_path: Path) -> None:
    """Shard a ends inside sample 1, shard b begins with another sample 1."""
    a = write_tar(tmp_path / "a.tar", {"0": {"txt": b"a0"}, "1": {"txt": b"a1", "cls": b"1"}})
    b = write_tar(tmp_path / "b.tar", {"1": {"json": b"{}", "cls": b"2"}})
    cut(a, 512 * 5)
    data = SequentialDataset([a, b], shuffle=False, fields=("txt", "cls"), on_error="mask")
    assert list(data) == []


def test_a_share_without_any_sample_ends_instead_of_spinning(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", {"0": {"txt": b""}})
    data = SequentialDataset(path, steps_per_epoch=5, on_error="mask")
    with pytest.raises(DamagedError, match="none of the 1 shards of this share holds a sample that can be read"):
        list(data)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("on_error", ["raise", "mask"])
def test_shards_without_any_sample_are_never_silently_nothing(
    tmp_path: Path, workers: int, on_error: OnError
) -> None:
    for name in ("a", "b"):
        write_tar(tmp_path / f"{name}.tar", {})
    data = SequentialDataset(f"{tmp_path}/*.tar", fields=("key",), on_error=on_error)
    with pytest.raises(DamagedError, match=f"none of the {2 // max(workers, 1)} shards of this share"):
        list(DataLoader(data, batch_size=None, num_workers=workers))


def test_one_worker_whose_shards_hold_nothing_is_told(tmp_path: Path) -> None:
    write_tar(tmp_path / "a.tar", {"0": {"txt": b""}})
    write_tar(tmp_path / "b.tar", {})
    data = SequentialDataset(f"{tmp_path}/*.tar", shuffle=False, fields=("key",))
    with pytest.raises(DamagedError, match=r"b\.tar: none of the 1 shards of this share"):
        list(DataLoader(data, batch_size=None, num_workers=2))


@pytest.mark.parametrize("label", [b"99999999999999999999", b"-7", b"1_0", b"cat", b""])
def test_a_broken_label_is_damage_that_can_be_masked(tmp_path: Path, label: bytes) -> None:
    path = write_tar(tmp_path / "a.tar", {"0": {"cls": label}, "1": {"cls": b" 12\n"}})
    data = SequentialDataset(path, shuffle=False, fields=("label",), on_error="mask")
    assert [int(entry["label"]) for entry in data] == [12]
    assert data.masked_errors == 1
    with pytest.raises(DamagedError, match="its member 'cls': no valid class"):
        list(SequentialDataset(path, shuffle=False, fields=("label",)))


def test_leaving_early_ends_the_command(tars: Path, tmp_path: Path) -> None:
    """A command that would stay for longer than this test may take, left after one sample."""
    path = shlex.quote(str(tars / "train-000.tar"))
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    data = iter(SequentialDataset(f"pipe:cat {path}; exec sleep 900", shuffle=False, fields=("key",)))
    next(data)
    del data
    left = [c for c in psutil.Process().children(recursive=True) if c.pid not in before]
    assert not [child for child in left if child.status() != psutil.STATUS_ZOMBIE]


# --- arguments ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"urls": []}, "no shard is named"),
        ({"urls": "/nowhere/*.tar"}, "matches no file"),
        ({"urls": "/tmp"}, "is a folder"),
        ({"urls": "a.tar", "fields": ()}, "a list of names"),
        ({"urls": "a.tar", "fields": "key"}, "a list of names"),
        ({"urls": "a.tar", "fields": ("key", "key")}, "named twice"),
        ({"urls": "a.tar", "batch_size": 0}, "batch_size=0"),
        ({"urls": "a.tar", "steps_per_epoch": 0}, "steps_per_epoch=0"),
        ({"urls": "a.tar", "shuffle": 0}, "shuffle=0"),
        ({"urls": "a.tar", "seed": -1}, "seed=-1"),
        ({"urls": "a.tar", "on_error": "skip"}, "on_error='skip'"),
        ({"urls": "a.tar", "channels": 4}, "channels=4"),
        ({"urls": "a.tar", "rank": 1}, "given together"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_at_once(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        SequentialDataset(**arguments)


def test_the_buffer_is_uniform_over_what_it_may_reach() -> None:
    """Of a buffer as large as the data every order comes up equally often: 3! = 6 orders, 6 000 draws, chi-square."""
    from shardforge.stream.buffer import shuffled

    counts: Counter[Sequence[int]] = Counter()
    for seed in range(6000):
        counts[tuple(shuffled(range(3), 3, np.random.default_rng(seed)))] += 1
    assert set(counts) == set(itertools.permutations(range(3)))
    # 20.5 is the 0.999 quantile of the chi-square distribution with five degrees of freedom.
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < 20.5
