"""The calibrated regions that an ultrasound image declares (PS3.3 C.8.5.5)."""

from __future__ import annotations

from pydicom.dataset import Dataset

from shardforge.codecs.dicom.values import items, numbers
from shardforge.dicom.ultrasound_crop import UltrasoundRegion

_REGIONS, _FORMAT, _DATA_TYPE = 0x00186011, 0x00186012, 0x00186014
_BOUNDS = (0x00186018, 0x0018601A, 0x0018601C, 0x0018601E)


def ultrasound_regions(dataset: Dataset) -> tuple[UltrasoundRegion, ...]:
    """SequenceOfUltrasoundRegions, without items whose bounds cannot be read."""
    found = []
    for region in items(dataset, _REGIONS):
        bounds = [numbers(region, tag, "UL").first for tag in _BOUNDS]
        format_, kind = (numbers(region, tag, "US").first for tag in (_FORMAT, _DATA_TYPE))
        if None not in bounds:
            left, top, right, bottom = (int(bound or 0) for bound in bounds)
            found.append(UltrasoundRegion(left, top, right, bottom, int(format_ or 0), int(kind or 0)))
    return tuple(found)
