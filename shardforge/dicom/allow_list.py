"""Which DICOM attributes may become columns, and which of their values: everything that is not named here stays out.

Names, dates, identifiers, descriptions and comments are nowhere on the list; identifiers come as keyed hashes
(:mod:`shardforge.dicom.privacy`), dates as days (:mod:`shardforge.dicom.day_offset`). Age, sex, size and weight are
left out as in the basic profile of PS3.15 annex E, with which no conformance is claimed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from shardforge.dicom.vocabulary import CODES, words
from shardforge.errors import UsageError

PROFILE = "shardforge-allow-list-1"
"""The name of this list, for manifests."""

OTHER = "OTHER"
"""Stands for a code that is none of the known words."""

NUMBERS = words(
    # Geometry.
    "Rows Columns NumberOfFrames PixelSpacing ImagerPixelSpacing NominalScannedPixelSpacing PixelAspectRatio "
    "ImagePositionPatient ImageOrientationPatient SliceLocation SliceThickness SpacingBetweenSlices "
    "GantryDetectorTilt ReconstructionDiameter DataCollectionDiameter DistanceSourceToDetector "
    "DistanceSourceToPatient TableHeight "
    "EstimatedRadiographicMagnificationFactor PositionerPrimaryAngle PositionerSecondaryAngle FieldOfViewDimensions "
    # Pixels.
    "SamplesPerPixel BitsAllocated BitsStored HighBit PixelRepresentation PlanarConfiguration PixelPaddingValue "
    "PixelPaddingRangeLimit RescaleSlope RescaleIntercept WindowCenter WindowWidth LossyImageCompressionRatio "
    # Order.
    "SeriesNumber AcquisitionNumber InstanceNumber TemporalPositionIdentifier NumberOfTemporalPositions EchoNumbers "
    "ImagesInAcquisition CardiacNumberOfImages TriggerTime FrameTime CineRate ActualFrameDuration "
    # X-ray and CT.
    "KVP XRayTubeCurrent XRayTubeCurrentInuA Exposure ExposureInuAs ExposureTime ExposureTimeInuS CTDIvol "
    "SpiralPitchFactor SingleCollimationWidth TotalCollimationWidth RevolutionTime TableSpeed TableFeedPerRotation "
    "BodyPartThickness CompressionForce RelativeXRayExposure ExposureIndex TargetExposureIndex DeviationIndex "
    "OrganDose EntranceDoseInmGy FilterThicknessMinimum FilterThicknessMaximum "
    # MR.
    "MagneticFieldStrength RepetitionTime EchoTime InversionTime FlipAngle EchoTrainLength NumberOfAverages "
    "ImagingFrequency PixelBandwidth PercentSampling PercentPhaseFieldOfView NumberOfPhaseEncodingSteps "
    "AcquisitionMatrix DiffusionBValue SAR "
    # Nuclear medicine and ultrasound.
    "NumberOfSlices DecayFactor DoseCalibrationFactor FrameReferenceTime SliceSensitivityFactor "
    "MechanicalIndex BoneThermalIndex CranialThermalIndex SoftTissueThermalIndex DepthOfScanField"
)
"""Attributes whose values are numbers, each or several."""

STANDARD_UIDS = frozenset(("SOPClassUID", "TransferSyntaxUID"))
"""Attributes whose values are UIDs that the standard itself assigns."""

ALLOWED = NUMBERS | STANDARD_UIDS | CODES.keys()

_STANDARD_UID = re.compile(r"1\.2\.840\.10008(\.(0|[1-9]\d*)){1,12}", re.ASCII)

Plain = str | int | float


def check_allowed(keywords: Iterable[str]) -> None:
    """Refuses attributes (by PS3.6 keyword) that may not become columns.

    Raises:
        UsageError: naming them all.
    """
    refused = sorted({keyword for keyword in keywords if keyword not in ALLOWED})
    if refused:
        raise UsageError(
            f"{', '.join(refused)}: may tell who a patient is, or is no attribute known to be harmless",
            todo="Leave it out; --keep-identifiers lifts this for data that may be identified.",
        )


def allowed_values(keyword: str, values: Iterable[object]) -> tuple[Plain | None, ...]:
    """What an allowed attribute's values may contribute to a column.

    Numbers must be finite (int stays int, everything else becomes float); codes must be known words (upper case,
    spaces as underscores or left out), others are ``OTHER``; UIDs must be ones that the standard assigns.
    Whatever else stands in the file (text in a number's place, a vendor's or a person's UID) is None.

    Args:
        values: one or several, as a DICOM parser gives them: str, int, float or numbers derived from these.

    Raises:
        UsageError: the attribute is not on the list.
    """
    check_allowed((keyword,))
    if keyword in NUMBERS:
        return tuple(_number(value) for value in values)
    if keyword in STANDARD_UIDS:
        return tuple(text if _STANDARD_UID.fullmatch(text := _text(value)) else None for value in values)
    return tuple(_code(keyword, value) for value in values)


def _text(value: object) -> str:
    return str(value).strip(" \0")


def _number(value: object) -> int | float | None:
    if isinstance(value, int):
        return int(value)
    try:
        number = float(value if isinstance(value, float) else _text(value))
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _code(keyword: str, value: object) -> str | None:
    word = _text(value).upper().replace(" ", "_")
    if not word:
        return None
    known = (spelt for spelt in (word, word.replace("_", "")) if spelt in CODES[keyword])
    return next(known, OTHER)
