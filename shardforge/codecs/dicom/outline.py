"""What the tags at the top of a dataset tell of it: whether they can be a dataset's at all, and whether an image's
header ends before it is complete."""

from __future__ import annotations

from shardforge.codecs.dicom.sop_classes import is_image_storage
from shardforge.shards.catalogue import Reason

MOST_ELEMENTS = 1 << 16
"""Elements at the top level of a dataset. Real ones have some hundreds."""
MOST_DISORDER = 100
"""Tags that do not ascend. They have to (PS3.5 7.1), but exporters append or repeat an element now and then."""

# Type 1 in every image object: SOP class and instance, Modality, study, series.
_IDENTITY = (0x00080016, 0x00080018, 0x00080060, 0x0020000D, 0x0020000E)
# Type 1 in the Image Pixel module (PS3.3 C.7.6.3).
_PIXEL_MODULE = (
    *(0x00280002, 0x00280004, 0x00280010, 0x00280011),
    *(0x00280100, 0x00280101, 0x00280102, 0x00280103),
)
_REQUIRED = frozenset((*_IDENTITY, *_PIXEL_MODULE))


class Outline:
    """Follows the tags of one dataset, the elements of its sequences apart."""

    def __init__(self) -> None:
        self._last, self._count, self._disorder = -1, 0, 0
        self._seen: set[int] = set()

    @property
    def count(self) -> int:
        """Elements so far."""
        return self._count

    def follow(self, tag: int) -> Reason | None:
        """Takes the next tag.

        Returns:
            ``corrupt`` where this is no dataset (group 0000 belongs to messages, PS3.7 6.3; zeros read as empty
            elements of it), ``over_budget`` where it has too many elements to read on; else None.
        """
        self._count += 1
        if tag <= self._last:
            self._disorder += 1
        self._last = tag
        if tag in _REQUIRED:
            self._seen.add(tag)
        if tag >> 16 == 0 or self._disorder > MOST_DISORDER:
            return Reason.CORRUPT
        return Reason.OVER_BUDGET if self._count > MOST_ELEMENTS else None

    def breaks_off(self, sop_class: str) -> bool:
        """Whether these are the first elements of an image object rather than all of an object without pixels.

        A cut between two elements leaves no other trace than these: the Image Pixel module is there in part; or not
        at all, though what an image has to have before the last tag is there, the SOP class at least.
        """
        if not is_image_storage(sop_class):
            return False
        stated = self._seen.intersection(_PIXEL_MODULE)
        if stated:
            return len(stated) < len(_PIXEL_MODULE)
        before = {tag for tag in _REQUIRED if tag <= self._last}
        return bool(before) and before == self._seen
