"""Measures building from DICOM against the codecs' own speed and against the usual scripts, in one run, alternating.

    python scripts/bench_dicom.py --repeats 3 --json bench.json

The files are made by this script on first use: slices like those of CT, 512 x 512, in six transfer syntaxes,
mammograms of 4096 x 3328, and small files for the header pass. Contenders: this project; the bound (a plain pool that
parses, decodes, resizes, looks levels up and encodes); the usual script (pydicom, apply_modality_lut, apply_voi_lut,
OpenCV); one that clips with NumPy; SimpleITK with Pillow. Peers run in virtual environments of their own under
--cache, made with pip on first use; one that cannot be installed, or fails, is reported as missing. Times are without
what a run over a few files takes. The result is a Markdown table for each set and task.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from scripts.bench.arguments import add_cache, add_json, add_only, add_python, add_runs, add_work, names_of, parsed  # noqa: E402
from scripts.bench.dicom.difference import mean_difference  # noqa: E402
from scripts.bench.dicom.files import SETS, SMALL, FileSet, made  # noqa: E402
from scripts.bench.dicom.table import Measured, table  # noqa: E402
from scripts.bench.dicom.work import TASKS, sources  # noqa: E402
from scripts.bench.environments import MissingError, python_of  # noqa: E402
from scripts.bench.launch import launch  # noqa: E402
from scripts.bench.pictures import link  # noqa: E402

_READERS = ("pydicom", "pylibjpeg[all]", "python-gdcm", "opencv-python-headless")
PEERS: dict[str, tuple[str, ...]] = {
    "script": _READERS,
    "clip": _READERS,
    "simpleitk": ("SimpleITK", "numpy", "pillow"),
}
"""Contender → what pip installs for it."""
CONTENDERS = ("shardforge", "bound", "bound_malloc", *PEERS)
READERS = ("scan", "parse", "grouped")
"""Contenders of the header pass."""
HEADERS = "headers"
FEW = 8
"""Files of the run that tells what starting costs."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    pythons = {name: _interpreter(name, options) for name in options.only}
    # As pip does when it installs the others.
    compileall.compile_dir(ROOT / "shardforge", quiet=2)
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="shardforge-bench-", dir=options.work) as folder:
        for name in options.set:
            files = SMALL if name == HEADERS else SETS[name]
            count = options.count or files.count
            source = made(name, files, count, options.cache)
            for path in sources(source):
                # Nobody is the first to read from the disk.
                path.read_bytes()
            for task in _tasks(name, files, options.task):
                title = f"{name}-{task}"

                def keep(results: Mapping[str, Measured], title: str = title, count: int = count) -> None:
                    found = {one: asdict(result) for one, result in results.items()}
                    report[title] = {"count": count, "few": FEW, "results": found}
                    if options.json:
                        options.json.write_text(json.dumps(report, indent=1) + "\n")

                chosen = {one: Path(sys.executable) for one in READERS} if name == HEADERS else pythons
                results = measure(source, files, task, chosen, Path(folder, title), options, keep)
                _print(files, task, count, results, options)
    return 0


def _tasks(name: str, files: FileSet, wanted: Sequence[str]) -> Iterator[str]:
    if name == HEADERS:
        yield HEADERS
    elif files.is_ct:
        yield from (task for task in ("three", "one") if task in wanted)
    elif "mammogram" in wanted:
        yield "mammogram"


def _interpreter(name: str, options: argparse.Namespace) -> Path | MissingError:
    if name in options.python:
        return Path(options.python[name])
    if name not in PEERS:
        return Path(sys.executable)
    try:
        # Contenders that need the same share it.
        peer = next(one for one, needs in PEERS.items() if needs == PEERS[name])
        return python_of(f"dicom-{peer}", options.cache, {f"dicom-{peer}": PEERS[name]})
    except MissingError as error:
        return error


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sets, tasks = [*SETS, HEADERS], list(TASKS)
    parser.add_argument("--set", type=names_of(sets), default=sets, help=f"of {','.join(sets)}")
    parser.add_argument("--task", type=names_of(tasks), default=tasks, help=f"of {','.join(tasks)}")
    add_only(parser, CONTENDERS)
    parser.add_argument("--count", type=_count, help="files of a set (default: enough for some seconds)")
    add_runs(parser)
    add_cache(parser)
    add_work(parser)
    add_python(parser, PEERS)
    add_json(parser, "round")
    return parsed(parser, arguments)


def _count(text: str) -> int:
    number = int(text)
    if number <= FEW:
        raise argparse.ArgumentTypeError(f"more than {FEW}, which tell what starting costs")
    return number


def measure(
    source: Path,
    files: FileSet,
    task: str,
    pythons: Mapping[str, Path | MissingError],
    work: Path,
    options: argparse.Namespace,
    keep: Callable[[Mapping[str, Measured]], None],
) -> dict[str, Measured]:
    """Runs the contenders in turn: all over a few files, then ``repeats`` times A B C … over all of them.

    Args:
        keep: called with the results so far after each of these rounds.
    """
    results = {name: Measured() for name in pythons}
    few = work / "few"
    few.mkdir(parents=True)
    for path in sources(source)[:FEW]:
        link(path, few / path.name)
    for turn in range(options.repeats + 1):
        for name, python in pythons.items():
            result = results[name]
            if result.missing is not None:
                continue
            print(f"{work.name}: {name}, {f'run {turn}' if turn else 'start'}", file=sys.stderr, flush=True)
            try:
                if isinstance(python, MissingError):
                    raise python
                with tempfile.TemporaryDirectory(dir=work) as folder:
                    out, stored = Path(folder, "out"), Path(folder, "stored")
                    out.mkdir()
                    stored.mkdir()
                    taken = source if turn else few
                    words = [name, taken, out, options.workers, task, stored]
                    run = launch(python, "scripts.bench.dicom.child", words)
                    if turn == 0:
                        result.start = run
                        continue
                    result.runs.append(run)
                    if task in TASKS and result.difference is None:
                        result.difference = mean_difference(stored, files, TASKS[task])
            except (MissingError, ValueError) as error:
                result.missing, result.runs = str(error), []
        keep(results)
    return results


def _print(
    files: FileSet, task: str, count: int, results: Mapping[str, Measured], options: argparse.Namespace
) -> None:
    command = shlex.join(["python", "scripts/bench_dicom.py", *sys.argv[1:]])
    machine = f"{os.cpu_count()} processors, {platform.machine()}, Python {platform.python_version()}"
    what = "header pass" if task == HEADERS else f"{files.title}, {TASKS[task].title}"
    print(f"\n{count:,} images of {files.rows} × {files.columns}, {what}, {options.workers} workers, ", end="")
    print(f"medians of {options.repeats}: `{command}` ({machine})\n")
    print(table(results, count, FEW, "scan" if task == HEADERS else "shardforge"), flush=True)


if __name__ == "__main__":
    sys.exit(main())
