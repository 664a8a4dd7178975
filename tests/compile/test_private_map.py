"""The private map: a correct csv for its owner only, complete after any number of builds."""

from __future__ import annotations

import csv
import stat
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow.csv
import pytest

from shardforge.compile.identity_key import load_or_make
from shardforge.compile.private_map import Original, write_private_map
from shardforge.errors import StorageError, UsageError

ROWS = [
    Original("patient", "ff" * 16, 'Doe, "Jo"\nline two'),
    Original("source", "00" * 16, "=1+1;\ttab, and Zoë\r"),
    Original("patient", "aa" * 16, "4711"),
]


def _read(path: Path) -> list[list[str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file, strict=True))


def _add(job: tuple[Path, int]) -> None:
    path, number = job
    write_private_map(path, [Original("sop", f"{number:032x}", f"1.2.{number}")])


def test_every_row_comes_back_sorted_and_once(tmp_path: Path) -> None:
    path = tmp_path / "map.csv"
    write_private_map(path, [*ROWS, *ROWS])
    assert _read(path) == [["kind", "hash", "original"], *sorted(list(row) for row in ROWS)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    table = pyarrow.csv.read_csv(path, parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True))
    assert [tuple(row.values()) for row in table.to_pylist()] == sorted(ROWS)


def test_later_builds_add_and_repeat_nothing(tmp_path: Path) -> None:
    path = tmp_path / "map.csv"
    write_private_map(path, ROWS[:2])
    path.chmod(0o600)
    write_private_map(path, ROWS[1:])
    assert _read(path)[1:] == sorted(list(row) for row in ROWS)
    before = path.stat()
    write_private_map(path, ROWS)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert [entry.name for entry in tmp_path.iterdir()] == ["map.csv"]


def test_builds_that_write_at_once_lose_no_row(tmp_path: Path) -> None:
    path = tmp_path / "map.csv"
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        list(pool.map(_add, [(path, number) for number in range(40)]))
    assert len(_read(path)) == 41


@pytest.mark.parametrize("text", ["", "a,b\n", 'kind,hash,original\n"open', "kind,hash,original\nx,y\n", "\udcff"])
def test_another_file_is_refused_and_left_alone(text: str, tmp_path: Path) -> None:
    path = tmp_path / "map.csv"
    data = text.encode("utf-8", "surrogateescape")
    path.write_bytes(data)
    with pytest.raises(UsageError, match="is no private map"):
        write_private_map(path, ROWS)
    assert path.read_bytes() == data


def test_a_place_inside_the_output_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="inside"):
        write_private_map(tmp_path / "out" / "map.csv", ROWS, [tmp_path / "out"])


def test_a_missing_folder_is_told_clearly(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="absent"):
        write_private_map(tmp_path / "absent" / "map.csv", ROWS)


def test_the_map_of_a_key_lies_beside_it_and_leaves_it_alone(tmp_path: Path) -> None:
    found = load_or_make(tmp_path / "identity.key")
    hashed = found.key.hash_identifier("patient", "4711")
    write_private_map(found.map_path, [Original("patient", hashed, "4711")])
    assert found.map_path == tmp_path / "identity.key.map.csv"
    assert load_or_make(found.path).key == found.key
    assert _read(found.map_path)[1] == ["patient", hashed, "4711"]
