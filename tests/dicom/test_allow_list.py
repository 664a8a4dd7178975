"""Only known attributes, and only known values of them, reach a dataset."""

from __future__ import annotations

import json
from pathlib import Path

import pydicom
import pytest
from pydicom.datadict import DicomDictionary, dictionary_VR, tag_for_keyword
from pydicom.valuerep import DSfloat

from shardforge.dicom.allow_list import ALLOWED, NUMBERS, STANDARD_UIDS, allowed_values, check_allowed
from shardforge.dicom.vocabulary import CODES
from shardforge.errors import UsageError
from tests.dicom_leaks import find_markers
from tests.dicom_planted import plant_dicom


def _vr(keyword: str) -> str:
    tag = tag_for_keyword(keyword)
    assert tag is not None, keyword
    return dictionary_VR(tag)


def test_every_name_is_an_attribute_of_the_standard_of_the_right_kind() -> None:
    assert {_vr(keyword) for keyword in NUMBERS} <= {"DS", "IS", "FD", "US", "US or SS"}
    # Rescale Type is an LO with defined terms (PS3.3 C.11.1.1.2).
    assert {_vr(keyword) for keyword in CODES if keyword != "RescaleType"} == {"CS"}
    assert {_vr(keyword) for keyword in STANDARD_UIDS} == {"UI"}


def test_no_name_date_text_or_sequence_is_allowed() -> None:
    free = {"PN", "LT", "ST", "UT", "UC", "UR", "SH", "AE", "DA", "TM", "DT", "AS", "SQ", "UN", "OB", "OW"}
    found = {keyword for vr, _, _, _, keyword in DicomDictionary.values() if vr in free}
    assert not found & ALLOWED
    assert not {"PatientSex", "PatientAge", "PatientSize", "PatientWeight", "StudyInstanceUID", "PatientID"} & ALLOWED


def test_an_attribute_off_the_list_is_refused_by_name() -> None:
    check_allowed(["Modality", "KVP"])
    with pytest.raises(UsageError, match=r"PatientName, StudyDate: .*--keep-identifiers"):
        check_allowed(["StudyDate", "KVP", "PatientName"])
    with pytest.raises(UsageError, match="InstitutionName"):
        allowed_values("InstitutionName", ["x"])


@pytest.mark.parametrize("keyword", sorted(ALLOWED))
def test_text_in_an_allowed_attribute_does_not_get_through(keyword: str) -> None:
    for text in ("ZZDOE^JOHN", "ZZ4711", "1.2.3.4711", "Smith", "1.2.840.10008.5.1.4.1.1.2.4711x"):
        (value,) = allowed_values(keyword, [text])
        assert value in (None, "OTHER")


def test_numbers_come_as_numbers() -> None:
    ds = pydicom.Dataset()
    ds.PixelSpacing = ["0.5", "1e1"]
    ds.InstanceNumber = "7"
    assert allowed_values("PixelSpacing", ds.PixelSpacing) == (0.5, 10.0)
    assert type(allowed_values("PixelSpacing", [DSfloat("0.5")])[0]) is float
    assert allowed_values("InstanceNumber", [ds.InstanceNumber]) == (7,)
    assert type(allowed_values("InstanceNumber", [ds.InstanceNumber])[0]) is int
    assert allowed_values("KVP", [" 120 ", "", "nan", "inf", "1e999", "120 kV", None]) == (120.0, *[None] * 6)


def test_codes_are_known_words_or_other() -> None:
    assert allowed_values("Modality", ["CT"]) == ("CT",)
    assert allowed_values("ImageType", ["DERIVED ", "primary", "SMALL PARTS", "", "CT_SOM5 SPI"]) == (
        "DERIVED", "PRIMARY", "SMALL_PARTS", None, "OTHER"
    )  # fmt: skip
    assert allowed_values("BodyPartExamined", ["CHEST ABDOMEN", "Head Smith"]) == ("CHESTABDOMEN", "OTHER")


def test_only_uids_of_the_standard_pass() -> None:
    assert allowed_values("SOPClassUID", ["1.2.840.10008.5.1.4.1.1.2\0"]) == ("1.2.840.10008.5.1.4.1.1.2",)
    assert allowed_values("SOPClassUID", ["1.2.840.113619.4.27", "1.2.840.100081.1", "1.2.840.10008"]) == (None,) * 3


def test_nothing_of_a_file_full_of_markers_gets_through(tmp_path: Path) -> None:
    planted = plant_dicom(tmp_path / "source", slices=1)
    out = tmp_path / "out"
    out.mkdir()
    for number, path in enumerate((*planted.pictures, planted.others[0])):
        ds = pydicom.dcmread(path)
        passed = {}
        for keyword in sorted(ALLOWED & set(ds.dir())):
            value = ds.get(keyword)
            several = isinstance(value, list | pydicom.multival.MultiValue)
            passed[keyword] = allowed_values(keyword, value if several else [value])
        assert len(passed) > 30
        assert passed["PixelSpacing"] == (1.0, 1.0)
        assert passed["BodyPartExamined"] == ("OTHER",)
        (out / f"{number}.json").write_text(json.dumps(passed))
    assert find_markers(out, planted) == []
