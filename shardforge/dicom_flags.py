"""The flags of ``build`` that concern DICOM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_FLAGS = (
    click.option("--unit", metavar="UNIT", help="DICOM: a sample is a slice, frame, stack or volume.  [slice]"),
    click.option("--neighbours", type=int, metavar="N", help="DICOM: slices on each side of a stack's own.  [1]"),
    click.option("--window", metavar="W[,W…]", help="DICOM: lung, 40/400, header, percentile, none; see windows."),
    click.option("--voi", metavar="FUNCTION", help="DICOM: auto, linear, linear_exact or sigmoid.  [auto]"),
    click.option("--values", metavar="DTYPE", help="DICOM: int16 or float32 modality values.  [int16]"),
    click.option("--spacing", metavar="MM|ZxYxX", help="DICOM: resample volumes to this spacing."),
    click.option("--irregular", metavar="POLICY", help="DICOM: fail or keep volumes with gaps or tilt.  [fail]"),
    click.option("--crop", metavar="WHAT", help="DICOM: none, breast or ultrasound.  [none]"),
    click.option("--group-by", metavar="WHAT", help="DICOM: patient, study, series or none.  [patient]"),
    click.option(
        "--burned-in", metavar="POLICY", help="DICOM: quarantine, crop or keep burned-in text.  [quarantine]"
    ),
    click.option("--truncated", metavar="POLICY", help="DICOM: refuse or salvage short pixel data.  [refuse]"),
    click.option("--repair", metavar="WHAT", help="DICOM: none, or wrapped (12-bit CT values).  [none]"),
    click.option(
        "--no-segmentations",
        "segmentations",
        flag_value=False,
        type=bool,
        default=None,
        help="DICOM: make no masks of segmentation objects.",
    ),
    click.option("--label-key", metavar="KEY", help="DICOM: sop, series, study, patient, slice or path.  [found]"),
    click.option("--first-slice", type=int, metavar="0|1", help="DICOM: what the table calls the first slice.  [0]"),
    click.option("--uncertain", metavar="MEANING", help="DICOM: -1 means ignore, keep, positive or negative."),
    click.option("--cross-check", type=int, metavar="N", help="DICOM: decode N items twice and compare.  [0]"),
    click.option(
        "--keep-identifiers",
        "identifiers",
        flag_value="keep",
        default=None,
        help="DICOM: keep patient and file names as they are.",
    ),
    click.option("--key-file", metavar="FILE", help="DICOM: the secret key that identifiers are hashed with."),
    click.option(
        "--private-map", is_flag=True, default=None, help="DICOM: write beside the key what each hash stands for."
    ),
)


def dicom_flags(command: Command) -> Command:
    """Gives a command the flags."""
    for flag in reversed(_FLAGS):
        command = flag(command)
    return command
