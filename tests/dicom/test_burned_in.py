"""The risk of burned-in text, judged from headers: of the corpus, and case by case."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import pydicom
import pytest
from pydicom.dataset import Dataset
from pydicom.uid import UID_dictionary

from shardforge.dicom.burned_in import AnnotationFacts, judge_burned_in, speaks_of_capture
from tests.dicom_planted import plant_dicom

CT, MR, SC, US = (f"1.2.840.10008.5.1.4.1.1.{number}" for number in ("2", "4", "7", "6.1"))
SLIDE = AnnotationFacts(sop_class="1.2.840.10008.5.1.4.1.1.77.1.6", modality="SM")
PLAIN_CT = AnnotationFacts(sop_class=CT, modality="CT", image_type=("ORIGINAL", "PRIMARY", "AXIAL"))


def _facts(ds: Dataset) -> AnnotationFacts:
    kinds = ds.get("ImageType") or ()
    return AnnotationFacts(
        annotation=str(ds.get("BurnedInAnnotation") or ""),
        sop_class=str(ds.get("SOPClassUID") or ""),
        image_type=(kinds,) if isinstance(kinds, str) else tuple(kinds),
        modality=str(ds.get("Modality") or ""),
        conversion_type=str(ds.get("ConversionType") or ""),
        capture_device=any(ds.get((0x0018, element)) for element in range(0x1010, 0x101C)),
        capture_words=speaks_of_capture([str(ds.get("SeriesDescription") or "")]),
        samples=int(ds.get("SamplesPerPixel") or 1),
        regions=len(ds.get("SequenceOfUltrasoundRegions") or ()),
    )


def _corpus(corpus: Path) -> list[tuple[str, AnnotationFacts, list[str]]]:
    found = []
    for line in (corpus / "expected.jsonl").read_text().splitlines():
        entry = json.loads(line)
        expect = entry["expect"]
        if entry["kind"] != "dicom" or expect.get("error") or expect.get("skip") or "header" not in expect:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ds = pydicom.dcmread(corpus / entry["path"], stop_before_pixels=True, force=True)
            found.append((entry["path"], _facts(ds), expect.get("warn", [])))
    return found


def test_every_corpus_file_that_must_warn_is_judged_so(corpus: Path) -> None:
    right = {"burned_in": "high", "burned_in_suspect": "unknown"}
    wanted = {path: right[word] for path, _, warn in _corpus(corpus) for word in warn if word in right}
    assert len(wanted) == 4
    found = {path: judge_burned_in(facts).risk for path, facts, _ in _corpus(corpus) if path in wanted}
    assert found == wanted


def test_ordinary_pictures_of_the_corpus_are_free_of_doubt(corpus: Path) -> None:
    ordinary = {
        path: judge_burned_in(facts).risk
        for path, facts, _ in _corpus(corpus)
        if facts.modality in ("CT", "MR", "CR", "DX", "MG", "PT")
        and UID_dictionary[facts.sop_class][0].startswith(
            ("CT", "MR", "Computed Radiography", "Digital", "Positron", "Enhanced CT", "Enhanced MR")
        )
        and facts.image_type[1:2] in ((), ("PRIMARY",))
        and not facts.conversion_type
        and facts.samples == 1
    }
    assert len(ordinary) > 120
    assert {path for path, risk in ordinary.items() if risk != "none"} == set()


@pytest.mark.parametrize(
    ("facts", "risk"),
    [
        (PLAIN_CT, "none"),
        (replace(PLAIN_CT, annotation="YES"), "high"),
        (replace(PLAIN_CT, annotation="yes "), "high"),
        (replace(PLAIN_CT, image_type=("ORIGINAL", "PRIMARY", "LOCALIZER")), "none"),
        (replace(PLAIN_CT, image_type=("DERIVED", "PRIMARY", "AXIAL")), "none"),
        (replace(PLAIN_CT, image_type=("DERIVED", "SECONDARY", "MPR")), "none"),
        (replace(PLAIN_CT, image_type=("DERIVED", "SECONDARY", "OTHER")), "unknown"),
        (replace(PLAIN_CT, image_type=("DERIVED", "SECONDARY", "SCREEN SAVE")), "unknown"),
        (replace(PLAIN_CT, image_type=("DERIVED", "SECONDARY", "OTHER", "PATIENT_INFO")), "unknown"),
        (replace(PLAIN_CT, annotation="NO", image_type=("DERIVED", "SECONDARY", "PATIENT_INFO")), "unknown"),
        (replace(PLAIN_CT, capture_words=speaks_of_capture(["Patient Protocol"])), "unknown"),
        (replace(PLAIN_CT, capture_words=speaks_of_capture(["Screening thorax"])), "none"),
        (replace(PLAIN_CT, conversion_type="DF"), "unknown"),
        (replace(PLAIN_CT, capture_device=True), "unknown"),
        (replace(PLAIN_CT, samples=3), "unknown"),
        (replace(PLAIN_CT, samples=3, annotation="NO"), "none"),
        (AnnotationFacts(), "unknown"),
        (AnnotationFacts(modality="MR"), "none"),
        (AnnotationFacts(sop_class=SC, modality="CT"), "unknown"),
        (AnnotationFacts(sop_class=SC, modality="CT", annotation="NO"), "none"),
        (AnnotationFacts(sop_class="1.2.3.4", modality="CT"), "unknown"),
        (AnnotationFacts(sop_class=CT, modality="OT"), "unknown"),
        (AnnotationFacts(sop_class=US), "unknown"),
        (AnnotationFacts(sop_class=US, modality="US", annotation="NO"), "none"),
        (replace(SLIDE, image_type=("ORIGINAL", "PRIMARY", "VOLUME")), "none"),
        (replace(SLIDE, image_type=("DERIVED", "PRIMARY", "OVERVIEW")), "unknown"),
        (replace(SLIDE, image_type=("ORIGINAL", "PRIMARY", "LABEL"), annotation="NO"), "high"),
        *((AnnotationFacts(modality=word), "unknown") for word in ("US", "IVUS", "SC", "OT", "ES", "XC", "DOC")),
    ],
)  # fmt: skip
def test_the_header_decides(facts: AnnotationFacts, risk: str) -> None:
    assert judge_burned_in(facts).risk == risk


def test_cropping_helps_only_where_an_ultrasound_image_has_regions() -> None:
    scan = AnnotationFacts(sop_class=US, modality="US", regions=1)
    assert judge_burned_in(scan).croppable
    assert judge_burned_in(replace(scan, annotation="YES")).croppable
    assert not judge_burned_in(replace(scan, regions=0)).croppable
    assert not judge_burned_in(replace(scan, image_type=("DERIVED", "SECONDARY", "SCREEN SAVE"))).croppable
    assert not judge_burned_in(replace(scan, sop_class=SC, modality="OT")).croppable


def test_the_reason_never_repeats_what_a_person_wrote() -> None:
    for facts in (
        replace(
            PLAIN_CT,
            capture_words=speaks_of_capture(["SAVED for ZZDOE"]),
            image_type=("DERIVED", "SECONDARY", "ZZDOE"),
        ),
        AnnotationFacts(sop_class="ZZDOE", modality="ZZDOE", conversion_type="ZZDOE", annotation="ZZDOE"),
    ):
        assert "ZZDOE" not in judge_burned_in(facts).reason.upper()


def test_planted_pictures_are_plain_ones_whatever_else_their_headers_say(tmp_path: Path) -> None:
    planted = plant_dicom(tmp_path / "source", slices=2)
    risks = [judge_burned_in(_facts(pydicom.dcmread(path))).risk for path in (*planted.pictures, planted.others[0])]
    assert risks == ["none", "none", "unknown"]
