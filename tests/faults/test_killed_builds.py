"""Builds and workers that are killed for real, at moments the build itself announces."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import psutil
import pyarrow.parquet as pq
import pytest

from shardforge.shards.manifest import Manifest
from shardforge.shards.verify import verify
from tests.pictures import class_folders, command, digest_tree, environment, run

BROKEN = 8
OPTIONS = ("--size", "32", "--shard-samples", "6", "--max-errors", "50", "--split", "train=0.8,val=0.2")


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures with broken files among them; each makes the build say so when it comes to it."""
    root = class_folders(tmp_path_factory.mktemp("raw"), {"a": 60, "b": 60}, width=160, height=120)
    for i in range(BROKEN):
        (root / "a" / f"broken{i}.png").write_bytes(b"no picture at all")
    return root


@pytest.fixture(scope="module")
def undisturbed(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    assert run("build", raw, out, *OPTIONS, "--workers", 1).returncode == 1
    assert verify(out).damage == ()
    return digest_tree(out)


def start(raw: Path, out: Path, *more: object, options: Sequence[object] = OPTIONS) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("build", raw, out, *options, *more),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )


def wait_for_failures(process: subprocess.Popen[str], count: int) -> None:
    """Returns when the build has told of so many failed items, which is while it is at work."""
    stderr: IO[str] | None = process.stderr
    assert stderr is not None
    for line in stderr:
        count -= line.startswith("failed:")
        if count <= 0:
            return
    raise AssertionError("the build ended before it told of enough failures")


@pytest.mark.parametrize("failures", [1, 4, 7])
def test_killed_at_any_moment_it_resumes_to_the_same_bytes(
    raw: Path, undisturbed: dict[str, str], tmp_path: Path, failures: int
) -> None:
    out = tmp_path / "out"
    process = start(raw, out, "--workers", 2)
    wait_for_failures(process, failures)
    workers = psutil.Process(process.pid).children()
    process.kill()
    process.wait()
    assert not (out / "dataset.json").exists()
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert alive == []
    done = {path: path.stat().st_mtime_ns for path in out.glob("*.tar")}
    result = run("build", raw, out, *OPTIONS, "--workers", 2)
    assert result.returncode == 1, result.stderr
    assert digest_tree(out) == undisturbed
    finished = {path for path, time in done.items() if path.stat().st_mtime_ns == time}
    assert len(finished) >= len(done) - 2


def test_ctrl_c_exits_130_and_resumes_to_the_same_bytes(
    raw: Path, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = start(raw, out, "--workers", 2)
    wait_for_failures(process, 2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert "interrupted" in stderr
    assert run("build", raw, out, *OPTIONS).returncode == 1
    assert digest_tree(out) == undisturbed


def test_killed_again_and_again_it_still_ends_with_the_same_bytes(
    raw: Path, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    for _ in range(3):
        process = start(raw, out, "--workers", 2)
        wait_for_failures(process, 1)
        process.kill()
        process.wait()
    assert run("build", raw, out, *OPTIONS, "--workers", 4).returncode == 1
    assert digest_tree(out) == undisturbed


def test_workers_stop_working_when_their_build_is_killed(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"b": 150}, width=640, height=480)
    (raw / "a").mkdir()
    (raw / "a" / "broken.png").write_bytes(b"no picture")
    process = start(
        raw, tmp_path / "out", "--workers", 1, "--no-shuffle", options=("--size", "32", "--max-errors", "50")
    )
    wait_for_failures(process, 1)
    workers = psutil.Process(process.pid).children()
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert alive == []
    assert list((tmp_path / "out" / ".staging").glob("*.done.json")) == []


def test_damage_done_while_a_build_was_down_is_built_again(
    raw: Path, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = start(raw, out, "--workers", 1)
    wait_for_failures(process, 7)
    process.kill()
    process.wait()
    finished = sorted((out / ".staging").glob("*.done.json"))
    shards = [json.loads(path.read_text())["name"] for path in finished]
    assert len(shards) >= 3
    with open(out / f"{shards[0]}.tar", "r+b") as file:
        file.truncate(1000)
    (out / f"{shards[1]}.parquet").unlink()
    finished[2].write_text("{")
    assert run("build", raw, out, *OPTIONS, "--workers", 2).returncode == 1
    assert digest_tree(out) == undisturbed


DIES_ONCE = """
import os, pathlib, sys
once = pathlib.Path(__file__).with_name("once")
if "shardforge.compile.worker" in " ".join(sys.orig_argv) and once.exists():
    once.unlink()
    os._exit(1)
"""


def test_half_made_shards_of_a_dead_build_are_never_continued(
    raw: Path, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = start(raw, out, "--workers", 1)
    wait_for_failures(process, 3)
    process.kill()
    process.wait()
    staging = out / ".staging"
    name = next(s["name"] for s in json.loads((staging / "plan.json").read_text())["shards"]
                if not (staging / f"{s['name']}.done.json").exists())  # fmt: skip
    # What a crash of the machine may leave: a journal that vouches for bytes which never reached the disk.
    (staging / f"{name}.rows").write_text(
        json.dumps({"tar_size": 1536, "outcome": {"status": "success", "flags": [], "extents": {}}}) + "\n"
    )
    (staging / f"{name}.hist").write_bytes(bytes(3 * 256 * 4))
    (staging / f"{name}.tar").write_bytes(bytes(1536))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(DIES_ONCE)
    (tmp_path / "site" / "once").touch()
    env = environment(PYTHONPATH=str(tmp_path / "site"))
    assert run("build", raw, out, *OPTIONS, "--workers", 1, env=env).returncode == 1
    assert not (tmp_path / "site" / "once").exists()
    assert digest_tree(out) == undisturbed


def test_workers_killed_from_outside_cost_nothing(raw: Path, undisturbed: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(raw, out, "--workers", 2)
    for failures in (1, 2, 2):
        wait_for_failures(process, failures)
        for worker in psutil.Process(process.pid).children():
            worker.send_signal(signal.SIGKILL)
    _, stderr = process.communicate(timeout=240)
    assert process.returncode == 1, stderr
    assert digest_tree(out) == undisturbed


def test_a_second_build_on_the_same_folder_is_refused(raw: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(raw, out, "--workers", 1)
    wait_for_failures(process, 1)
    process.send_signal(signal.SIGSTOP)
    try:
        result = run("build", raw, out, *OPTIONS)
        assert result.returncode == 3
        assert "another build is running" in result.stderr
    finally:
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=240)
    assert process.returncode == 1


def test_builds_at_once_on_one_folder_end_with_one_dataset(
    raw: Path, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    processes = [start(raw, out, "--workers", 1) for _ in range(3)]
    codes = []
    for process in processes:
        _, stderr = process.communicate(timeout=240)
        codes.append(process.returncode)
        assert "Traceback" not in stderr
    # The first builds (1: some items failed); the others find it up to date (0), or give up waiting (3).
    assert codes.count(1) == 1
    assert set(codes) <= {0, 1, 3}
    assert digest_tree(out) == undisturbed


DIES_WHILE_PUBLISHING = """
# Ends the worker once, at the moment that the file beside this one names.
import os, pathlib, sys
moment = pathlib.Path(__file__).with_name("moment")
if "shardforge.compile.worker" in " ".join(sys.orig_argv):
    def once(event, arguments):
        if event == "os.rename" and moment.exists() and moment.read_text() in str(arguments[1]):
            moment.unlink()
            os._exit(1)
    sys.addaudithook(once)
"""


@pytest.mark.parametrize("moment", ["000001.tar", "000001.parquet", "000001.done.json", "000002.done.json"])
def test_a_worker_that_dies_while_publishing_costs_nothing(
    raw: Path, undisturbed: dict[str, str], tmp_path: Path, moment: str
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(DIES_WHILE_PUBLISHING)
    (tmp_path / "site" / "moment").write_text(f"train-{moment}")
    out = tmp_path / "out"
    result = run("build", raw, out, *OPTIONS, "--workers", 2, env=environment(PYTHONPATH=str(tmp_path / "site")))
    assert result.returncode == 1, result.stderr
    assert not (tmp_path / "site" / "moment").exists()
    assert digest_tree(out) == undisturbed


CRASHING_DECODER = """
# Makes the JPEG decoder of this process a faulty one: on marked files it reads address 0.
import ctypes, simplejpeg

sound = simplejpeg.decode_jpeg

def decode_jpeg(data, *args, **kwargs):
    if b"SEGFAULT" in bytes(data):
        ctypes.string_at(0)
    return sound(data, *args, **kwargs)

simplejpeg.decode_jpeg = decode_jpeg
"""


def reasons(out: Path) -> dict[str, str]:
    """source → reason of everything that failed."""
    manifest = Manifest.read(out)
    names = [shard.name for split in manifest.splits.values() for shard in split.shards]
    rows = [row for name in names for row in pq.read_table(out / f"{name}.parquet").to_pylist()]
    return {row["source"]: row["reason"] for row in rows if row["status"] == "failed"}


KILLED = """
# On marked files, kills this process as the kernel does, as often as the file beside this one is long; never while
# the build tries out how large samples are.
import os, pathlib, signal, simplejpeg

sound, left = simplejpeg.decode_jpeg, pathlib.Path(__file__).with_name("left")

def decode_jpeg(data, *args, **kwargs):
    if b"SEGFAULT" in bytes(data) and left.stat().st_size and not os.path.exists(os.environ["TRIAL"]):
        os.truncate(left, left.stat().st_size - 1)
        os.kill(os.getpid(), signal.SIGKILL)
    return sound(data, *args, **kwargs)

simplejpeg.decode_jpeg = decode_jpeg
"""


@pytest.mark.parametrize(("kills", "failed"), [(3, {}), (4, {"a/0007.jpg": "out_of_memory"})])
def test_an_item_outlives_three_kills_from_outside(tmp_path: Path, kills: int, failed: dict[str, str]) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 12}, extension="jpg")
    data = (raw / "a/0007.jpg").read_bytes()
    (raw / "a/0007.jpg").write_bytes(data[:2] + b"\xff\xfe" + struct.pack(">H", 10) + b"SEGFAULT" + data[2:])
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(KILLED)
    (site / "left").write_bytes(bytes(kills))
    env = environment(PYTHONPATH=str(site), TRIAL=str(tmp_path / "out" / ".staging" / "trial"))
    result = run("build", raw, tmp_path / "out", "--workers", 1, "--max-errors", "50%", env=env)
    assert result.returncode == (1 if failed else 0), result.stderr
    assert reasons(tmp_path / "out") == failed
    assert (site / "left").stat().st_size == 0
    assert verify(tmp_path / "out").damage == ()


def test_a_file_that_kills_its_process_costs_one_row(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 30}, extension="jpg")
    for name in ("a/0007.jpg", "a/0021.jpg"):
        data = (raw / name).read_bytes()
        # A comment segment after the start marker: legal, and what the faulty decoder looks for.
        (raw / name).write_bytes(data[:2] + b"\xff\xfe" + struct.pack(">H", 10) + b"SEGFAULT" + data[2:])
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(CRASHING_DECODER)
    env = environment(PYTHONPATH=str(tmp_path / "site"))
    outs = [tmp_path / "one", tmp_path / "two"]
    for workers, out in enumerate(outs, 1):
        result = run("build", raw, out, "--shard-samples", 10, "--workers", workers, env=env)
        assert result.returncode == 1, result.stderr
        assert reasons(out) == {"a/0007.jpg": "decoder_crash", "a/0021.jpg": "decoder_crash"}
        assert Manifest.read(out).splits["train"].samples == 28
        assert verify(out).damage == ()
    assert digest_tree(outs[0]) == digest_tree(outs[1])


def flat_png(path: Path, width: int, height: int) -> None:
    """A legal 8-bit RGB PNG of one colour, small on disk and large in memory."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    deflate = zlib.compressobj(1)
    row = b"\0" + bytes(3 * width)
    pixels = b"".join(deflate.compress(row) for _ in range(height)) + deflate.flush()
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))


def test_the_memory_limit_costs_one_row(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 12})
    flat_png(raw / "a" / "huge.png", 12_000, 12_000)
    (tmp_path / "recipe.yaml").write_text("run: {memory: 256MiB}")
    result = run("build", raw, tmp_path / "out", "--recipe", tmp_path / "recipe.yaml", "--workers", 2)
    assert result.returncode == 1, result.stderr
    assert set(reasons(tmp_path / "out")) == {"a/huge.png"}
    assert reasons(tmp_path / "out")["a/huge.png"] == "out_of_memory"
    assert verify(tmp_path / "out").damage == ()


def test_the_cpu_time_limit_costs_one_row(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 12})
    flat_png(raw / "a" / "slow.png", 13_000, 13_000)
    (tmp_path / "recipe.yaml").write_text("run: {cpu_seconds: 1}\nformat: png\nresize: none\n")
    result = run("build", raw, tmp_path / "out", "--recipe", tmp_path / "recipe.yaml", "--workers", 2)
    assert result.returncode == 1, result.stderr
    assert reasons(tmp_path / "out") == {"a/slow.png": "timeout"}
    assert verify(tmp_path / "out").damage == ()


def test_a_worker_that_cannot_start_is_one_clear_message(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 3})
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import os, sys\nif 'shardforge.compile.worker' in ' '.join(sys.orig_argv): os._exit(9)\n"
    )
    result = run("build", raw, tmp_path / "out", env=environment(PYTHONPATH=str(tmp_path / "site")))
    assert result.returncode == 3
    assert "worker processes keep ending" in result.stderr
    assert "Traceback" not in result.stderr


def test_nothing_is_left_behind_after_a_build(raw: Path, tmp_path: Path) -> None:
    assert run("build", raw, tmp_path / "out", *OPTIONS).returncode == 1
    assert not (tmp_path / "out" / ".staging").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
