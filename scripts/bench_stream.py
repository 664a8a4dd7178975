"""Measures reading for training against the codecs' own speed and against other tools, in one run, alternating.

    python scripts/bench_stream.py --repeats 3 --json bench.json

Photographs (short side 256, JPEG of quality 95, made of the two that scikit-learn ships) are decoded, randomly
cropped and resized to 224, and mirrored, in uint8 batches of 256, by two workers or threads. Arrays (uint8 256 x 256)
take the same way without decoding. Every contender reads its own format, which it writes once, under --cache, where
peers also have virtual environments of their own, made with pip on first use (FFCV's needs: apt-get install g++
pkg-config libopencv-dev libturbojpeg0-dev); one that cannot be installed, or fails, is reported as missing. The
result is Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from scripts.bench.arguments import add_cache, add_json, add_only, add_python, add_runs, names_of, parsed, positive  # noqa: E402
from scripts.bench.environments import READERS, MissingError, python_of  # noqa: E402
from scripts.bench.launch import answer_of  # noqa: E402
from scripts.bench.reading.contestants import CONTENDERS, PEERS, Payload  # noqa: E402
from scripts.bench.reading.prepare import SMALL, arrays, pictures, some, written  # noqa: E402
from scripts.bench.reading.table import Result, extras_table, table  # noqa: E402
from scripts.bench.reading.work import BATCH  # noqa: E402

CHILD = "scripts.bench.reading.child"
OWN = ("shardforge", "shardforge_worker", "shardforge_dataset")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    folder = pictures(options.count, options.cache)
    report: dict[str, Any] = {"count": options.count, "results": {}, "extras": {}}

    def keep() -> None:
        if options.json:
            options.json.write_text(json.dumps(report, indent=1) + "\n")

    if "speed" in options.parts:

        def keep_results(results: Mapping[str, Result]) -> None:
            report["results"] = {name: asdict(result) for name, result in results.items()}
            keep()

        results = measure(options, folder, keep_results)
        _print(options, results)
    for part, measured in (("start", starting), ("memory", growing)):
        if part in options.parts:
            report["extras"] |= measured(options, folder)
            keep()
    if report["extras"]:
        print(f"\n{extras_table(report['extras'])}", flush=True)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=_enough, default=8000, help="pictures (default 8000)")
    parser.add_argument("--seconds", type=positive, default=10, help="that one run is measured (default 10)")
    add_runs(parser)
    parser.add_argument(
        "--shards", type=positive, default=1000, help="with which starting is measured (default 1000)"
    )
    parser.add_argument("--epochs", type=positive, default=50, help="in which memory is watched (default 50)")
    add_only(parser, CONTENDERS)
    parts = ("speed", "start", "memory")
    parser.add_argument("--parts", type=names_of(parts), default=list(parts), help=f"of {','.join(parts)}")
    add_cache(parser)
    add_python(parser, PEERS)
    add_json(parser, "run")
    options = parsed(parser, arguments)
    options.cache = options.cache.resolve()
    return options


def _enough(text: str) -> int:
    number = positive(text)
    if number < 2 * BATCH:
        raise argparse.ArgumentTypeError(f"{number} is fewer than two batches of {BATCH}")
    return number


def measure(
    options: argparse.Namespace, folder: Path, keep: Callable[[Mapping[str, Result]], None]
) -> dict[str, Result]:
    """Lets the contenders write their formats, then read in turn: ``repeats`` times A B C …

    Args:
        keep: called with the results so far after each run.
    """
    results = {name: Result() for name in options.only}
    data: dict[str, tuple[Path, Path]] = {}
    for name, result in results.items():
        print(f"{name}: preparing", file=sys.stderr, flush=True)
        try:
            python = _python(options, name)
            contender = CONTENDERS[name]
            data[name] = python, written(contender, python, arrays(folder) if contender.payload == "npy" else folder)
        except MissingError as error:
            result.missing = str(error)
    for turn in range(options.repeats):
        for name, (python, path) in data.items():
            result = results[name]
            if result.missing is not None:
                continue
            print(f"{name}: run {turn + 1}", file=sys.stderr, flush=True)
            try:
                result.runs.append(_read(python, name, path, options.workers, options.seconds))
            except MissingError as error:
                result.missing, result.runs = str(error), []
            keep(results)
    return results


def starting(options: argparse.Namespace, folder: Path) -> dict[str, dict[str, float]]:
    """Seconds to the first batch of a dataset of many shards, and to the next one after resuming."""
    python, found = Path(sys.executable), {}
    data = written(CONTENDERS["shardforge"], python, folder, shard=-(-options.count // options.shards))
    shards = len(list(data.glob("*.tar")))
    for name in _own(options):
        print(f"{name}: first batch of {shards} shards", file=sys.stderr, flush=True)
        runs = [_read(python, name, data, options.workers, 0)["first"] for _ in range(options.repeats)]
        found[f"{CONTENDERS[name].title}: first batch of {shards:,} shards"] = {"s": sorted(runs)[len(runs) // 2]}
    runs = [answer_of(python, CHILD, ["resume", data, options.workers])["resume"] for _ in range(options.repeats)]
    title = f"{CONTENDERS['shardforge'].title}: next batch after resuming in the middle of an epoch"
    return found | {title: {"s": sorted(runs)[len(runs) // 2]}}


def growing(options: argparse.Namespace, folder: Path) -> dict[str, dict[str, float]]:
    """Megabytes by which all processes grow in many epochs of a small dataset."""
    python, found = Path(sys.executable), {}
    data = written(CONTENDERS["shardforge"], python, some(folder, min(options.count, SMALL), "small"))
    for name in _own(options):
        print(f"{name}: {options.epochs} epochs", file=sys.stderr, flush=True)
        module = CONTENDERS[name].module
        words = ["grow", module, name, data, options.workers, options.epochs]
        grown = answer_of(python, CHILD, words)["growth"]
        found[f"{CONTENDERS[name].title}: growth in {options.epochs} epochs"] = {"MB": grown / 1e6}
    return found


def _own(options: argparse.Namespace) -> list[str]:
    """Ours that take part: starting and memory are measured on them alone."""
    return [name for name in options.only if name in OWN]


def _python(options: argparse.Namespace, name: str) -> Path:
    peer = CONTENDERS[name].peer
    if peer is None:
        return Path(sys.executable)
    given: Path | None = options.python.get(peer)
    return given or python_of(f"reading-{peer}", options.cache, READERS)


def _read(python: Path, name: str, data: Path, workers: int, seconds: int) -> dict[str, float]:
    for path in data.rglob("*"):
        if path.is_file():
            # Nobody is the first to read from the disk.
            with open(path, "rb") as file:
                while file.read(1 << 24):
                    pass
    return answer_of(python, CHILD, ["read", CONTENDERS[name].module, name, data, workers, seconds])


def _print(options: argparse.Namespace, results: Mapping[str, Result]) -> None:
    command = shlex.join(["python", "scripts/bench_stream.py", *sys.argv[1:]])
    machine = f"{os.cpu_count()} processors, {platform.machine()}, Python {platform.python_version()}"
    titles = {"jpg": "JPEGs, short side 256", "npy": "Arrays, 256 × 256"}
    payload: Payload
    for payload in get_args(Payload):
        if any(CONTENDERS[name].payload == payload for name in results):
            print(f"\n{titles[payload]} → crops of 224, ", end="")
            print(f"{options.workers} workers or threads, {options.repeats} rounds of {options.seconds} s: ", end="")
            print(f"`{command}` ({machine})\n\n{table(results, payload)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
