"""What segmentation objects say of their frames: corpus files beside the images they segment, and made ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydicom import Dataset, dcmread
from pydicom.sequence import Sequence

from shardforge.codecs.dicom_seg import segmentation_index
from shardforge.dicom.plane import Plane
from shardforge.dicom.segmentation import Code, SegmentationIndex, frames_of, slice_mask
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason
from tests.codecs.dicom.corpus_files import EXPECTED, PICTURES, stacked
from tests.codecs.dicom.corpus_files import read as corpus_file

CT = "1.3.6.1.4.1.5962.1.1.0.0.0.1196530851.28319.0."
"""The UIDs of patients/77654033/CT2 end in 93 to 96; the segmentations were made from these four."""
SLICES = {"17106": "93", "17136": "94", "17166": "95", "17196": "96"}


def read(corpus: Path, name: str) -> tuple[SegmentationIndex, NDArray[Any]]:
    dataset = dcmread(corpus / "dicom/seg" / name)
    stored = dataset.pixel_array
    return segmentation_index(dataset), stored.reshape(-1, *stored.shape[-2:])


def plane_of(path: Path) -> Plane:
    image = dcmread(path, stop_before_pixels=True)
    return Plane(
        image.FrameOfReferenceUID,
        tuple(map(float, image.ImagePositionPatient)),  # type: ignore[arg-type]
        tuple(map(float, image.ImageOrientationPatient)),  # type: ignore[arg-type]
        tuple(map(float, image.PixelSpacing)),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("name", list(SLICES))
def test_every_slice_of_the_ct_gets_its_frame(corpus: Path, name: str) -> None:
    index, stored = read(corpus, "seg_image_ct_binary.dcm")
    image = corpus / "dicom/patients/77654033/CT2" / name
    found = slice_mask(index, stored, CT + SLICES[name], (16, 16), plane=plane_of(image))
    assert found is not None
    # The first slice has no frame: nothing was found there.
    frame = list(SLICES).index(name) - 1
    np.testing.assert_array_equal(found.values, stored[frame] if frame >= 0 else np.zeros((16, 16)))
    assert found.found_by == ("reference" if frame >= 0 else "nothing")


@pytest.mark.parametrize("name", list(SLICES)[1:])
def test_reference_and_place_lead_to_the_same_frame(corpus: Path, name: str) -> None:
    dataset = dcmread(corpus / "dicom/seg/seg_image_ct_binary.dcm")
    named = frames_of(segmentation_index(dataset), CT + SLICES[name])
    for group in dataset.PerFrameFunctionalGroupsSequence:
        del group.DerivationImageSequence
    plane = plane_of(corpus / "dicom/patients/77654033/CT2" / name)
    placed = frames_of(segmentation_index(dataset), CT + SLICES[name], plane=plane)
    assert (placed[0], placed[1]) == (named[0], "plane")


def test_overlapping_segments_of_the_corpus_are_counted(corpus: Path) -> None:
    index, stored = read(corpus, "seg_image_ct_binary_overlap.dcm")
    found = slice_mask(index, stored, CT + "93", (16, 16))
    assert found is not None
    # Frames 0 to 3 show segment 1 on the four slices, frames 4 to 7 segment 2.
    one, two = stored[0].astype(bool), stored[4].astype(bool)
    np.testing.assert_array_equal(found.values, np.where(two, 2, np.where(one, 1, 0)))
    assert found.overlapping == np.count_nonzero(one & two) == 4


def test_probabilities_are_cut_at_one_half(corpus: Path) -> None:
    index, stored = read(corpus, "seg_image_ct_true_fractional.dcm")
    assert (index.kind, index.maximum) == ("FRACTIONAL", 255)
    found = slice_mask(index, stored, CT + "94", (16, 16))
    assert found is not None
    # Stored are 0, 64 (0.25) and 128 (0.502).
    np.testing.assert_array_equal(found.values, stored[0] == 128)


def test_tiles_of_a_slide_get_their_label_maps(corpus: Path) -> None:
    index, stored = read(corpus, "seg_image_sm_control_labelmap_palette_color.dcm")
    slide = dcmread(corpus / "dicom/multiframe/sm_image.dcm", stop_before_pixels=True)
    assert [segment.number for segment in index.segments] == list(range(21))
    # The file refers to tiles 1 to 9, 12, 15 to 19 and 21 to 25 of 25, in this order.
    tiles = [*range(9), 11, *range(14, 19), *range(20, 25)]
    for tile in range(25):
        found = slice_mask(index, stored, slide.SOPInstanceUID, (10, 10), image_frame=tile)
        assert found is not None
        expected = stored[tiles.index(tile)] if tile in tiles else np.zeros((10, 10))
        np.testing.assert_array_equal(found.values, expected)


def test_the_liver_has_one_frame_a_slice(corpus: Path) -> None:
    for name in ("liver.dcm", "liver_expb.dcm", "liver_rle.dcm", "liver_deflate.dcm", "liver_j2k.dcm"):
        index = segmentation_index(dcmread(corpus / "dicom/seg" / name))
        stem = "1.2.392.200103.20080913.113635.2.2009.6.22.21.43.10.2343"
        shown = {
            uid: [(frame.frame, frame.segment) for frame in frames] for (uid, _), frames in index.by_image.items()
        }
        assert shown == {f"{stem}3.1": [(0, 1)], f"{stem}2.1": [(1, 1)], f"{stem}1.1": [(2, 1)]}
        assert (index.segments[0].category, index.segments[0].type) == (
            Code("SRT", "T-D0050"),
            Code("SRT", "T-62000"),
        )


def test_a_size_that_differs_from_the_images_is_refused(corpus: Path) -> None:
    index, stored = read(corpus, "seg_image_ct_binary.dcm")
    with pytest.raises(SampleError) as caught:
        slice_mask(index, stored, CT + "94", (512, 512))
    assert caught.value.reason is Reason.MASK_MISMATCH


def item(**elements: Any) -> Dataset:
    made = Dataset()
    for keyword, value in elements.items():
        setattr(made, keyword, value)
    return made


def code(value: str, scheme: str = "SCT", meaning: str = "ZZNAME") -> Dataset:
    return item(CodeValue=value, CodingSchemeDesignator=scheme, CodeMeaning=meaning)


def segment(number: int, type: Dataset) -> Dataset:
    return item(
        SegmentNumber=number,
        SegmentLabel="ZZLABEL",
        SegmentedPropertyCategoryCodeSequence=Sequence([code("123037004")]),
        SegmentedPropertyTypeCodeSequence=Sequence([type]),
    )


def frame(number: int, *sources: Dataset) -> Dataset:
    return item(
        SegmentIdentificationSequence=Sequence([item(ReferencedSegmentNumber=number)]),
        DerivationImageSequence=Sequence([item(SourceImageSequence=Sequence(sources))]),
    )


def source(uid: str, **more: Any) -> Dataset:
    return item(ReferencedSOPInstanceUID=uid, **more)


def made(*frames: Dataset, **changed: Any) -> Dataset:
    dataset = item(
        SOPClassUID="1.2.840.10008.5.1.4.1.1.66.4",
        SegmentationType="BINARY",
        Rows=2,
        Columns=3,
        BitsAllocated=1,
        NumberOfFrames=len(frames),
        SegmentSequence=Sequence([segment(1, code("10200004")), segment(2, code("64033007"))]),
        SharedFunctionalGroupsSequence=Sequence([Dataset()]),
        PerFrameFunctionalGroupsSequence=Sequence(frames),
    )
    for keyword, value in changed.items():
        setattr(dataset, keyword, value)
    return dataset


def refused(dataset: Dataset) -> Reason:
    with pytest.raises(SampleError) as caught:
        segmentation_index(dataset)
    return caught.value.reason


def test_a_frame_made_from_several_images_shows_none_of_them() -> None:
    index = segmentation_index(made(frame(1, source("1.1"), source("1.2"))))
    assert (index.by_image, index.loose, index.covered) == ({}, 1, {"1.1", "1.2"})


@pytest.mark.parametrize(("number", "wide"), [(255, False), (256, True)])
def test_segment_numbers_above_255_need_16_bits(number: int, wide: bool) -> None:
    segments = Sequence([segment(number, code("10200004"))])
    assert segmentation_index(made(frame(number, source("1.1")), SegmentSequence=segments)).wide is wide


def test_a_frame_whose_pixels_moved_does_not_show_the_image() -> None:
    index = segmentation_index(made(frame(1, source("1.1", SpatialLocationsPreserved="NO"))))
    assert (index.by_image, index.loose) == ({}, 1)


def test_pictures_merely_referred_to_are_not_segmented() -> None:
    group = item(
        SegmentIdentificationSequence=Sequence([item(ReferencedSegmentNumber=1)]),
        ReferencedImageSequence=Sequence([source("1.7")]),
    )
    index = segmentation_index(made(group))
    assert (index.by_image, index.covered) == ({}, frozenset())


def test_groups_that_all_frames_share_count_where_a_frame_has_none() -> None:
    shared = item(
        SegmentIdentificationSequence=Sequence([item(ReferencedSegmentNumber=2)]),
        PlaneOrientationSequence=Sequence([item(ImageOrientationPatient=[1, 0, 0, 0, 1, 0])]),
        PixelMeasuresSequence=Sequence([item(PixelSpacing=[2, 3])]),
    )
    own = item(PlanePositionSequence=Sequence([item(ImagePositionPatient=[1, 2, 3])]))
    index = segmentation_index(
        made(own, SharedFunctionalGroupsSequence=Sequence([shared]), FrameOfReferenceUID="1.9")
    )
    assert index.frames[0].segment == 2
    assert index.frames[0].plane == Plane("1.9", (1, 2, 3), (1, 0, 0, 0, 1, 0), (2, 3))


@pytest.mark.parametrize(
    ("type", "expected"),
    [
        (code("10200004"), Code("SCT", "10200004")),
        (code("T-62000", "SRT"), Code("SRT", "T-62000")),
        (code("ZZPATIENT"), None),
        (code("10200004", "99ZZHOSPITAL"), None),
    ],
    ids=["snomed", "srt", "text-for-a-code", "private-scheme"],
)
def test_only_codes_of_public_schemes_are_kept_and_no_text(type: Dataset, expected: Code | None) -> None:
    index = segmentation_index(made(frame(1, source("1.1")), SegmentSequence=Sequence([segment(1, type)])))
    assert index.segments[0].type == expected
    assert "ZZ" not in repr(index)


@pytest.mark.parametrize(
    ("dataset", "reason"),
    [
        (made(frame(1, source("1.1")), SOPClassUID="1.2.840.10008.5.1.4.1.1.2"), Reason.UNSUPPORTED),
        (made(frame(1, source("1.1")), SegmentationType="SURFACE"), Reason.UNSUPPORTED),
        (made(), Reason.UNSUPPORTED),
        (made(frame(1, source("1.1")), NumberOfFrames=2), Reason.BAD_HEADER),
        (made(frame(3, source("1.1"))), Reason.BAD_HEADER),
        (made(frame(1, source("1.1")), SegmentationType="FRACTIONAL"), Reason.BAD_HEADER),
        (made(frame(1, source("1.1")), SegmentSequence=Sequence([])), Reason.BAD_HEADER),
        (made(frame(1, source("1.1")), Rows=0), Reason.BAD_HEADER),
        (
            made(frame(1, source("1.1")), SegmentSequence=Sequence([segment(1, code("10200004"))] * 2)),
            Reason.BAD_HEADER,
        ),
        (made(Dataset()), Reason.BAD_HEADER),
    ],
    ids=[
        "ct",
        "surface",
        "no-frames",
        "count",
        "unknown-segment",
        "no-maximum",
        "no-segments",
        "rows-0",
        "twins",
        "bare-frame",
    ],
)
def test_what_is_no_sound_segmentation_is_refused(dataset: Dataset, reason: Reason) -> None:
    assert refused(dataset) is reason


def test_every_segmentation_of_the_corpus_gives_masks_or_says_why_not(corpus: Path) -> None:
    names = [name for name in PICTURES if EXPECTED[name].get("route") == "seg"]
    reasons = {}
    for name in names:
        facts, file = EXPECTED[name], corpus_file(corpus, name)
        shape = facts["header"]["rows"], facts["header"]["cols"]
        try:
            index = segmentation_index(file.dataset)
        except SampleError as error:
            reasons[name] = error.reason
            continue
        assert (index.shape, len(index.frames)) == (shape, facts["stored"]["shape"][0]), name
        stored, legal = stacked(file), {index.background, *(segment.number for segment in index.segments)}
        inside = 0
        for uid, image_frame in index.by_image:
            found = slice_mask(index, stored, uid, shape, image_frame=image_frame or 0)
            assert found is not None, name
            assert (found.values.shape, found.values.dtype, found.found_by) == (shape, np.uint8, "reference"), name
            assert set(np.unique(found.values)) <= legal, name
            inside += np.count_nonzero(found.values) + found.overlapping
        if index.kind == "BINARY":
            # No pixel is claimed by three segments, so every 1 that the corpus counts is told once.
            assert inside == pytest.approx(facts["stored"]["mean"] * stored.size, abs=0.5), name
    # Cut down to one frame each, of which their headers describe three.
    cut = ("dicom/seg/liver_1frame.dcm", "dicom/seg/liver_expb_1frame.dcm")
    assert reasons == dict.fromkeys(cut, Reason.BAD_HEADER)
    assert len(names) == len(list((corpus / "dicom/seg").iterdir())) > len(cut)


def test_pictures_of_the_corpus_are_no_segmentations_whatever_they_call_themselves(corpus: Path) -> None:
    names = [name for name in PICTURES if EXPECTED[name].get("route") != "seg"]
    for name in names:
        dataset = corpus_file(corpus, name).dataset
        assert refused(dataset) is Reason.UNSUPPORTED, name
        dataset.SOPClassUID, dataset.SegmentationType = "1.2.840.10008.5.1.4.1.1.66.4", "BINARY"
        # Either no frame is described, or the frames are not those of segments.
        described = bool(dataset.get("PerFrameFunctionalGroupsSequence"))
        assert refused(dataset) is (Reason.BAD_HEADER if described else Reason.UNSUPPORTED), name
    assert names
