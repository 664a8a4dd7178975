"""``shardforge index`` as users and scripts meet it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.foreign_tars import sample, samples, write_tar
from tests.pictures import run


@pytest.fixture
def tars(tmp_path: Path) -> Path:
    write_tar(tmp_path / "a-0.tar", samples(range(3)))
    write_tar(tmp_path / "b-0.tar", samples(range(3, 5)))
    return tmp_path


def test_it_says_what_it_found_and_again_that_nothing_is_to_be_done(tars: Path) -> None:
    first = run("index", tars, "--split", "train=a*", "--split", "val=b*")
    assert first.returncode == 0
    assert "train: 3 samples in 1 tars" in first.stdout
    assert "labels: class, 4 classes" in first.stdout
    again = run("index", tars, "--split", "train=a*", "--split", "val=b*")
    assert (again.returncode, "up to date" in again.stdout) == (0, True)
    assert run("inspect", tars, "--verify", "--quiet").returncode == 0


def test_damage_and_failures_give_exit_code_1_and_json(tars: Path) -> None:
    os.truncate(tars / "b-0.tar", 3000)
    write_tar(tars / "c-0.tar", [*sample("9", 9), ("8.cls", b"1")])
    done = run("index", tars, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["exit_code"], report["status"]) == (1, 1, "indexed")
    assert list(report["damage"]) == ["b-0.tar"]
    assert report["reasons"]["missing_field"] == 1


def test_class_names_come_from_a_file(tars: Path) -> None:
    names = tars / "names.txt"
    names.write_text("ant\nbee\ncat\ndog\n")
    assert run("index", tars, "--classes", names).returncode == 0
    assert json.loads(run("inspect", tars, "--json").stdout)["classes"]["dog"] == {"train": 1}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--split", "train"], "NAME=GLOB is needed"),
        (["--split", "a=*", "--split", "a=b*"], "names 'a' twice"),
        (["--classes", "absent.txt"], "cannot be read"),
        (["--label", "xml:y"], "json:NAME"),
    ],
)
def test_mistakes_are_one_line(tars: Path, arguments: list[str], told: str) -> None:
    done = run("index", tars, *arguments)
    assert done.returncode in (2, 3)
    assert told in done.stderr
    assert "Traceback" not in done.stderr
