"""Class labels: ASCII digits within int64, and nothing else that ``int`` would take."""

from __future__ import annotations

import pytest

from shardforge.indexing.labels import value_of
from shardforge.shards.class_text import class_id
from shardforge.shards.manifest import FieldInfo
from shardforge.stream.decode import Undecodable, decode


@pytest.mark.parametrize(
    ("text", "number"),
    [(b"0", 0), (b"007", 7), (b" 3\r\n", 3), (b"\xef\xbb\xbf5", 5), (b"9223372036854775807", 9223372036854775807)],
)
def test_digits_are_an_id_for_every_reader(text: bytes, number: int) -> None:
    assert class_id(text) == number
    assert decode(memoryview(text), "cls", FieldInfo("class"), 3) == number


@pytest.mark.parametrize(
    "text", [b"", b" ", b"-7", b"+7", b"1_0", b"1 0", b"1.0", b"cat", "٣".encode(), b"\xff", b"9223372036854775808"]
)
def test_anything_else_is_none_for_every_reader(text: bytes) -> None:
    assert class_id(text) is None
    with pytest.raises(Undecodable, match="no valid class"):
        decode(memoryview(text), "cls", FieldInfo("class"), 3)


@pytest.mark.parametrize(("found", "value"), [('"1_0"', "1_0"), ('"-7"', "-7"), ('"12"', 12), ("-7", -7)])
def test_indexing_takes_the_same_texts_for_ids(found: str, value: object) -> None:
    assert value_of(found) == value


def test_a_number_of_json_that_fits_no_int64_is_no_number() -> None:
    assert value_of("1" * 400) == "1" * 400
