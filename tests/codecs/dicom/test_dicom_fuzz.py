"""Whatever the bytes, a DICOM file gives stored values or a :class:`SampleError`, within bounds.

JPEG-LS files are cut here, but not mutated: for one in a hundred damaged scans CharLS takes ten seconds and more to
give up. In a build the worker's limit of CPU time ends that.
"""

from __future__ import annotations

import io
import random
import resource
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from shardforge.codecs.dicom.meaning import frame_meaning
from shardforge.codecs.dicom.parse import parse_dicom
from shardforge.codecs.dicom.pixels import StoredFrame, decode_frame
from shardforge.codecs.dicom.read import read_dicom
from shardforge.codecs.dicom.rgb import frame_to_rgb, is_colour
from shardforge.codecs.limits import Limits
from shardforge.dicom.stored import stored_dtype
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason
from tests.codecs.dicom.dicom_files import encapsulated, items, module, native
from tests.codecs.dicom.test_decoders import RLE, rle

SMALL = Limits(pixels=4_000_000, frames=200, source_bytes=1 << 24)
REFUSALS = frozenset(
    (
        Reason.BAD_HEADER,
        Reason.CORRUPT,
        Reason.EMPTY,
        Reason.NO_PIXELS,
        Reason.NOT_A_PICTURE,
        Reason.NOT_DICOM,
        Reason.OVER_BUDGET,
        Reason.TRUNCATED,
        Reason.UNSUPPORTED,
    )
)
"""What may be said of a file whose bytes make no picture."""
SEEDS = (
    "bits/made_signed12_be.dcm",
    "bits/made_highbit15_bs12.dcm",
    "bits/made_j2k_8bit_in_16alloc.dcm",
    "bits/made_u32.dcm",
    "broken/made_no_preamble_implicit.dcm",
    "broken/nm_jpeg_extended12_bad_sos.dcm",
    "color/made_jxl_rgb.dcm",
    "color/made_palette_8bit_packed.dcm",
    "color/made_palette_first10_n200.dcm",
    "color/made_pi_rgb_stream_ycbcr_jfif.dcm",
    "color/made_rgb_planar1_rle.dcm",
    "color/made_ybr_full_planar1.dcm",
    "color/SC_rgb_jpeg_gdcm.dcm",
    "color/SC_rgb_small_odd_big_endian.dcm",
    "color/SC_ybr_full_422_uncompressed.dcm",
    "multiframe/emri_small_jpeg_2k_lossless.dcm",
    "multiframe/made_enhanced_mixed.dcm",
    "multiframe/made_extended_offset_table.dcm",
    "multiframe/rtdose_rle.dcm",
    "seg/liver_rle.dcm",
    "seg/liver_nonbyte_aligned.dcm",
    "ts/MR_small_jp2klossless.dcm",
    "ts/MR_small_RLE.dcm",
    "ts/made_htj2k_lossless16.dcm",
    "ts/made_jpeg_lossless_modulo.dcm",
    "ts/image_dfl.dcm",
    "voi/made_mlut_negative_first.dcm",
    "voi/made_vlut_two_items_and_window.dcm",
)
JPEG_LS_FRAME = b"\xff\xf7\0"
_PIXEL_DATA = (b"\xe0\x7f\x10\x00", b"\x7f\xe0\x00\x10")


def _pixels_at(data: bytes) -> int:
    return max(1, *(data.rfind(tag) for tag in _PIXEL_DATA))


def mutated(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Bit flips, lengths, cuts, and pieces of the file itself or of another spliced in."""
    if rng.random() < 0.12:
        return data[: rng.randrange(len(data))]
    damaged = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 12))):
        edge = len(damaged)
        low, high = rng.choice(((0, edge), (132, _pixels_at(data)), (_pixels_at(data), _pixels_at(data) + 300)))
        at = min(rng.randrange(low, max(low + 1, high)), max(0, edge - 4))
        match rng.randrange(7):
            case 0:
                damaged[at : at + 1] = rng.randbytes(1)
            case 1:
                damaged[at : at + 1] = bytes([damaged[at] ^ 1 << rng.randrange(8)]) if damaged else b""
            case 2:
                damaged[at : at + 4] = rng.choice(
                    (b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f", b"\0\0\0\x80")
                )
            case 3:
                del damaged[at : at + rng.randrange(1, 50)]
            case 4:
                damaged[at:at] = rng.randbytes(rng.randrange(1, 20))
            case 5:
                source = rng.randrange(len(damaged) or 1)
                damaged[at : at + 40] = damaged[source : source + rng.randrange(1, 200)]
            case _:
                source = _pixels_at(other)
                damaged[at:at] = other[source : source + rng.randrange(1, 200)]
        if not damaged:
            break
    return bytes(damaged)


def check(rng: random.Random, data: bytes) -> dict[int, StoredFrame | Reason]:
    """The first and the last frame, decoded or refused; frame 0 alone where the file as a whole is refused."""
    with suppress(SampleError):
        parse_dicom(io.BytesIO(data), tags=[0x00280010, 0x00200032], max_inflated=1 << 20, size=len(data))
    try:
        file = read_dicom(data, SMALL)
    except SampleError as error:
        return {0: known(error)}
    ended: dict[int, StoredFrame | Reason] = {}
    for number in {0, file.frames - 1}:
        try:
            frame_meaning(file, number)
            ended[number] = frame = decode_frame(file, number, salvage=rng.random() < 0.5)
            assert frame.values.shape[:2] == (file.format.rows, file.format.columns)
            assert frame.values.dtype == stored_dtype(file.format)
            assert 0 < frame.valid_rows <= file.format.rows
            if is_colour(file):
                assert frame_to_rgb(file, frame)[0].shape == (file.format.rows, file.format.columns, 3)
        except SampleError as error:
            ended[number] = known(error)
    return ended


def known(error: SampleError) -> Reason:
    assert error.reason in REFUSALS
    return error.reason


def refused(ended: dict[int, StoredFrame | Reason]) -> set[Reason]:
    return {end for end in ended.values() if isinstance(end, Reason)}


def run(rng: random.Random, files: list[bytes], count: int) -> float:
    """The share of damaged files of which a frame was refused."""
    before, without = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0
    for _ in range(count):
        without += bool(refused(check(rng, mutated(rng, rng.choice(files), rng.choice(files)))))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 400_000, f"{grown} KiB"
    return without / count


@pytest.mark.parametrize("part", range(4))
def test_damaged_files_are_decoded_or_refused(corpus: Path, part: int) -> None:
    files = [(corpus / "dicom" / name).read_bytes() for name in SEEDS]
    # Neither is everything refused, nor everything let through; so below.
    assert 0.05 < run(random.Random(part), files, 200) < 0.95


def test_damaged_rle_is_decoded_or_refused() -> None:
    """The one decoder that was found to crash on damage; it is given checked offsets now."""
    rng = random.Random(5)
    planes = np.random.default_rng(5).integers(0, 4, (3, 9, 8)).astype(np.uint16)
    colours = module(9, 8, samples=3, photometric="RGB")
    files = [
        encapsulated(items(rle(planes[0])), module(9, 8), RLE),
        encapsulated(items(rle(planes)), colours, RLE),
        native(planes.tobytes(), colours),
    ]
    assert 0.05 < run(rng, files, 600) < 0.95


def test_random_bytes_behind_a_header_are_decoded_or_refused(corpus: Path) -> None:
    rng, noise = random.Random(6), []
    for name in SEEDS:
        data = (corpus / "dicom" / name).read_bytes()
        for length in (100, 132, 200, _pixels_at(data)):
            # Without pixel data there is nothing to decode.
            ended = check(rng, data[:length] + rng.randbytes(300))
            assert ended in ({0: Reason.NOT_DICOM}, {0: Reason.TRUNCATED}), name
        noise.append(bool(refused(check(rng, data[: _pixels_at(data) + 20] + rng.randbytes(300)))))
    # Noise in place of pixels is a picture where nothing is encoded and enough is there; else it is refused.
    assert set(noise) == {True, False}


def test_jpeg_ls_files_cut_anywhere_are_decoded_or_refused(corpus: Path) -> None:
    """A frame that is whole behind the cut header is the frame of the whole file, to the last pixel."""
    rng = random.Random(7)
    for name in ("ts/MR_small_jpeg_ls_lossless.dcm", "multiframe/made_jls_fragmented_bot.dcm"):
        data = (corpus / "dicom" / name).read_bytes()
        file, ends = read_dicom(data, SMALL), []
        for end in range(0, len(data), 61):
            ends.append(check(rng, data[:end]))
            for number, frame in ends[-1].items():
                if not isinstance(frame, Reason):
                    assert frame.valid_rows == file.format.rows
                    np.testing.assert_array_equal(frame.values, decode_frame(file, number).values)
        # Of 140 cuts and more, one or two fall between two elements, where no trace is left of what followed.
        assert set().union(*map(refused, ends)) - {Reason.NO_PIXELS} == {
            Reason.EMPTY, Reason.NOT_DICOM, Reason.TRUNCATED
        }  # fmt: skip
        assert sum(Reason.NO_PIXELS in refused(ended) for ended in ends) <= 2
        # The cuts before the pixel data leave nothing, that behind the last of them everything.
        assert all(refused(ended) for ended in ends[: _pixels_at(data) // 61])
        assert not refused(ends[-1])


@pytest.mark.long
@pytest.mark.parametrize("part", range(8))
def test_damaged_corpus_files_of_dicom_are_decoded_or_refused(corpus: Path, part: int) -> None:
    paths = [p for p in sorted((corpus / "dicom").rglob("*")) if p.is_file() and 200 < p.stat().st_size < 60_000]
    files = [path.read_bytes() for path in paths]
    sound = [data for data in files if JPEG_LS_FRAME not in data]
    assert 0.05 < run(random.Random(100 + part), sound, 1500) < 0.95
