"""Arrays as members: what NumPy saves is what NumPy loads; anything else is refused."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shardforge.shards.npy import BadArray, read_npy

_KINDS = ["|b1", "|u1", "|i1", "<u2", ">u2", "<i2", ">i4", "<f2", "<f4", ">f8", "<u8"]


def _file(array: Any, version: tuple[int, int] = (1, 0)) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version)
    return file.getvalue()


def _with_header(header: str, content: bytes = b"", length: int = 118) -> bytes:
    text = header.ljust(length - 1).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


@given(
    data=st.data(),
    kind=st.sampled_from(_KINDS),
    shape=hnp.array_shapes(min_dims=0, max_dims=24, min_side=0, max_side=2),
    version=st.sampled_from([(1, 0), (2, 0)]),
    fortran=st.booleans(),
)
def test_what_is_saved_is_read(
    data: Any, kind: str, shape: tuple[int, ...], version: tuple[int, int], fortran: bool
) -> None:
    count = int(np.prod(shape)) * np.dtype(kind).itemsize
    content = (
        data.draw(st.binary(min_size=count, max_size=count)) if count < 64 else bytes(i % 2 for i in range(count))
    )
    if kind == "|b1":
        content = bytes(value & 1 for value in content)
    array = np.frombuffer(content, kind).reshape(shape, order="F" if fortran else "C")
    payload = memoryview(_file(array, version))
    for copy in (True, False):
        found = read_npy(payload, copy=copy)
        expected = np.load(io.BytesIO(payload), allow_pickle=False)
        assert found.shape == shape
        assert found.dtype == expected.dtype.newbyteorder("=")
        assert found.dtype.isnative
        assert found.flags.c_contiguous
        assert found.tobytes() == expected.astype(found.dtype).tobytes()
        assert found.flags.writeable is copy or not np.shares_memory(found, np.frombuffer(payload, np.uint8))


def test_a_view_has_no_memory_of_its_own() -> None:
    payload = memoryview(_file(np.arange(6, dtype=np.int16).reshape(2, 3)))
    assert np.shares_memory(read_npy(payload, copy=False), np.frombuffer(payload, np.uint8))
    assert not np.shares_memory(read_npy(payload), np.frombuffer(payload, np.uint8))


def test_a_header_that_is_longer_than_usual() -> None:
    header = "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 2), }"
    content = np.arange(4, dtype=np.uint16).tobytes()
    assert read_npy(memoryview(_with_header(header, content, 700))).tolist() == [[0, 1], [2, 3]]
    # The same first 128 bytes belong to files of different layouts.
    other = header.replace("(2, 2)", " " * 80 + "(4,)")
    one = header.replace("(2, 2)", " " * 80 + "(2, 2)")
    assert read_npy(memoryview(_with_header(other, content, 300))).shape == (4,)
    assert read_npy(memoryview(_with_header(one, content, 300))).shape == (2, 2)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00\xff\xff",
        b"no array at all" * 20,
        _file(np.zeros(3))[:-1],
        _file(np.zeros(3)) + b"\0",
        _file(np.zeros(3), (3, 0)),
        _with_header("{'descr': '|O', 'fortran_order': False, 'shape': (), }", b"12345678"),
        _with_header("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,), }", b"1234"),
        _with_header("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,), }", b"12345678"),
        _with_header("{'descr': '|u1', 'fortran_order': False, 'shape': (-1, -3), }", b"123"),
        _with_header("{'descr': '|u1', 'fortran_order': False, 'shape': (0, 1180591620717411303424), }"),
        _with_header("{'descr': '|u1', 'fortran_order': False, 'shape': (0, 4611686018427387904, 5), }"),
        _with_header("{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999,), }", b"123"),
        _with_header("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }"[:-3], b"123"),
        _with_header("__import__('os')", b""),
    ],
)  # fmt: skip
def test_anything_else_is_refused(payload: bytes) -> None:
    for copy in (True, False):
        with pytest.raises(BadArray):
            read_npy(memoryview(payload), copy=copy)
