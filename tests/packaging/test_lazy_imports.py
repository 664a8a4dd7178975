"""A command's help and a bare import answer at once: they load nothing heavy. Modules are counted, not time."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
    for command in ("build", "index", "inspect", "audit", "doctor"):
        assert command in text
