"""Measures building a dataset against the codecs' own speed and against other tools, in one run, alternating.

    python scripts/bench_build.py --set both --repeats 3 --json bench.json

Pictures are composed of the two photographs that scikit-learn ships: set a of 12 megapixels, set b of 500 x 375; or
taken from --src. Every contender brings the short side to 256 and stores JPEGs of quality 95. Peers run in virtual
environments of their own under --cache, made with pip on first use (FFCV's needs: apt-get install g++ pkg-config
libopencv-dev libturbojpeg0-dev); one that cannot be installed, or fails, is reported as missing. The
result is a Markdown table.
"""

from __future__ import annotations

import argparse
import compileall
import json
import math
import os
import platform
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from scripts.bench.arguments import add_cache, add_json, add_only, add_python, add_runs, add_work, parsed, positive  # noqa: E402
from scripts.bench.environments import PEERS, MissingError, python_of  # noqa: E402
from scripts.bench.launch import launch  # noqa: E402
from scripts.bench.pictures import DISTINCT, composed, own  # noqa: E402
from scripts.bench.quality import judge  # noqa: E402
from scripts.bench.table import REFERENCE, Result, table  # noqa: E402
from scripts.bench.work import sources  # noqa: E402

OWN = ("shardforge", "bound", "bound_malloc", "bound_full")
CONTENDERS = (*OWN, *PEERS)
COUNTS = {"a": 1200, "b": 16000}
"""Enough for 20 seconds on two cores, so that starting is a small part of a run."""
LASTING = 20
"""Seconds; shorter runs are pointed out."""
FEW = 8
"""Pictures of the run that tells what starting costs."""
TITLES = {"a": "12-megapixel photographs", "b": "500 × 375 JPEGs", "src": "JPEGs of --src"}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    names: list[str] = options.only
    pythons: dict[str, Path | MissingError] = {}
    for name in names:
        try:
            given = options.python.get(name)
            pythons[name] = given or (Path(sys.executable) if name in OWN else python_of(name, options.cache))
        except MissingError as error:
            pythons[name] = error
    # As pip does when it installs the others.
    compileall.compile_dir(ROOT / "shardforge", quiet=2)
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="shardforge-bench-", dir=options.work) as folder:
        work = Path(folder)
        for chosen in ("src",) if options.src else ("a", "b") if options.set == "both" else (options.set,):
            if options.src:
                pictures = own(options.src, options.count, work / "own")
            else:
                pictures = composed(chosen, options.count or COUNTS[chosen], options.cache)
            count = len(sources(pictures))
            if count == 0:
                print(f"error: no JPEGs in {options.src}", file=sys.stderr)
                return 2

            def keep(results: Mapping[str, Result], name: str = chosen, count: int = count) -> None:
                report[name] = {"count": count, "few": FEW, "results": {n: asdict(r) for n, r in results.items()}}
                if options.json:
                    options.json.write_text(json.dumps(report, indent=1) + "\n")

            results = measure(pictures, pythons, work / chosen, options, keep)
            different = min(count, DISTINCT.get(chosen, count))
            _print(TITLES[chosen], count, different, results, options)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=("a", "b", "both"), default="both")
    parser.add_argument("--src", type=Path, help="measure with the JPEGs below this folder instead")
    parser.add_argument("--count", type=positive, help=f"pictures of a set (default {COUNTS['a']} and {COUNTS['b']})")
    add_runs(parser)
    add_only(parser, CONTENDERS)
    add_cache(parser)
    add_work(parser)
    add_python(parser, PEERS)
    add_json(parser, "run")
    return parsed(parser, arguments)


def measure(
    pictures: Path,
    pythons: Mapping[str, Path | MissingError],
    work: Path,
    options: argparse.Namespace,
    keep: Callable[[Mapping[str, Result]], None],
) -> dict[str, Result]:
    """Runs the contenders in turn: all over a few pictures, then ``repeats`` times A B C … over all of them.

    Args:
        keep: called with the results so far after each of these runs.
    """
    results = {name: Result() for name in pythons}
    work.mkdir()
    few = own(pictures, FEW, work / "few")
    for path in sources(pictures):
        # Nobody is the first to read from the disk.
        path.read_bytes()
    for turn in range(options.repeats + 1):
        for name, python in pythons.items():
            result = results[name]
            if result.missing is not None:
                continue
            print(f"{pictures.name}: {name}, {f'run {turn}' if turn else 'start'}", file=sys.stderr, flush=True)
            try:
                if isinstance(python, MissingError):
                    raise python
                with tempfile.TemporaryDirectory(dir=work) as folder:
                    out, stored = Path(folder, "out"), Path(folder, "stored")
                    out.mkdir()
                    stored.mkdir()
                    chosen = few if turn == 0 else pictures
                    run = launch(python, "scripts.bench.child", [name, chosen, out, options.workers, stored])
                    if turn == 0:
                        result.start = run
                    else:
                        result.runs.append(run)
                        result.quality = result.quality or judge(stored, pictures)
            except (MissingError, ValueError) as error:
                result.missing, result.runs = str(error), []
            keep(results)
    return results


def _print(
    title: str, count: int, different: int, results: Mapping[str, Result], options: argparse.Namespace
) -> None:
    command = shlex.join(["python", "scripts/bench_build.py", *sys.argv[1:]])
    machine = f"{os.cpu_count()} processors, {platform.machine()}, Python {platform.python_version()}"
    repeated = "" if different == count else f" ({different:,} different)"
    print(f"\n{count:,} {title}{repeated}, {options.workers} workers, medians of {options.repeats}: ", end="")
    print(f"`{command}` ({machine})\n")
    print(table(results, count, FEW), flush=True)
    own_runs = results[REFERENCE].runs if REFERENCE in results else []
    if own_runs and (seconds := min(run.seconds for run in own_runs)) < LASTING:
        enough = math.ceil(count * LASTING / seconds)
        print(
            f"\nA run of {REFERENCE} lasts {seconds:.1f} s, starting included; --count {enough} makes it {LASTING} s."
        )


if __name__ == "__main__":
    sys.exit(main())
