"""What a wheel of this checkout carries. Built offline from the checkout by the declared build backend."""

from __future__ import annotations

import email
import email.message
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# SHA-256 of the text the Apache Software Foundation publishes as LICENSE-2.0.txt.
APACHE_2_0 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", folder, ROOT], check=True, cwd=folder, timeout=120)
    (path,) = folder.glob("shardforge-*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> email.message.Message:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return email.message_from_bytes(wheel.read(name))


def test_every_module_of_the_package_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "shardforge").rglob("*.py")}
    assert sources
    assert sources <= set(wheel.namelist())


def test_type_checkers_find_the_packages_annotations(wheel: zipfile.ZipFile) -> None:
    assert "shardforge/py.typed" in wheel.namelist()


def test_every_recipe_travels_inside_the_package_unchanged(wheel: zipfile.ZipFile) -> None:
    recipes = [path for path in (ROOT / "recipes").iterdir() if path.suffix in (".yaml", ".py")]
    assert recipes
    for recipe in recipes:
        assert wheel.read(f"shardforge/_recipes/{recipe.name}") == recipe.read_bytes()


def test_nothing_but_the_package_is_installed(wheel: zipfile.ZipFile) -> None:
    assert {name.split("/")[0].split("-")[0] for name in wheel.namelist()} == {"shardforge"}
    assert not [name for name in wheel.namelist() if "__pycache__" in name or name.endswith(".pyc")]


def test_the_licence_is_apache_2_unmodified(wheel: zipfile.ZipFile, metadata: email.message.Message) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/licenses/LICENSE")]
    assert hashlib.sha256(wheel.read(name)).hexdigest() == APACHE_2_0


def test_the_declared_extras_exist(metadata: email.message.Message) -> None:
    extras = metadata.get_all("Provides-Extra")
    assert extras is not None
    assert set(extras) == {"ray", "s3", "gcs", "azure", "http", "demo", "dev"}


def test_one_pillow_per_platform_is_asked_for(metadata: email.message.Message) -> None:
    requirements = [text for text in metadata.get_all("Requires-Dist") or [] if text.startswith("pillow")]
    markers = {text.partition(">=")[0]: text.partition(";")[2] for text in requirements}
    assert set(markers) == {"pillow-simd", "pillow"}
    assert "== 'x86_64'" in markers["pillow-simd"]
    assert "!= 'x86_64'" in markers["pillow"]


def test_the_command_is_installed(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt")]
    assert b"shardforge = shardforge.cli:main" in wheel.read(name).splitlines()
