"""Compressed frames: sizes are compared first, signs and colours come out right, damage is told."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import imagecodecs
import numpy as np
import pytest
import simplejpeg
from numpy.typing import NDArray

from shardforge.codecs.dicom.codestream import read_codestream
from shardforge.codecs.dicom.pixels import StoredFrame, decode_frame
from shardforge.codecs.dicom.rgb import frame_to_rgb
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason
from tests.codecs.dicom.dicom_files import encapsulated, items, module, opened

BASE = "1.2.840.10008.1.2.4."
RLE = "1.2.840.10008.1.2.5"
GREY8 = (8, 8, 7)
CT = (np.add.outer(np.arange(32) * 40, np.arange(48)) - 1000).astype(np.int16)
SCENE = np.dstack(
    [np.full((16, 16), 200, np.uint8), np.full((16, 16), 40, np.uint8), np.full((16, 16), 90, np.uint8)]
)


def decoded(stream: bytes, syntax: str, **image: Any) -> StoredFrame:
    return decode_frame(opened(encapsulated(items(stream), module(**image), syntax)), 0)


def reason(stream: bytes, syntax: str, **image: Any) -> Reason:
    with pytest.raises(SampleError) as caught:
        decoded(stream, syntax, **image)
    return caught.value.reason


def ct(stream: bytes, syntax: str) -> StoredFrame:
    return decoded(stream, syntax, rows=32, columns=48, signed=True)


def streams() -> dict[str, bytes]:
    unsigned = CT.view(np.uint16)
    return {
        BASE + "70": bytes(imagecodecs.ljpeg_encode(unsigned, bitspersample=16)),
        BASE + "80": bytes(imagecodecs.jpegls_encode(unsigned)),
        BASE + "90": bytes(imagecodecs.jpeg2k_encode(CT, codecformat="j2k", reversible=True, level=0)),
        BASE + "110": bytes(imagecodecs.jpegxl_encode(unsigned, lossless=True)),
        RLE: rle(unsigned),
        "1.2.840.10008.1.2.8.1": deflated(CT.tobytes()),
    }


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def rle(planes: NDArray[Any]) -> bytes:
    """Literal runs only; [H, W] or [plane, H, W], the high byte first (PS3.5 G)."""
    several = planes[None] if planes.ndim == 2 else planes
    segments = []
    for plane in several:
        cells = plane.astype(plane.dtype.newbyteorder(">")).tobytes()
        for byte in range(plane.dtype.itemsize):
            content = cells[byte :: plane.dtype.itemsize]
            runs = (content[at : at + 128] for at in range(0, len(content), 128))
            segment = b"".join(bytes([len(run) - 1]) + run for run in runs)
            segments.append(segment + b"\x80" * (len(segment) % 2))
    offsets = [64 + sum(map(len, segments[:n])) for n in range(len(segments))]
    header = struct.pack("<16I", len(segments), *offsets, *[0] * (15 - len(segments)))
    return header + b"".join(segments)


@pytest.mark.parametrize("syntax", streams())
def test_signed_values_survive_codecs_without_a_sign(syntax: str) -> None:
    frame = ct(streams()[syntax], syntax)
    assert frame.values.dtype == np.int16
    assert np.array_equal(frame.values, CT)
    assert frame.flags == ()
    assert frame.decoder.split()[0] in ("imagecodecs", "zlib")
    assert frame.decoder.split()[1][0].isdigit()


@pytest.mark.parametrize("syntax", [s for s in streams() if s != "1.2.840.10008.1.2.8.1"])
def test_a_frame_of_another_size_is_refused(syntax: str) -> None:
    assert reason(streams()[syntax], syntax, rows=31, columns=48, signed=True) is Reason.CORRUPT


def test_a_huge_codestream_in_a_small_image_is_refused_from_its_header() -> None:
    """60000 x 60000 would take seven gigabytes."""
    jpeg = bytearray(simplejpeg.encode_jpeg(SCENE[..., :1].copy(), 90, colorspace="GRAY"))
    at = jpeg.index(b"\xff\xc0")
    jpeg[at + 5 : at + 9] = struct.pack(">HH", 60000, 60000)
    assert reason(bytes(jpeg), BASE + "50", rows=16, columns=16, bits=GREY8) is Reason.CORRUPT
    j2k = bytearray(imagecodecs.jpeg2k_encode(CT, codecformat="j2k"))
    j2k[8:16] = struct.pack(">II", 60000, 60000)
    assert reason(bytes(j2k), BASE + "90", rows=32, columns=48, signed=True) is Reason.CORRUPT
    ls = bytearray(imagecodecs.jpegls_encode(CT.view(np.uint16)))
    at = ls.index(b"\xff\xf7")
    ls[at + 5 : at + 9] = struct.pack(">HH", 60000, 60000)
    assert reason(bytes(ls), BASE + "80", rows=32, columns=48, signed=True) is Reason.CORRUPT


def test_a_deflated_frame_is_inflated_no_further_than_its_size() -> None:
    frame = decoded(deflated(bytes(50_000_000)), "1.2.840.10008.1.2.8.1", rows=4, columns=4)
    assert frame.values.tolist() == np.zeros((4, 4)).tolist()
    assert reason(deflated(bytes(31)), "1.2.840.10008.1.2.8.1", rows=4, columns=4) is Reason.TRUNCATED


@pytest.mark.parametrize("syntax", [s for s in streams() if s != BASE + "110"])
def test_half_a_frame_is_refused(syntax: str) -> None:
    stream = streams()[syntax]
    with pytest.raises(SampleError) as caught:
        ct(stream[: len(stream) // 2], syntax)
    assert caught.value.reason in (Reason.TRUNCATED, Reason.CORRUPT)


def test_another_codec_than_the_transfer_syntax_names_is_flagged() -> None:
    stream = streams()[BASE + "80"]
    for syntax in (BASE + "90", RLE, "1.2.840.10008.1.2.8.1", "1.2.840.10008.1.2.1"):
        file = opened(encapsulated(items(stream), module(32, 48, signed=True), syntax))
        frame = decode_frame(file, 0)
        assert np.array_equal(frame.values, CT)
        assert Flag.TS_MISMATCH in file.flags + frame.flags


def test_jpeg_2000_of_another_sign_is_brought_to_the_headers() -> None:
    stream = bytes(imagecodecs.jpeg2k_encode(CT.view(np.uint16), codecformat="j2k", reversible=True, level=0))
    frame = ct(stream, BASE + "90")
    assert np.array_equal(frame.values, CT)
    assert frame.flags == (Flag.CODESTREAM_MISMATCH,)


def test_a_jp2_file_is_read_for_its_codestream_alone() -> None:
    stream = bytes(imagecodecs.jpeg2k_encode(CT, codecformat="jp2", reversible=True, level=0))
    assert stream[4:8] == b"jP  "
    assert np.array_equal(ct(stream, BASE + "90").values, CT)


@pytest.mark.parametrize("width", [1, 2, 4])
def test_rle_of_any_width_and_colour(width: int) -> None:
    rng = np.random.default_rng(width)
    planes = rng.integers(0, 256 ** min(width, 4), (3, 5, 7)).astype(f"u{width}")
    grey = decoded(rle(planes[0]), RLE, rows=5, columns=7, bits=(8 * width, 8 * width, 8 * width - 1))
    assert np.array_equal(grey.values, planes[0])
    colour = {"samples": 3, "photometric": "RGB", "planar": 1}
    rgb = decoded(rle(planes), RLE, rows=5, columns=7, bits=(8 * width, 8 * width, 8 * width - 1), **colour)
    assert np.array_equal(rgb.values, planes.transpose(1, 2, 0))


def test_rle_of_single_bits() -> None:
    bits = np.random.default_rng(1).integers(0, 2, (5, 16)).astype(np.uint8)
    packed = np.packbits(bits, bitorder="little").reshape(1, -1)
    assert np.array_equal(decoded(rle(packed), RLE, rows=5, columns=16, bits=(1, 1, 0)).values, bits)


def test_rle_segments_outside_the_frame_are_never_followed() -> None:
    good = rle(CT.view(np.uint16))
    for offsets in ((64, 2**31), (64, 64), (200, 100), (0, 64), (64, len(good))):
        assert reason(struct.pack("<3I", 2, *offsets) + good[12:], RLE, rows=32, columns=48) is Reason.CORRUPT
    assert reason(struct.pack("<I", 3) + good[4:], RLE, rows=32, columns=48) is Reason.CORRUPT
    assert reason(good[:40], RLE, rows=32, columns=48) is Reason.TRUNCATED


def test_padded_rle_segments_are_left_to_the_other_decoder() -> None:
    """15 pixels: each segment ends in an odd run, and a literal byte too many keeps it even."""
    plane = np.arange(15, dtype=np.uint16).reshape(3, 5) * 999
    cells = plane.astype(">u2").tobytes()
    segments = [bytes([15]) + cells[byte::2] + b"\0" + b"\x80" for byte in (0, 1)]
    stream = struct.pack("<16I", 2, 64, 64 + len(segments[0]), *[0] * 13) + b"".join(segments)
    frame = decoded(stream, RLE, rows=3, columns=5)
    assert np.array_equal(frame.values, plane)
    assert frame.flags == (Flag.SUSPECT,)
    assert frame.decoder.startswith("pydicom")


def jpeg(subsampling: str = "444") -> bytes:
    """YCbCr, with a JFIF marker."""
    return bytes(simplejpeg.encode_jpeg(SCENE, 98, colorspace="RGB", colorsubsampling=subsampling))


def without_jfif(stream: bytes) -> bytes:
    length = struct.unpack(">H", stream[4:6])[0]
    assert stream[2:4] == b"\xff\xe0"
    return stream[:2] + stream[4 + length :]


def adobe(transform: int) -> bytes:
    return b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0" + bytes([transform])


def plain_rgb() -> bytes:
    """Three components 150, 120, 140 that are red, green and blue, with identifiers 1, 2, 3 and no marker."""
    # The encoder is given the colour that has these as Y, Cb and Cr.
    shown = [150 + 1.402 * 12, 150 + 0.344136 * 8 - 0.714136 * 12, 150 - 1.772 * 8]
    scene = np.full((16, 16, 3), np.round(shown), np.uint8)
    return without_jfif(bytes(simplejpeg.encode_jpeg(scene, 100, colorspace="RGB", colorsubsampling="444")))


@pytest.mark.parametrize(
    ("stream", "photometric", "flagged"),
    [
        (jpeg(), "YBR_FULL_422", False),
        (jpeg("420"), "YBR_FULL_422", False),
        # JFIF is YCbCr, whatever the header says.
        (jpeg(), "RGB", True),
        # Without a marker the header decides.
        (without_jfif(jpeg()), "YBR_FULL", False),
        # Adobe's marker counts before JFIF and the header.
        (jpeg()[:2] + adobe(1) + jpeg()[2:], "RGB", True),
    ],
)
def test_the_stream_says_which_colours_it_has(stream: bytes, photometric: str, flagged: bool) -> None:
    frame = decoded(stream, BASE + "50", rows=16, columns=16, samples=3, bits=GREY8, photometric=photometric)
    assert frame.photometric == "RGB"
    assert np.abs(frame.values.astype(int) - SCENE).max() <= 3
    assert frame.flags == ((Flag.PHOTOMETRIC_MISMATCH,) if flagged else ())


def test_rgb_streams_are_not_converted() -> None:
    image = {"rows": 16, "columns": 16, "samples": 3, "bits": GREY8}
    stream, colour = plain_rgb(), [150, 120, 140]
    for data, photometric, flags in (
        (stream, "RGB", ()),
        # Adobe's marker counts before the header.
        (stream[:2] + adobe(0) + stream[2:], "YBR_FULL", (Flag.PHOTOMETRIC_MISMATCH,)),
        # One of a transform that does not exist says nothing.
        (stream[:2] + adobe(219) + stream[2:], "RGB", ()),
    ):
        frame = decoded(data, BASE + "50", photometric=photometric, **image)
        assert np.abs(frame.values.astype(int) - colour).max() <= 2
        assert frame.flags == flags


def test_colours_that_were_not_converted_keep_their_name() -> None:
    planes = np.array([76, 85, 255], np.uint8).reshape(3, 1, 1).repeat(4, axis=2)
    file = opened(encapsulated(items(rle(planes)), module(1, 4, samples=3, bits=GREY8, photometric="YBR_FULL"), RLE))
    frame = decode_frame(file, 0)
    assert (frame.photometric, frame.values[0, 0].tolist()) == ("YBR_FULL", [76, 85, 255])
    assert frame_to_rgb(file, frame)[0][0, 0].tolist() == [254, 0, 0]


def test_the_jpeg_2000_transform_gives_rgb_whatever_the_header_calls_it() -> None:
    stream = bytes(imagecodecs.jpeg2k_encode(SCENE, codecformat="j2k", reversible=True, level=0, mct=True))
    assert read_codestream(stream).colours == "RGB"
    for photometric, flags in (("YBR_RCT", ()), ("RGB", ()), ("YBR_FULL", (Flag.PHOTOMETRIC_MISMATCH,))):
        frame = decoded(stream, BASE + "90", rows=16, columns=16, samples=3, bits=GREY8, photometric=photometric)
        assert np.array_equal(frame.values, SCENE)
        assert (frame.photometric, frame.flags) == ("RGB", flags)


@pytest.mark.parametrize("stream", [b"", b"\xff", b"\xff\xd8\xff", b"\xff\x4f\xff\x51", b"\0" * 100])
def test_what_is_no_codestream_is_refused(stream: bytes) -> None:
    with pytest.raises(SampleError):
        read_codestream(stream)
