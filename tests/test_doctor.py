"""The doctor tells the truth about this installation, and a broken one becomes problems, never a traceback."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import shardforge
from shardforge.codecs.decode import DECODERS
from shardforge.doctor import diagnose
from shardforge.installation import inspect_pillow

DIAGNOSE = """
import json
from shardforge.doctor import diagnose
report = diagnose()
assert report.lines()
print(json.dumps(report.to_json()))
"""


def diagnose_beside(folder: Path, before: str = "") -> dict[str, object]:
    """The report of a new interpreter that finds ``folder`` first, after running ``before``."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n{before}\n{DIAGNOSE}"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120)
    report = json.loads(done.stdout)
    assert isinstance(report, dict)
    return report


def write_distribution(folder: Path, name: str, version: str) -> None:
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def problems_of(report: dict[str, object]) -> str:
    return json.dumps(report["problems"])


def test_versions_are_those_of_the_installed_distributions() -> None:
    report = diagnose()
    versions = {package.name: package.version for package in report.packages}
    for name in ("torch", "webdataset", "opencv-python-headless", "imagecodecs", "simplejpeg", "pydicom", "pyarrow"):
        assert versions[name] == importlib.metadata.version(name)
    assert report.gpus == tuple(torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count()))


def test_the_active_pillow_is_named_with_its_codecs() -> None:
    pillow, problems = inspect_pillow()
    assert problems == []
    assert pillow is not None
    assert pillow.version == importlib.metadata.version(pillow.distribution)
    assert pillow.simd == (platform.machine() == "x86_64")
    assert {"jpg", "zlib"} <= set(pillow.codecs)


def test_every_jpeg_decoder_tells_its_libjpeg_turbo() -> None:
    told = diagnose().libjpeg_turbo
    assert set(told) == {"pillow", "simplejpeg", "opencv", "imagecodecs"}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in told.values())


def test_every_format_names_its_installed_decoder() -> None:
    told = diagnose().decoders
    assert set(told) == set(DECODERS)
    assert told["jpeg"] == "simplejpeg"
    assert told["png"] == "imagecodecs"
    installed = {name.lower() for names in importlib.metadata.packages_distributions().values() for name in names}
    assert bool(told["heif"]) == ("pillow-heif" in installed)


def test_nothing_is_called_absent_that_the_package_would_not_use() -> None:
    root = Path(shardforge.__file__).parent
    trees = [ast.parse(path.read_text()) for path in root.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    imported = {
        alias.name.partition(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names
    }
    imported |= {(node.module or "").partition(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
    optional = {package.name.replace("-", "_") for package in diagnose().optional}
    assert optional
    assert optional <= imported


def test_text_and_json_tell_the_same() -> None:
    report = diagnose()
    text = "\n".join(report.lines())
    content = json.loads(json.dumps(report.to_json()))
    assert content["ok"] is report.ok
    for package in content["packages"]:
        assert package["name"] in text
        assert package["version"] in text


@pytest.mark.skipif(platform.machine() != "x86_64", reason="elsewhere plain pillow is the right one")
def test_pillow_beside_pillow_simd_is_a_problem(tmp_path: Path) -> None:
    write_distribution(tmp_path, "pillow", "12.1.1")
    report = diagnose_beside(tmp_path)
    assert report["ok"] is False
    assert "pip uninstall -y pillow" in problems_of(report)


def test_pillow_without_jpeg_is_a_problem(tmp_path: Path) -> None:
    # Pillow looks for an encoder of this name in its compiled core.
    report = diagnose_beside(tmp_path, "from PIL import features; features.codecs['jpg'] = ('absent', None)")
    assert "compiled without jpg" in problems_of(report)
    assert "libjpeg-dev" in problems_of(report)


def test_two_opencv_distributions_are_a_problem(tmp_path: Path) -> None:
    write_distribution(tmp_path, "opencv-python", "4.9.0")
    assert "opencv-python-headless and opencv-python" in problems_of(diagnose_beside(tmp_path))


def test_a_package_that_fails_to_import_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "cv2.py").write_text("raise OSError('libGL.so.1: cannot open shared object file')")
    (tmp_path / "torch.py").write_text("raise AttributeError('half an installation')")
    (tmp_path / "PIL").mkdir()
    (tmp_path / "PIL" / "__init__.py").write_text("1 / 0")
    report = diagnose_beside(tmp_path)
    for told in ("libGL.so.1", "half an installation", "ZeroDivisionError"):
        assert told in problems_of(report)
    assert report["pillow"] is None
    assert report["gpus"] == []


def test_a_bare_interpreter_gets_a_list_of_what_to_install() -> None:
    root = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({str(root)!r})\n{DIAGNOSE}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    report = json.loads(done.stdout)
    assert all(package["version"] is None for package in report["packages"])
    todos = {problem["todo"] for problem in report["problems"]}
    assert {"pip install torch", "pip install opencv-python-headless", "pip install pyarrow"} <= todos


def test_few_open_files_are_a_problem(tmp_path: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096))"
    assert "ulimit -n 1024" in problems_of(diagnose_beside(tmp_path, limit))
