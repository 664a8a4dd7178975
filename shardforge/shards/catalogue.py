"""The fixed words of the format: what became of an item, why, and what was noticed on the way."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """What became of a planned item. The four add up to the number of planned items, always."""

    SUCCESS = "success"
    FAILED = "failed"
    FILTERED = "filtered"
    """The recipe excluded it."""
    SKIPPED = "skipped"
    """Legal, but not an image at all."""


class Reason(StrEnum):
    """Why an item is not a success."""

    UNREADABLE = "unreadable"
    """The file cannot be opened or read."""
    MISSING_FILE = "missing_file"
    """A table or label list names a file that does not exist."""
    MISSING_LABEL = "missing_label"
    """The dataset is labelled, this item is not."""
    MISSING_FIELD = "missing_field"
    """A field the recipe requires is absent."""
    BAD_LABEL = "bad_label"
    """The label does not fit the dataset's kind of label (a word among numbers, an unknown class)."""
    BAD_SIDECAR = "bad_sidecar"
    """A sidecar (json, txt, npy) does not hold what its name says."""
    BAD_KEY = "bad_key"
    """The user's own key is not a legal key."""
    DUPLICATE_KEY = "duplicate_key"
    """An earlier item already has this key."""
    OUTSIDE_SOURCE = "outside_source"
    """The path leads out of the source folder."""
    CHANGED = "changed"
    """The file is no longer the one that was planned."""
    EMPTY = "empty"
    """The file has no bytes."""
    NOT_AN_IMAGE = "not_an_image"
    """The content is no known image format, whatever the name says."""
    UNSUPPORTED = "unsupported"
    """A known format or variant that cannot be decoded here."""
    TRUNCATED = "truncated"
    """The file ends before the picture does."""
    CORRUPT = "corrupt"
    """The content contradicts itself."""
    BAD_HEADER = "bad_header"
    """Impossible geometry or parameters in the header."""
    SUSPECT = "suspect"
    """``--strict``: the file would be kept with the flag ``suspect``."""
    SEVERAL_FRAMES = "several_frames"
    """``--frames reject``: more than one frame or page."""
    OVER_BUDGET = "over_budget"
    """More pixels, frames or bytes than the limits allow; judged before decoding."""
    WRONG_FORMAT = "wrong_format"
    """``--format keep``: the content is not the dataset's image format."""
    TOO_SMALL = "too_small"
    """``--resize exact`` would have to enlarge, and ``--enlarge`` was not given."""
    NEEDS_REENCODING = "needs_reencoding"
    """``--reencode never``: the file cannot be stored as it is."""
    MASK_MISMATCH = "mask_mismatch"
    """The mask's size differs from the image's."""
    BAD_ANNOTATION = "bad_annotation"
    """A box or keypoint is malformed, not finite, without area, or outside the image."""
    FILTERED_SIDE = "filtered_side"
    """``min_side`` or ``max_side`` excludes it."""
    FILTERED_AREA = "filtered_area"
    """``min_area`` or ``max_area`` excludes it."""
    FILTERED_ASPECT = "filtered_aspect"
    """``min_aspect`` or ``max_aspect`` excludes it."""
    FILTERED_WHERE = "filtered_where"
    """The recipe's ``where`` is not true for its row of the table."""
    DUPLICATE = "duplicate"
    """``duplicates: first``: the file is identical with that of the item that ``duplicate_of`` names."""
    DECODER_CRASH = "decoder_crash"
    """The process died on this item, twice, the second time alone."""
    TIMEOUT = "timeout"
    """More CPU time than the limit, twice, the second time alone."""
    OUT_OF_MEMORY = "out_of_memory"
    """More memory than the limit, twice, the second time alone."""


FILTERS = frozenset(
    (
        Reason.FILTERED_SIDE,
        Reason.FILTERED_AREA,
        Reason.FILTERED_ASPECT,
        Reason.FILTERED_WHERE,
        Reason.DUPLICATE,
    )
)
"""The reasons of items that the recipe excludes."""


def status_of(reason: Reason) -> Status:
    """``filtered`` or ``failed``: what an item becomes for this reason."""
    return Status.FILTERED if reason in FILTERS else Status.FAILED


class Flag(StrEnum):
    """What was noticed about a sample that is kept."""

    SUSPECT = "suspect"
    """Kept, but the decoder had something to say."""
    MISSING_EOI = "missing_eoi"
    """A JPEG without its end marker; the picture is complete."""
    EXTRANEOUS_BYTES = "extraneous_bytes"
    """Bytes between JPEG segments that belong to none."""
    CORRUPT_DATA = "corrupt_data"
    """A decoder warned about the entropy-coded data."""
    PNG_MISSING_IEND = "png_missing_iend"
    ICC_UNREADABLE = "icc_unreadable"
    """The colour profile cannot be used; sRGB assumed."""
    ICC_MISMATCH = "icc_mismatch"
    """The colour profile is for another kind of pixel; ignored."""
    ICC_CONVERTED = "icc_converted"
    EXIF_UNREADABLE = "exif_unreadable"
    """Orientation could not be read; none applied."""
    ORIENTED = "oriented"
    """An orientation was applied."""
    ALPHA_COMPOSITED = "alpha_composited"
    DEPTH_REDUCED = "depth_reduced"
    """More than 8 bits per channel were scaled to 8."""
    DEPTH_RAISED = "depth_raised"
    """Fewer than 16 bits per channel were scaled to 16."""
    RANGE_STRETCHED = "range_stretched"
    """Samples without a white of their own (float, signed, over 16 bits): stretched from least to most."""
    CMYK_ASSUMED_INVERTED = "cmyk_assumed_inverted"
    """CMYK without an Adobe marker: the sense of the values is a guess."""
    FIRST_FRAME = "first_frame"
    """Several frames or pages; the first was taken."""
    FRAME = "frame"
    """One of several frames or pages, each of which is a sample."""
    PASSED_THROUGH = "passed_through"
    """The stored image is the source's own encoding, without its metadata."""
    EXTENSION_MISMATCH = "extension_mismatch"
    """The name says one format, the content another; the content counts."""
