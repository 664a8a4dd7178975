"""This project, with its defaults (identifiers hashed, header pass included) but for the size of shards."""

from __future__ import annotations

from pathlib import Path

from scripts.bench.dicom.work import CHECKED, QUALITY, Task, sources
from shardforge import build as build_dataset
from shardforge import open as open_dataset
from shardforge.compile.identity_key import load_or_make

_KEY = "identity.key"


def build(source: Path, out: Path, workers: int, task: Task) -> None:
    # A shard is one worker's work; four for each worker share it evenly.
    samples = max(1, len(sources(source)) // (4 * workers))
    build_dataset(
        source,
        out / "set",
        kind="dicom",
        window=",".join(f"{center:g}/{width:g}" for center, width in task.windows),
        size=task.size,
        resize="longest",
        format=task.format,
        channels=len(task.windows),
        quality=QUALITY,
        workers=workers,
        shard_samples=samples,
        key_file=out / _KEY,
        quiet=True,
    )


def stored(source: Path, out: Path, task: Task) -> dict[str, bytes]:
    """The first pictures by the names of their files."""
    key = load_or_make(out / _KEY).key
    wanted = {key.hash_identifier("source", path.name): path.stem for path in sources(source)[:CHECKED]}
    columns = ["source", "shard", f"{task.format}_offset", f"{task.format}_size"]
    found = {}
    for row in open_dataset(out / "set").metadata.select(columns).to_pylist():
        source_name, shard, offset, size = (row[name] for name in columns)
        if source_name in wanted:
            with open(out / "set" / f"{shard}.tar", "rb") as tar:
                tar.seek(offset)
                found[wanted[source_name]] = tar.read(size)
    return found


def output_bytes(out: Path) -> int:
    return sum(path.stat().st_size for path in (out / "set").rglob("*") if path.is_file())
