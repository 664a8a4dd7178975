"""The flags of ``build`` that go into its recipe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from shardforge.cli.single_option import option

Command = TypeVar("Command", bound=Callable[..., Any])

_IMAGES = (
    option("--recipe", metavar="FILE|NAME", help="A YAML file, or the name of a ready recipe."),
    option("--size", metavar="N|WxH", help="Target size in pixels.  [256]"),
    option("--resize", metavar="MODE", help="shortest, longest, exact, pad or none.  [shortest]"),
    option("--resampler", metavar="FILTER", help="lanczos, bicubic, bilinear or box, antialiased.  [lanczos]"),
    option("--enlarge", is_flag=True, default=None, help="Allow images to grow."),
    option("--kind", metavar="KIND", help="images or dicom.  [what most files are]"),
    option("--channels", type=int, metavar="1|3", help="Grey or RGB.  [3; DICOM: one per window]"),
    option("--format", metavar="FORMAT", help="jpg, png, webp, npy or keep.  [jpg]"),
    option("--reencode", metavar="WHEN", help="auto, always or never: files that could stay as they are.  [auto]"),
    option("--quality", type=int, metavar="N", help="Of jpg and webp, 1 to 100.  [95]"),
    option("--subsampling", metavar="420|444", help="Of jpg.  [420]"),
    option("--depth", type=int, metavar="8|16", help="Bits per stored sample; 16 with png or npy.  [8]"),
    option("--frames", metavar="POLICY", help="Of several frames or pages: first, all or reject.  [first]"),
    option("--strict", is_flag=True, help="Fail suspect files instead of keeping them, flagged."),
    option("--keep-suspect", is_flag=True, help="Keep JPEGs with damaged data, flagged, if no part is missing."),
    option("--table", metavar="FILE", help="A csv, tsv, parquet or jsonl file that lists the items."),
    option("--path", metavar="COLUMN", help="The table's column of paths."),
    option("--label", metavar="COLUMN", multiple=True, help="The table's column of labels; may be repeated."),
    option("--label-kind", metavar="KIND", help="class, multi, number or none.  [auto]"),
    option("--label-separator", metavar="TEXT", help="Between several classes in one cell."),
    option("--caption", metavar="COLUMN", help="The table's column of captions."),
    option("--mask", metavar="COLUMN", help="The table's column of mask files."),
    option(
        "--mask-frame", metavar="FRAME", help="Masks lie over upright pictures, or over stored pixels.  [upright]"
    ),
    option("--boxes", metavar="COLUMN:FORMAT", help="Boxes as xyxy, xywh or cxcywh, such as bbox:xywh."),
    option("--keypoints", metavar="COLUMN:FORMAT", help="Points as xy or xyv, such as points:xyv."),
    option("--min-side", type=int, metavar="N", help="Filter images whose shorter side has fewer pixels."),
    option("--max-side", type=int, metavar="N", help="Filter images whose longer side has more pixels."),
    option("--where", metavar="EXPR", help='Keep only rows for which this is true, such as "age >= 18".'),
    option("--dedup", metavar="HOW", help="none, or bytes: identical files stay in one split.  [none]"),
    option("--duplicates", metavar="WHAT", help="Of identical files keep all, or the first.  [keep]"),
    option("--group", metavar="COLUMN", help="The column whose equal values stay in one split (a patient, say)."),
    option("--split", metavar="SHARES", help="Such as train=0.9,val=0.1.  [all in train]"),
    option("--split-by", metavar="HOW", help="source, hash or stratified.  [source, or else hash]"),
    option("--split-column", metavar="COLUMN", help="The table's column of splits."),
    option("--split-from", metavar="DATASET", help="Keep the assignment of a dataset split by stratified."),
    option("--shard-size", metavar="BYTES", help="Target size of a shard.  [256MiB]"),
    option("--shard-samples", type=int, metavar="N", help="At most so many items per shard.  [10000]"),
    option("--no-shuffle", "shuffle", flag_value=False, type=bool, default=None, help="Keep the sorted order."),
    option("--seed", type=int, metavar="N", help="Of splitting and shuffling.  [0]"),
    option("--keys", metavar="HOW", help="index, stem or column:NAME.  [index]"),
    option("--follow-symlinks", is_flag=True, default=None, help="Follow links that leave SRC."),
)
_DICOM = (
    option("--unit", metavar="UNIT", help="DICOM: a sample is a slice, frame, stack or volume.  [slice]"),
    option("--neighbours", type=int, metavar="N", help="DICOM: slices on each side of a stack's own.  [1]"),
    option("--window", metavar="W[,W…]", help="DICOM: lung, 40/400, header, percentile, none; see windows."),
    option("--voi", metavar="FUNCTION", help="DICOM: auto, linear, linear_exact or sigmoid.  [auto]"),
    option("--values", metavar="DTYPE", help="DICOM: int16 or float32 modality values.  [int16]"),
    option("--spacing", metavar="MM|ZxYxX", help="DICOM: resample volumes to this spacing."),
    option("--irregular", metavar="POLICY", help="DICOM: fail or keep volumes with gaps or tilt.  [fail]"),
    option("--crop", metavar="WHAT", help="DICOM: none, breast or ultrasound.  [none]"),
    option("--group-by", metavar="WHAT", help="DICOM: patient, study, series or none.  [patient]"),
    option("--burned-in", metavar="POLICY", help="DICOM: quarantine, crop or keep burned-in text.  [quarantine]"),
    option("--truncated", metavar="POLICY", help="DICOM: refuse or salvage short pixel data.  [refuse]"),
    option("--repair", metavar="WHAT", help="DICOM: none, or wrapped (12-bit CT values).  [none]"),
    option(
        "--no-segmentations",
        "segmentations",
        flag_value=False,
        type=bool,
        default=None,
        help="DICOM: make no masks of segmentation objects.",
    ),
    option("--label-key", metavar="KEY", help="DICOM: sop, series, study, patient, slice or path.  [found]"),
    option("--columns", metavar="NAME[,NAME…]", help="DICOM: the table's columns to take over.  [none]"),
    option("--first-slice", type=int, metavar="0|1", help="DICOM: what the table calls the first slice.  [0]"),
    option("--uncertain", metavar="MEANING", help="DICOM: -1 means ignore, keep, positive or negative."),
    option("--cross-check", type=int, metavar="N", help="DICOM: decode N items twice and compare.  [0]"),
    option(
        "--keep-identifiers",
        "identifiers",
        flag_value="keep",
        default=None,
        help="DICOM: keep patient and file names as they are.",
    ),
    option("--key-file", metavar="FILE", help="DICOM: the secret key that identifiers are hashed with."),
    option(
        "--private-map", is_flag=True, default=None, help="DICOM: write beside the key what each hash stands for."
    ),
)
_RUN = (
    option("--workers", type=int, metavar="N", help="Processes.  [one per processor]"),
    option("--max-errors", metavar="N|P%", help="Stop beyond so many failures.  [beyond 1% and 10]"),
    option("--overwrite", is_flag=True, default=None, help="Remove what an earlier build left in OUT, start anew."),
)


def build_flags(command: Command) -> Command:
    """Gives a command the flags."""
    for flag in reversed((*_IMAGES, *_DICOM, *_RUN)):
        command = flag(command)
    return command
