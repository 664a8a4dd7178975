"""A command's help and a bare import answer at once: they load nothing heavy. Modules are counted, not time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from shardforge.compile.plan import cut, draft
from shardforge.compile.staging import Staging
from shardforge.recipe import load_recipe
from shardforge.sources.scan import SourceOptions, scan
from tests.pictures import write_picture

HEAVY = ("torch", "pyarrow", "pydicom", "cv2", "PIL", "numpy", "pydantic", "imagecodecs", "simplejpeg", "webdataset")

REPORT_MODULES = """
import atexit, sys
atexit.register(lambda: print("\\nLOADED", *sorted({name.partition(".")[0] for name in sys.modules})))
"""
HELP = "from shardforge.cli import main; main(['--help'])"


def run_fresh(code: str) -> tuple[str, set[str]]:
    """Output of ``code`` in a new interpreter, and the top-level modules it had loaded at its end."""
    command = [sys.executable, "-c", f"{REPORT_MODULES}\n{code}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    text, _, loaded = done.stdout.rpartition("\nLOADED ")
    return text, set(loaded.split())


def test_the_probe_sees_a_heavy_module() -> None:
    _, loaded = run_fresh("import numpy")
    assert "numpy" in loaded


@pytest.mark.parametrize("code", ["import shardforge", "import shardforge.cli", HELP])
def test_nothing_heavy_is_loaded(code: str) -> None:
    _, loaded = run_fresh(code)
    assert "shardforge" in loaded
    assert not loaded & set(HEAVY)


def test_help_names_the_commands() -> None:
    text, _ = run_fresh(HELP)
    for command in ("build", "index", "inspect", "bench", "audit", "doctor"):
        assert command in text


TASK = """
import sys
from pathlib import Path
from shardforge.compile.shard_task import Marker, ShardTask
from shardforge.compile.task import run_shard_task
staging, source, out = sys.argv[1:]
task = ShardTask(staging, 0, "train-000000", source, out, 60)
result = run_shard_task(task, Marker(Path(staging, "mark")), print)
print(result.samples, *sorted(sys.modules))
"""


def test_a_worker_loads_nothing_that_only_planning_needs(tmp_path: Path) -> None:
    # A whole task in a fresh process, as imports may hide in functions, pyarrow's own included.
    write_picture(tmp_path / "src" / "0.jpg", 0, 64, 64)
    staging, out = tmp_path / "staging", tmp_path / "out"
    staging.mkdir()
    out.mkdir()
    plan = draft(scan(tmp_path / "src", SourceOptions()), load_recipe(None, {"size": 32}))
    Staging(staging).write_plan(plan, cut(plan, 1000), {})
    command = [sys.executable, "-c", TASK, staging, tmp_path / "src", out]
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, timeout=60)
    samples, *loaded = done.stdout.split()
    assert samples == "1"
    assert (out / "train-000000.tar").exists()
    unwanted = {"yaml", "tqdm", "pyarrow.compute", "shardforge.compile.plan", "shardforge.sources.scan", "torch"}
    assert not unwanted & set(loaded)
