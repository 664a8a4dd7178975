"""How many pictures a HEIF file has: by files of others, and by item lists put together as ISO/IEC 23008-12 says."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from shardforge.codecs.header import read_header
from shardforge.codecs.heif_items import count_pictures
from shardforge.codecs.limits import Limits
from tests.codecs.image_files import corpus_file


def box(kind: bytes, *content: bytes) -> bytes:
    body = b"".join(content)
    return struct.pack(">I4s", 8 + len(body), kind) + body


def item(number: int, kind: bytes, *, hidden: bool = False) -> bytes:
    return box(b"infe", bytes([2, 0, 0, hidden]), struct.pack(">HH4s", number, 0, kind), b"\0")


def reference(kind: bytes, start: int, *targets: int) -> bytes:
    return box(kind, struct.pack(f">HH{len(targets)}H", start, len(targets), *targets))


def heif(items: Sequence[bytes], references: Sequence[bytes] = ()) -> bytes:
    listed = box(b"iinf", bytes(4), struct.pack(">H", len(items)), *items)
    linked = [box(b"iref", bytes(4), *references)] if references else []
    return box(b"ftyp", b"heic\0\0\0\0mif1heic") + box(b"meta", bytes(4), listed, *linked)


@pytest.mark.parametrize(
    ("name", "pictures"),
    [
        # The name of libheif's example: three photographs of a pug, each with a thumbnail, the sixth item primary.
        ("zPug_3.heic", 3),
        # A grid of one tile, and another for its opacity.
        ("RGBA_8__29x100.heif", 1),
        ("RGB_10__29x100.heif", 1),
        ("L_exif_xmp_iptc.heic", 1),
        ("L_8__29x100.heif", 1),
    ],
)
def test_pictures_of_real_files_are_counted_without_thumbnails(corpus: Path, name: str, pictures: int) -> None:
    assert read_header(corpus_file(corpus, f"formats/{name}"), Limits()).frames == pictures


def test_pictures_are_master_images_that_are_shown() -> None:
    photo, other = item(1, b"hvc1"), item(2, b"av01")
    assert count_pictures(heif([photo])) == 1
    assert count_pictures(heif([photo, other])) == 2
    assert count_pictures(heif([photo, item(2, b"hvc1", hidden=True)])) == 1
    assert count_pictures(heif([photo, item(2, b"Exif"), item(3, b"mime")])) == 1
    assert count_pictures(heif([photo, other], [reference(b"thmb", 2, 1)])) == 1
    assert count_pictures(heif([photo, other], [reference(b"auxl", 2, 1)])) == 1
    assert count_pictures(heif([photo, other], [reference(b"cdsc", 2, 1)])) == 2


def test_tiles_are_no_pictures_even_if_they_are_not_hidden() -> None:
    tiles = [item(n, b"hvc1") for n in range(1, 5)]
    assert count_pictures(heif([*tiles, item(9, b"grid")], [reference(b"dimg", 9, 1, 2, 3, 4)])) == 1
    # A tone-mapped alternative is derived from the photograph, which remains a picture.
    mapped = [item(1, b"hvc1"), item(2, b"hvc1", hidden=True), item(3, b"tmap"), item(4, b"hvc1")]
    assert count_pictures(heif(mapped, [reference(b"dimg", 3, 1, 2)])) == 2


def test_wide_numbers_are_read() -> None:
    entries = [box(b"infe", b"\3\0\0\0", struct.pack(">IH4s", 70_000 + n, 0, b"hvc1"), b"\0") for n in range(3)]
    listed = box(b"iinf", b"\1\0\0\0", struct.pack(">I", 3), *entries)
    linked = box(b"iref", b"\1\0\0\0", box(b"thmb", struct.pack(">IHI", 70_001, 1, 70_000)))
    assert count_pictures(box(b"meta", bytes(4), listed, linked)) == 2


def test_what_makes_no_sense_ends_its_list_and_reads_nothing_beyond_it() -> None:
    assert count_pictures(b"") == count_pictures(heif([])) == count_pictures(box(b"meta", bytes(4))) == 1
    photos = [item(n, b"hvc1") for n in range(1, 5)]
    assert count_pictures(heif([*photos[:2], box(b"infe"), *photos[2:]])) == 2
    assert count_pictures(heif(photos) + bytes(99)) == 4
    # More targets than its box has room for, though the file goes on behind it.
    greedy = box(b"thmb", struct.pack(">HHH", 2, 65535, 1))
    assert count_pictures(heif(photos, [reference(b"thmb", 1, 2), greedy]) + bytes(200_000)) == 3
    assert count_pictures(box(b"meta", bytes(4), box(b"iinf"), box(b"iref"))) == 1


def test_no_cut_or_flipped_bit_breaks_the_count(corpus: Path) -> None:
    data = corpus_file(corpus, "formats/zPug_3.heic")
    flipping = random.Random(5)
    for length in range(0, 2500, 7):
        assert count_pictures(data[:length]) >= 1
        damaged = bytearray(data)
        damaged[flipping.randrange(2500)] ^= 1 << flipping.randrange(8)
        assert 1 <= count_pictures(bytes(damaged)) <= 9
