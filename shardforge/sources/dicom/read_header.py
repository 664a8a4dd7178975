"""Bytes of a file → its :class:`Header`, by the tags that a source needs and no others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from shardforge.codecs.dicom.parse import Parsed, parse_dicom
from shardforge.codecs.dicom.regions import ultrasound_regions
from shardforge.codecs.dicom.syntaxes import DEFLATED_DATASETS
from shardforge.dicom.burned_in import speaks_of_capture
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason
from shardforge.sources.dicom.functional_groups import PER_FRAME, SHARED, frame_places, shared_number
from shardforge.sources.dicom.header import Acquisition, Directions, Header, Vector
from shardforge.sources.dicom.object_kind import object_kind
from shardforge.sources.dicom.segmentation_references import TOP_LEVEL, referenced_instances
from shardforge.sources.dicom.values import Values
from shardforge.sources.dicom.zips import is_member
from shardforge.sources.item import SourceFile

_MEASURES = 0x00289110
_CENTIMETRES = 3
# SequenceDelimitationItem (PS3.5 A.4); what may follow it, such as trailing padding, is short.
_DELIMITER = b"\xfe\xff\xdd\xe0\0\0\0\0"
_TAIL = 1024

# fmt: off
_TEXTS = {
    "sop_instance": 0x00080018, "series": 0x0020000E, "study": 0x0020000D, "patient": 0x00100020,
    "modality": 0x00080060, "body_part": 0x00180015, "photometric": 0x00280004, "view_position": 0x00185101,
    "presentation_intent": 0x00080068, "study_date": 0x00080020, "series_date": 0x00080021,
    "acquisition_date": 0x00080022, "burned_in_annotation": 0x00280301, "conversion_type": 0x00080064,
}
_NUMBERS = {"b_value": (0x00189087, "FD"), "gantry_tilt": (0x00181120, None)}
_INTEGERS = {
    "instance_number": 0x00200013, "acquisition_number": 0x00200012, "echo_number": 0x00180086,
    "temporal_position": 0x00200100,
}
_ACQUISITION = {
    "kvp": 0x00180060, "exposure": 0x00181152, "exposure_time": 0x00181150, "tube_current": 0x00181151,
    "echo_time": 0x00180081, "repetition_time": 0x00180080, "inversion_time": 0x00180082, "flip_angle": 0x00181314,
    "field_strength": 0x00180087,
}
_SPACINGS = {
    "pixel_spacing": 0x00280030, "imager_pixel_spacing": 0x00181164, "nominal_scanned_pixel_spacing": 0x00182010,
}
_CAPTURE_DEVICE = tuple(range(0x00181010, 0x0018101C))
_LATERALITY = (0x00200062, 0x00200060)
_SOP_CLASS, _IMAGE_TYPE, _CHARSET, _DESCRIPTION = 0x00080016, 0x00080008, 0x00080005, 0x0008103E
_SAMPLES, _FRAMES, _ROWS, _COLUMNS = 0x00280002, 0x00280008, 0x00280010, 0x00280011
_BITS = 0x00280101
_POSITION, _ORIENTATION, _THICKNESS, _BETWEEN = 0x00200032, 0x00200037, 0x00180050, 0x00180088
_REGIONS = 0x00186011
_MANUFACTURER, _MODEL = 0x00080070, 0x00081090

_TAGS = sorted({
    *_TEXTS.values(), *_INTEGERS.values(), *_ACQUISITION.values(), *_SPACINGS.values(), *_CAPTURE_DEVICE,
    *_LATERALITY, *(tag for tag, _ in _NUMBERS.values()), _SOP_CLASS, _IMAGE_TYPE, _CHARSET, _DESCRIPTION, _SAMPLES,
    _FRAMES, _ROWS, _COLUMNS, _BITS, _POSITION, _ORIENTATION, _THICKNESS, _BETWEEN, _REGIONS,
    _MANUFACTURER, _MODEL, *TOP_LEVEL,
})
# fmt: on


@dataclass(frozen=True, slots=True)
class HeaderSettings:
    """How headers are judged.

    Attributes:
        max_frames: an object with more is ``over_budget``.
        max_inflated: bytes that a deflated dataset may have.
        dose: RT Dose objects count as images.
    """

    max_frames: int
    max_inflated: int
    dose: bool = False


def read_header(file: BinaryIO, source: SourceFile, settings: HeaderSettings) -> Header:
    """Reads the header of a file; one that cannot be parsed gives a header with a problem, never an exception.

    Args:
        file: seekable, at its start; ``source.size`` bytes.
        source: what it is called.
    """
    try:
        parsed = parse_dicom(file, tags=_TAGS, max_inflated=settings.max_inflated, size=source.size)
        return _header(parsed, source, settings, _is_cut(parsed, file, source))
    except SampleError as error:
        return Header(source, problem=error.reason, detail=error.detail)
    except MemoryError:
        return Header(source, problem=Reason.OUT_OF_MEMORY)
    except OSError as error:
        return Header(source, problem=Reason.UNREADABLE, detail=str(error.strerror))
    except Exception as error:
        # Whatever a hostile file makes a parser run into is one failed row, not a lost build.
        return Header(source, problem=Reason.CORRUPT, detail=type(error).__name__)


def _header(parsed: Parsed, source: SourceFile, settings: HeaderSettings, cut: bool) -> Header:
    values = Values(parsed.dataset)
    plain: dict[str, Any] = {name: values.text(tag) for name, tag in _TEXTS.items()}
    plain |= {name: values.integer(tag) for name, tag in _INTEGERS.items()}
    plain |= {name: values.number(tag, code) for name, (tag, code) in _NUMBERS.items()}
    sop_class = values.text(_SOP_CLASS) or parsed.media_sop_class
    kind = object_kind(sop_class, plain["modality"])
    frames = max(1, values.integer(_FRAMES) or 1)
    problem, detail = _problem(parsed, kind, frames, settings)
    image_type = values.texts(_IMAGE_TYPE)
    spacing, spacing_source = _spacing(values)
    return Header(
        source,
        kind=kind,
        problem=problem,
        detail=detail,
        flags=parsed.flags,
        sop_class=sop_class,
        transfer_syntax=parsed.transfer_syntax,
        image_type=image_type,
        rows=values.integer(_ROWS, "US") or 0,
        columns=values.integer(_COLUMNS, "US") or 0,
        frames=frames,
        samples=values.integer(_SAMPLES, "US") or 1,
        bits=values.integer(_BITS, "US") or 0,
        cut=cut,
        position=cast("Vector | None", values.vector(_POSITION, 3)),
        orientation=cast("Directions | None", values.vector(_ORIENTATION, 6)),
        spacing=spacing,
        spacing_source=spacing_source,
        slice_thickness=shared_number(values, _MEASURES, _THICKNESS),
        spacing_between_slices=shared_number(values, _MEASURES, _BETWEEN),
        laterality=next(filter(None, map(values.text, _LATERALITY)), ""),
        capture_device=any(map(values.has, _CAPTURE_DEVICE)),
        capture_words=speaks_of_capture((values.text(_DESCRIPTION), *image_type)),
        regions=ultrasound_regions(parsed.dataset),
        acquisition=Acquisition(
            manufacturer=values.text(_MANUFACTURER),
            model=values.text(_MODEL),
            **{name: values.number(tag) for name, tag in _ACQUISITION.items()},
        ),
        places=frame_places(values, frames) if problem is None else (),
        referenced=referenced_instances(values) if kind == "segmentation" else (),
        **plain,
    )


def _problem(parsed: Parsed, kind: str, frames: int, settings: HeaderSettings) -> tuple[Reason | None, str]:
    if kind not in ("image", "segmentation") and not (settings.dose and kind == "dose"):
        return Reason.NOT_A_PICTURE, kind
    if parsed.pixels is None:
        if parsed.problem is not None:
            return parsed.problem, "before any pixel data"
        return Reason.NO_PIXELS, "no pixel data"
    if frames > settings.max_frames:
        return Reason.OVER_BUDGET, f"{frames} frames, {settings.max_frames} allowed"
    return None, ""


def _is_cut(parsed: Parsed, file: BinaryIO, source: SourceFile) -> bool:
    """Whether pixel data end early: native data beyond the file's end, encapsulated data without their delimiter.

    Only a hint: what is missing inside, a decoder will tell.
    """
    pixels = parsed.pixels
    if pixels is None or parsed.transfer_syntax in DEFLATED_DATASETS:
        return False
    if pixels.length is not None:
        return pixels.start + pixels.length > source.size
    if is_member(source.path):
        # Its end is not at hand without unpacking all of it.
        return False
    file.seek(max(pixels.start, source.size - _TAIL))
    return _DELIMITER not in file.read(_TAIL)


def _spacing(values: Values) -> tuple[tuple[float, float] | None, str | None]:
    """As PS3.3 10.7.1 has it: calibrated, at the detector, nominal; else of the first ultrasound region."""
    measures = values.first(SHARED, _MEASURES) or values.first(PER_FRAME, _MEASURES)
    candidates = [] if measures is None else [("pixel_spacing", measures.vector(0x00280030, 2))]
    candidates += [(name, values.vector(tag, 2)) for name, tag in _SPACINGS.items()]
    for region in values.items(_REGIONS):
        if region.integer(0x00186024, "US") == region.integer(0x00186026, "US") == _CENTIMETRES:
            columns, rows = region.number(0x0018602C, "FD"), region.number(0x0018602E, "FD")
            if columns and rows:
                candidates.append(("ultrasound_region", (abs(rows) * 10, abs(columns) * 10)))
                break
    for name, found in candidates:
        if found is not None and min(found) > 0:
            return (found[0], found[1]), name
    return None, None
