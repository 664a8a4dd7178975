"""A file's bytes, read when they are asked for."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardforge.codecs.file_bytes import FileBytes, view
from shardforge.errors import SampleError

CONTENT = b"".join(number.to_bytes(4) for number in range(3000))
PLACES = st.none() | st.integers(-13_000, 13_000) | st.integers(4000, 4800)


def opened(path: Path) -> FileBytes:
    return FileBytes(os.open(path, os.O_RDONLY))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bytes") / "file"
    path.write_bytes(CONTENT)
    return path


@given(
    slices=st.lists(st.tuples(PLACES, PLACES) | PLACES.map(lambda at: (at, (at or 0) + 9)), min_size=1, max_size=9)
)
@settings(deadline=None)
def test_slices_are_those_of_the_bytes(path: Path, slices: list[tuple[int | None, int | None]]) -> None:
    data = opened(path)
    assert len(data) == len(CONTENT)
    for start, end in slices:
        assert data[start:end] == CONTENT[start:end]


@pytest.mark.parametrize("extent", [(0, 12_000), (3, 3), (10, 50), (11_900, 12_000), (7, 3)])
def test_a_view_is_the_same_of_a_file_and_of_bytes(path: Path, extent: tuple[int, int]) -> None:
    assert view(opened(path), *extent) == view(CONTENT, *extent) == CONTENT[slice(*extent)]


def test_a_file_can_be_read_and_hashed_besides(path: Path) -> None:
    data = opened(path)
    with data.file() as file:
        file.seek(100)
        assert file.read(4) == CONTENT[100:104]
        assert data[5:7] == CONTENT[5:7]
    with data.file() as file:
        assert file.read() == CONTENT
    assert data.sha256() == hashlib.sha256(CONTENT).hexdigest()
    assert data.unchanged


def test_a_file_that_was_written_into_is_no_longer_the_same(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    data = opened(path)
    path.rename(tmp_path / "moved")
    path.write_bytes(b"another file of that name")
    assert data[:] == CONTENT
    with open(tmp_path / "moved", "r+b") as file:
        file.truncate(5000)
    assert not data.unchanged
    assert data[:5000] == CONTENT[:5000]
    with pytest.raises(SampleError, match="shorter than the 12000 bytes that it had") as caught:
        data[6000:6010]
    assert caught.value.reason == "changed"


def _descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def test_descriptors_go_with_their_objects(path: Path) -> None:
    before = _descriptors()
    many = [opened(path) for _ in range(20)]
    for data in many:
        data.sha256()
    assert len(_descriptors() - before) == 20
    del many, data
    assert _descriptors() == before
