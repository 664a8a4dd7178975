"""What the tags at the top of a dataset tell of it: whether they can be a dataset's at all, and whether an image's
header ends before it is complete."""

from __future__ import annotations

from shardforge.codecs.dicom.sop_classes import is_image_storage
from shardforge.shards.catalogue import Reason

MOST_ELEMENTS = 1 << 16
"""Elements at the top level of a dataset. Real ones have some hundreds."""
MOST_DISORDER = 4096
"""Tags that do not ascend. They have to (PS3.5 7.1), but exporters append or repeat an element now and then."""

# Type 1 in the Image Pixel module (PS3.3 C.7.6.3).
_PIXEL_MODULE = frozenset(
    (0x00280002, 0x00280004, 0x00280010, 0x00280011, 0x00280100, 0x00280101, 0x00280102, 0x00280103)
)


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
        if tag in _PIXEL_MODULE:
            self._seen.add(tag)
        if tag >> 16 == 0 or self._disorder > MOST_DISORDER:
            return Reason.CORRUPT
        return Reason.OVER_BUDGET if self._count > MOST_ELEMENTS else None

    def breaks_off(self, sop_class: str) -> bool:
        """Whether these are the first elements of an image object: the Image Pixel module is there in part.

        Other cuts between two elements leave no trace: headers without the module are exported on purpose, too.
        """
        return is_image_storage(sop_class) and 0 < len(self._seen) < len(_PIXEL_MODULE)
