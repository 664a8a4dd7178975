"""How likely identifying text is burned into the pixels, judged from the header alone.

An image is only called safe when its kind is known to be: acquired pixels of CT, MR, PET, projection X-ray and their
like (PS3.15 annex E.3.1 names ultrasound and secondary captures as the usual carriers of text). No recognition of
text takes part: it could not tell an identity from a scale.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from shardforge.dicom.vocabulary import words

Risk = Literal["none", "unknown", "high"]

_STORAGE = "1.2.840.10008.5.1.4.1.1."
_WHOLE_SLIDE = f"{_STORAGE}77.1.6"

_ACQUIRED = frozenset(
    _STORAGE + number
    for number in words(
        "1 1.1 1.1.1 1.2 1.2.1 1.3 1.3.1 2 2.1 2.2 4 4.1 4.4 12.1 12.1.1 12.2 12.2.1 13.1.1 13.1.2 13.1.3 13.1.4 "
        "13.1.5 20 30 66.4 66.7 77.1.5.4 128 128.1 130 481.1 481.2"
    )
)
"""Storage classes of acquired or computed grey values, PS3.4 table B.5-1: CR; DX, MG and intra-oral X-ray for
presentation and for processing; CT, MR, NM and PET, enhanced and legacy ones; XA and RF; breast tomosynthesis and
X-ray 3D; ophthalmic tomography; parametric maps; segmentations; RT images and doses."""

_ULTRASOUND = frozenset(_STORAGE + number for number in words("3 3.1 6 6.1 6.2"))

_ACQUIRED_MODALITIES = words("CR CT DX IO MG MR NM OPT PT PX RF RTDOSE RTIMAGE SEG XA")

_TEXT_MODALITIES = {
    "US": "ultrasound", "IVUS": "ultrasound", "EC": "ultrasound", "BDUS": "ultrasound",
    "SC": "a secondary capture", "OT": "of the modality OT (other)", "HC": "a hard copy",
    "ES": "endoscopy", "XC": "an external-camera photograph", "DOC": "a document",
}  # fmt: skip

_CAPTURE = re.compile(
    r"SAVE|SCREEN[ _-]?(SHOT|CAP|DUMP)|SNAPSHOT|PATIENT[ _](INFO|PROTOCOL)|DOSE[ _](INFO|REPORT)|CSA REPORT"
)

_COMPUTED = re.compile(
    r"(CSA )?(MPR|MIP|MIN_?IP)|PROJECTION IMAGE|REFORMATTED|RESAMPLED|ADC|TRACEW?|FA|AVERAGE|MEAN|SUBTRACTION"
)


@dataclass(frozen=True)
class AnnotationFacts:
    """What a header says that bears on text in the pixels; absent values are empty.

    Attributes:
        annotation: BurnedInAnnotation.
        sop_class: SOPClassUID.
        image_type: the values of ImageType.
        modality: Modality.
        conversion_type: ConversionType: how pixels from elsewhere were made digital (PS3.3 C.8.6.1).
        capture_device: whether one of the attributes of a secondary capture or hard copy device (0018,1010 to 101B)
            has a value.
        capture_words: ImageType or SeriesDescription speak of a saved screen or report (:func:`speaks_of_capture`).
        samples: SamplesPerPixel.
        regions: how many two-dimensional regions of SequenceOfUltrasoundRegions can be cropped to.
    """

    annotation: str = ""
    sop_class: str = ""
    image_type: tuple[str, ...] = ()
    modality: str = ""
    conversion_type: str = ""
    capture_device: bool = False
    capture_words: bool = False
    samples: int = 1
    regions: int = 0


@dataclass(frozen=True)
class BurnedInJudgement:
    """The risk, and why.

    Attributes:
        risk: ``high``: the header or the kind of image says so. ``unknown``: nothing rules it out.
        reason: in words, free of anything a person wrote into the file.
        croppable: whether cropping to the ultrasound regions leaves out where the text usually stands.
    """

    risk: Risk
    reason: str
    croppable: bool = False


def speaks_of_capture(texts: Iterable[str]) -> bool:
    """Whether a value of ImageType, or SeriesDescription, tells of a saved screen or report."""
    return any(_CAPTURE.search(text.upper()) for text in texts)


def judge_burned_in(facts: AnnotationFacts) -> BurnedInJudgement:
    """The risk that pixels show identifying text."""
    annotation = facts.annotation.strip(" \0").upper()
    terms = tuple(term.strip(" \0").upper() for term in facts.image_type)
    modality = facts.modality.strip(" \0").upper()
    ultrasound = facts.sop_class in _ULTRASOUND or modality in ("US", "IVUS")
    capture = facts.capture_words or speaks_of_capture(terms)
    croppable = ultrasound and facts.regions > 0 and not capture
    if annotation == "YES":
        return BurnedInJudgement("high", "BurnedInAnnotation is YES", croppable)
    if facts.sop_class == _WHOLE_SLIDE and "LABEL" in terms:
        return BurnedInJudgement("high", "it shows a slide's label")
    if capture:
        return BurnedInJudgement("unknown", "ImageType or SeriesDescription tells of a saved screen or report")
    if annotation == "NO":
        return BurnedInJudgement("none", "BurnedInAnnotation is NO")
    doubt = _doubt(facts, terms, modality)
    if doubt is None:
        return BurnedInJudgement("none", "pixels as acquired, of a kind without burned-in text")
    return BurnedInJudgement("unknown", f"no BurnedInAnnotation, and it is {doubt}", croppable)


def _doubt(facts: AnnotationFacts, terms: tuple[str, ...], modality: str) -> str | None:
    """Why pixels without a statement about annotations may carry text, as what the image is; None where not."""
    if facts.sop_class in _ULTRASOUND:
        return "ultrasound"
    if modality in _TEXT_MODALITIES:
        return _TEXT_MODALITIES[modality]
    if facts.sop_class == _WHOLE_SLIDE:
        return "a picture of a whole slide with its label" if {"OVERVIEW", "THUMBNAIL"} & {*terms} else None
    if facts.sop_class not in _ACQUIRED and (facts.sop_class or modality not in _ACQUIRED_MODALITIES):
        return "of no class that is known to be free of text"
    if facts.conversion_type.strip(" \0") or facts.capture_device:
        return "converted or captured from another source"
    if facts.samples > 1:
        return "in colour, as screens and renderings are"
    if "SECONDARY" in terms and not any(_COMPUTED.fullmatch(term) for term in terms):
        return "made after the examination (SECONDARY)"
    return None
