"""The command line as users and scripts meet it: exit codes, one clear message, and a clean standard output."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shardforge.recipe import Recipe, RunOptions
from shardforge.sections import DicomOptions
from tests.pictures import class_folders, environment, run


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return class_folders(tmp_path_factory.mktemp("raw"), {"cat": 8, "dog": 8})


@pytest.fixture(scope="module")
def out(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "out"
    assert run("build", raw, folder, "--split", "train=0.75,val=0.25", "--split-by", "stratified").returncode == 0
    return folder


def one_line(stderr: str) -> str:
    """The error message, which must be one line and no traceback."""
    lines = [line for line in stderr.splitlines() if line.startswith("shardforge: ")]
    assert len(lines) == 1, stderr
    assert "Traceback" not in stderr
    return lines[0]


def test_json_prints_one_object_and_nothing_else(raw: Path, tmp_path: Path) -> None:
    result = run("build", raw, tmp_path / "out", "--json")
    report = json.loads(result.stdout)
    assert (report["status"], report["items"], report["samples"], report["exit_code"]) == ("complete", 16, 16, 0)
    assert report["splits"]["train"]["items"] == 16
    assert sum(report["balance"]["cat"].values()) == 8


def test_quiet_says_nothing(raw: Path, tmp_path: Path) -> None:
    result = run("build", raw, tmp_path / "out", "--quiet")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_again_is_up_to_date_and_needs_no_write_permission(raw: Path, out: Path) -> None:
    result = run("build", raw, out, "--split", "train=0.75,val=0.25", "--split-by", "stratified")
    assert (result.returncode, "up to date" in result.stdout) == (0, True)


def test_class_balance_of_every_split_is_printed(raw: Path, tmp_path: Path) -> None:
    result = run(
        "build", raw, tmp_path / "out", "--split", "train=0.75,val=0.25", "--split-by", "stratified", "--dry-run"
    )
    rows = {line.split()[0]: line.split()[1:] for line in result.stderr.splitlines() if line.strip()}
    assert rows["class"] == ["train", "val"]
    assert rows["cat"] == ["6", "2"]
    assert rows["dog"] == ["6", "2"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--size", "12x"], 2, "size"),
        (["--format", "gif"], 2, "format"),
        (["--split", "train=0.5"], 2, "split"),
        (["--recipe", "imagenet-265"], 2, "imagenet-256"),
        (["--group", "patient"], 2, "table"),
        (["--table", "absent.csv"], 2, "absent.csv"),
        (["--max-errors", "some"], 2, "max_errors"),
        (["--workers", "0"], 2, "workers"),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_2(
    raw: Path, tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    result = run("build", raw, tmp_path / "out", *arguments)
    assert result.returncode == code
    assert words in one_line(result.stderr)
    assert result.stdout == ""
    assert not (tmp_path / "out").exists()


def test_errors_are_json_too_when_asked(tmp_path: Path) -> None:
    result = run("build", tmp_path / "absent", tmp_path / "out", "--json")
    report = json.loads(result.stdout)
    assert (result.returncode, report["status"], report["exit_code"]) == (2, "error", 2)
    assert "absent" in report["error"]


AS_NOBODY = """
import os, sys
import shardforge.compile.build
from shardforge.cli import main
if os.geteuid() == 0:
    os.setgroups([])
    os.setegid(65534)
    os.seteuid(65534)
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    "arguments", [["build", "a", "b", "--workers", "x"], ["build", "a", "b", "--nope"], ["build"]]
)
def test_errors_in_the_arguments_are_json_too(arguments: list[str]) -> None:
    result = run(*arguments, "--json")
    assert (result.returncode, json.loads(result.stdout)["exit_code"]) == (2, 2)
    assert "Traceback" not in result.stderr
    assert run(*arguments).stdout == ""


def test_an_output_that_cannot_be_written_is_exit_3(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 2})
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    (tmp_path / "locked").mkdir(mode=0o555)
    result = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, "build", raw, tmp_path / "locked" / "out"],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert result.returncode == 3
    assert "Permission denied" in one_line(result.stderr)


def test_inspect_shows_verifies_and_saves(out: Path, tmp_path: Path) -> None:
    result = run("inspect", out)
    assert result.returncode == 0
    assert {"cat", "dog", "train", "val"} <= set(result.stdout.split())
    summary = json.loads(run("inspect", out, "--json").stdout)
    assert summary["splits"]["train"]["samples"] == 12
    result = run("inspect", out, "--verify", "--json")
    assert (result.returncode, json.loads(result.stdout)["damage"]) == (0, [])
    result = run("inspect", out, "--sample", 3, "--save", tmp_path / "look")
    assert result.returncode == 0
    assert sorted(path.suffix for path in (tmp_path / "look").iterdir()) == [".cls", ".jpg"]


def test_inspect_names_damage_and_exits_1(out: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(out, tmp_path / "broken"))
    tar = broken / "val-000000.tar"
    data = bytearray(tar.read_bytes())
    data[len(data) // 2] ^= 4
    tar.write_bytes(data)
    result = run("inspect", broken, "--verify")
    assert result.returncode == 1
    assert "val-000000" in result.stdout


@pytest.mark.parametrize("arguments", [["--sample", "no-such-key"], ["--save", "x"], ["--verify", "--sample", "1"]])
def test_inspect_usage_errors_are_exit_2(out: Path, arguments: list[str]) -> None:
    result = run("inspect", out, *arguments)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_inspect_of_something_else_is_exit_3(tmp_path: Path) -> None:
    result = run("inspect", tmp_path)
    assert result.returncode == 3
    assert "not a shardforge dataset" in one_line(result.stderr)


def test_names_in_messages_cannot_steer_the_terminal(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 2})
    (raw / "a" / "evil\x1b[2Jname.png").write_bytes(b"no picture")
    result = run("build", raw, tmp_path / "out")
    assert result.returncode == 1
    assert "\x1b" not in result.stderr
    assert "evil" in result.stderr


def test_every_option_of_a_recipe_is_a_flag_or_known_to_be_none() -> None:
    from shardforge.cli.build import build

    flags = {parameter.name for parameter in build.params}
    in_files_only = {"background", "classes", "fields", "filters", "limits", "run", "cpu_seconds", "memory", "dicom"}
    options = {*Recipe.model_fields, *RunOptions.model_fields, *DicomOptions.model_fields} - in_files_only
    assert options - {"damage"} <= flags
    assert {"strict", "keep_suspect"} <= flags


@pytest.mark.parametrize("command", ["build", "inspect", "bench", "doctor"])
def test_help_has_an_example(command: str) -> None:
    result = run(command, "--help")
    assert result.returncode == 0
    assert "Example:" in result.stdout
    assert f"shardforge {command}" in result.stdout
