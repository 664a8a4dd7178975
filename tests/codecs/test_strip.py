from __future__ import annotations

import io
import json
import zlib
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
import simplejpeg
from PIL import Image

from shardforge.codecs.decode import Picture
from shardforge.codecs.strip import holds_only_pixels, strip_metadata
from shardforge.shards.catalogue import Flag
from tests.codecs.image_files import (
    corpus_file,
    exif,
    jpeg_segment,
    outcome,
    png,
    png_chunk,
    png_of,
    read,
    rgb_scene,
    webp,
    with_segments,
)

SECRET = b"ZZSECRET"
SCENE = rgb_scene(32, 24)


# A picture in any other space is converted and encoded again, so that only these are met with.
SRGB = bytes(imagecodecs.cms_profile("srgb"))
PROFILE = SRGB + SECRET
UNREADABLE = SECRET * 20


def _jpeg() -> bytes:
    thumbnail = b"JFIF\0\1\1\0\0\1\0\1\x02\x01" + b"ZZSECR"
    plain = simplejpeg.encode_jpeg(SCENE, 95)
    assert plain[2:4] == b"\xff\xe0"
    segments = [
        jpeg_segment(0xE0, thumbnail),
        jpeg_segment(0xE0, b"JFXX\0\x13" + SECRET),
        jpeg_segment(0xE1, b"Exif\0\0" + exif(1) + SECRET),
        jpeg_segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + SECRET),
        jpeg_segment(0xE2, b"MPF\0" + SECRET),
        jpeg_segment(0xE2, b"ICC_PROFILE\0\x01\x01" + PROFILE),
        jpeg_segment(0xED, b"Photoshop 3.0\0" + SECRET),
        jpeg_segment(0xEE, b"Adobe\0d\0\0\0\0\x01" + SECRET),
        jpeg_segment(0xEF, SECRET),
        jpeg_segment(0xFE, SECRET),
    ]
    return plain[:2] + b"".join(segments) + plain[20:] + SECRET


def _png() -> bytes:
    before = [
        (b"iCCP", SECRET + b"\0\0" + zlib.compress(PROFILE)),
        (b"gAMA", b"\0\0\xb1\x8f"),
        (b"tEXt", b"Comment\0" + SECRET),
        (b"zTXt", b"Comment\0\0" + zlib.compress(SECRET)),
        (b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + SECRET),
        (b"eXIf", exif(1) + SECRET),
        (b"tIME", b"\x07\xe8\1\1\1\1\1"),
        (b"prVt", SECRET),
    ]
    rows = [row.tobytes() for row in SCENE]
    return png(rows, 32, 8, 2, before, [(b"tEXt", b"Late\0" + SECRET)]) + SECRET


def _webp() -> bytes:
    inner = bytes(imagecodecs.webp_encode(SCENE, lossless=True))[20:]
    canvas = b"\x2c\0\0\0" + (31).to_bytes(3, "little") + (23).to_bytes(3, "little")
    return webp(
        (b"VP8X", canvas),
        (b"ICCP", PROFILE),
        (b"VP8L", inner),
        (b"EXIF", exif(1) + SECRET),
        (b"XMP ", SECRET),
        (b"ZZZZ", SECRET),
    )


FILES = {"jpeg": _jpeg(), "png": _png(), "webp": _webp()}


@pytest.mark.parametrize("format", FILES)
def test_planted_strings_are_gone_and_the_pixels_the_same(format: str) -> None:
    data = FILES[format]
    assert SECRET[:6] in data
    stripped = strip_metadata(data, format)
    assert SECRET[:6] not in stripped
    before, after = read(data), read(stripped)
    assert before.untouched
    assert np.array_equal(after.pixels, before.pixels)
    assert after.flags == before.flags
    assert strip_metadata(stripped, format) == stripped


def _profiled(format: str, profile: bytes) -> bytes:
    plain = simplejpeg.encode_jpeg(SCENE, 95)
    segment = jpeg_segment(0xE2, b"ICC_PROFILE\0\x01\x01" + profile)
    if format == "jpeg":
        return with_segments(plain, segment)
    if format == "png":
        before = [(b"iCCP", SECRET + b"\0\0" + zlib.compress(profile)), (b"gAMA", b"\0\1\x86\xa0")]
        return png_of(SCENE, before)
    canvas = b"\x20\0\0\0" + (31).to_bytes(3, "little") + (23).to_bytes(3, "little")
    return webp((b"VP8X", canvas), (b"ICCP", profile), _picture_chunk(True, size=(32, 24)))


@pytest.mark.parametrize("format", FILES)
@pytest.mark.parametrize("profile", [SRGB, PROFILE, UNREADABLE, bytes(imagecodecs.cms_profile("gray"))])
def test_no_profile_stays_where_pixels_need_none(format: str, profile: bytes) -> None:
    data = _profiled(format, profile)
    assert read(data).untouched
    stripped = strip_metadata(data, format)
    assert SECRET not in stripped
    if format == "webp":
        assert b"ICCP" not in stripped
        assert not stripped[20] & 0x20
    else:
        # Nor the gamma beside it, which counts where there is no profile.
        assert not {"icc_profile", "gamma"} & set(Image.open(io.BytesIO(stripped)).info)
    assert np.array_equal(read(stripped).pixels, read(data).pixels)


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("grey", [False, True])
def test_tables_that_no_scan_uses_are_dropped(progressive: bool, grey: bool) -> None:
    buffer = io.BytesIO()
    Image.fromarray(SCENE).convert("L" if grey else "RGB").save(buffer, "JPEG", progressive=progressive)
    plain = buffer.getvalue()
    quantiser = b"\x03" + SECRET * 8
    huffman = b"\x13" + bytes([0] * 7 + [8] + [0] * 8) + SECRET
    extra = [jpeg_segment(0xDB, quantiser), jpeg_segment(0xC4, huffman)]
    # One that another replaces before any scan, one in a segment with a table that is used, and one behind all scans.
    at = plain.index(b"\xff\xdb")
    length = int.from_bytes(plain[at + 2 : at + 4], "big")
    used = plain[at + 4 : at + 2 + length]
    shared = jpeg_segment(0xDB, b"\0" + SECRET * 8 + used + quantiser)
    data = plain[:at] + b"".join(extra) + shared + plain[at + 2 + length : -2] + b"".join(extra) + plain[-2:]
    assert read(data).untouched or grey
    stripped = strip_metadata(data, "jpeg")
    assert SECRET not in stripped
    assert stripped == strip_metadata(plain, "jpeg")
    assert np.array_equal(read(stripped).pixels, read(plain).pixels)


def test_other_readers_accept_what_is_left() -> None:
    for format in ("jpeg", "png"):
        stripped = strip_metadata(FILES[format], format)
        picture = Image.open(io.BytesIO(stripped))
        picture.load()
        assert not picture.getexif()
        assert set(picture.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"} | {
            "adobe",
            "adobe_transform",
        }
    assert imagecodecs.webp_decode(strip_metadata(FILES["webp"], "webp")).shape == (24, 32, 3)


def test_jfif_segment_declares_no_thumbnail() -> None:
    stripped = strip_metadata(FILES["jpeg"], "jpeg")
    assert stripped[2:20] == b"\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0"


def test_webp_header_no_longer_promises_metadata() -> None:
    stripped = strip_metadata(FILES["webp"], "webp")
    assert stripped[20] == 0
    assert int.from_bytes(stripped[4:8], "little") + 8 == len(stripped)


def test_animation_survives_without_metadata_between_its_frames() -> None:
    inner = bytes(imagecodecs.webp_encode(SCENE, lossless=True))[12:]
    size = b"".join(value.to_bytes(3, "little") for value in (0, 0, 31, 23, 100))
    hidden = b"ZZZZ" + len(SECRET).to_bytes(4, "little") + SECRET
    canvas = b"\x02\0\0\0" + (31).to_bytes(3, "little") + (23).to_bytes(3, "little")
    frames = [(b"ANMF", size + b"\0" + inner + hidden)] * 2
    stripped = strip_metadata(webp((b"VP8X", canvas), (b"ANIM", bytes(6)), *frames), "webp")
    assert SECRET not in stripped
    assert read(stripped).frames == 2
    assert np.array_equal(read(stripped).pixels, SCENE)


def test_of_an_animated_png_only_the_default_image_stays() -> None:
    before = [(b"acTL", b"\0\0\0\1\0\0\0\0")]
    data = png(
        [row.tobytes() for row in SCENE], 32, 8, 2, before, [(b"fcTL", bytes(26)), (b"fdAT", bytes(4) + SECRET)]
    )
    stripped = strip_metadata(data, "png")
    assert SECRET not in stripped
    assert b"acTL" not in stripped
    assert np.array_equal(read(stripped).pixels, SCENE)


def test_transparency_stays() -> None:
    data = png([b"\0\1"], 2, 8, 3, [(b"PLTE", bytes(range(6))), (b"tRNS", b"\0"), (b"tEXt", b"a\0" + SECRET)])
    stripped = strip_metadata(data, "png")
    assert SECRET not in stripped
    assert np.array_equal(read(stripped).pixels, read(data).pixels)


def test_damage_of_a_jpeg_is_healed_where_it_is_harmless() -> None:
    plain = simplejpeg.encode_jpeg(SCENE, 95)
    for damaged in (plain[:-2], with_segments(plain, b"junk"), plain + SECRET):
        stripped = strip_metadata(damaged, "jpeg")
        assert SECRET not in stripped
        assert read(stripped).flags == ()
        assert np.array_equal(read(stripped).pixels, read(plain).pixels)


def test_unfinished_last_chunk_is_dropped() -> None:
    data = png_of(SCENE)[:-12] + png_chunk(b"tEXt", b"a\0" + SECRET)[:-6]
    stripped = strip_metadata(data, "png")
    assert SECRET[:6] not in stripped
    assert read(stripped).flags == ()


def test_other_formats_are_refused() -> None:
    with pytest.raises(ValueError, match="tiff"):
        strip_metadata(b"II*\0", "tiff")


def test_corpus_pictures_stay_the_same_and_lose_the_forbidden_strings(corpus: Path) -> None:
    forbidden = {}
    for line in (corpus / "expected.jsonl").read_text(encoding="utf-8").splitlines():
        fact = json.loads(line)
        if fact["kind"] == "image":
            forbidden[fact["path"]] = fact["expect"].get("forbidden_strings", [])
    checked = 0
    for path, words in forbidden.items():
        data = (corpus / path).read_bytes()
        before = outcome(data) if len(data) < 200_000 else None
        if not hasattr(before, "pixels") or before.format not in FILES or before.orientation != 1:
            continue
        if Flag.ICC_CONVERTED in before.flags:
            continue
        stripped = strip_metadata(data, before.format)
        assert np.array_equal(read(stripped).pixels, before.pixels), path
        for word in (*words, "http://ns.adobe.com", "Exif\0\0", "Photoshop 3.0"):
            assert word.encode() not in stripped, (path, word)
        checked += 1
    assert checked > 100


def test_corpus_position_and_names_are_gone(corpus: Path) -> None:
    data = corpus_file(corpus, "exif/made_gps.jpg")
    assert b"ZZTEST" in data
    assert b"ZZ" not in strip_metadata(data, "jpeg")


@pytest.mark.parametrize("size", [(1, 1), (31, 17), (3000, 2000)])
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_ordinary_pngs_of_every_kind_and_size_hold_only_pixels(size: tuple[int, int], mode: str) -> None:
    buffer = io.BytesIO()
    Image.new(mode, size).save(buffer, "PNG")
    assert holds_only_pixels(buffer.getvalue(), "png")


def test_interlaced_corpus_files_hold_only_pixels(corpus: Path) -> None:
    files = [path for path in sorted((corpus / "images").rglob("*.png")) if path.read_bytes()[28:29] == b"\1"]
    assert all(holds_only_pixels(path.read_bytes(), "png") for path in files)


def _picture_chunk(lossless: bool, quality: int = 80, size: tuple[int, int] = (90, 61)) -> tuple[bytes, bytes]:
    data = bytes(imagecodecs.webp_encode(rgb_scene(*size), level=quality, lossless=lossless))
    return data[12:16], data[20 : 20 + int.from_bytes(data[16:20], "little")]


@pytest.mark.parametrize("lossless", [True, False])
def test_bytes_behind_a_webp_picture_inside_its_chunk_are_noticed(lossless: bool) -> None:
    kind, body = _picture_chunk(lossless)
    canvas = b"\x20\0\0\0" + (89).to_bytes(3, "little") + (60).to_bytes(3, "little")
    assert holds_only_pixels(webp((kind, body)), "webp")
    assert holds_only_pixels(webp((b"VP8X", canvas), (b"ICCP", PROFILE), (kind, body)), "webp")
    hidden = body + SECRET
    # A decoder takes it for the same picture, and stripping keeps the chunk whole.
    assert np.array_equal(imagecodecs.webp_decode(webp((kind, hidden))), imagecodecs.webp_decode(webp((kind, body))))
    assert SECRET in strip_metadata(webp((kind, hidden)), "webp")
    assert not holds_only_pixels(webp((kind, hidden)), "webp")
    assert not holds_only_pixels(webp((kind, body + bytes(5000))), "webp")
    for extra in [(kind, SECRET), (b"ALPH", SECRET), (b"ANMF", SECRET)]:
        assert not holds_only_pixels(webp((kind, body), extra), "webp")
    assert not holds_only_pixels(webp((b"VP8X", canvas), (b"ICCP", PROFILE), (b"ICCP", SECRET), (kind, body)), "webp")
    assert not holds_only_pixels(webp((b"VP8X", canvas + SECRET), (kind, body)), "webp")


@pytest.mark.parametrize("lossless", [True, False])
@pytest.mark.parametrize("quality", [1, 50, 100])
@pytest.mark.parametrize("size", [(1, 1), (16, 16), (17, 300), (201, 140)])
def test_no_webp_of_an_encoder_is_suspected(lossless: bool, quality: int, size: tuple[int, int]) -> None:
    assert holds_only_pixels(webp(_picture_chunk(lossless, quality, size)), "webp")
    assert holds_only_pixels(bytes(imagecodecs.webp_encode(np.full((*size, 3), 77, np.uint8), level=quality)), "webp")


def test_no_still_webp_of_the_corpus_is_suspected(corpus: Path) -> None:
    checked = 0
    for path in sorted((corpus / "images").rglob("*.webp")):
        found = outcome(path.read_bytes())
        if isinstance(found, Picture) and found.untouched:
            assert holds_only_pixels(path.read_bytes(), "webp"), path
            checked += 1
    assert checked
