"""Which window or VOI table each requested window means for one frame, and where it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardforge.dicom.facts import FrameMeaning, Lut, VoiFunction, Window
from shardforge.dicom.padding import valid_values
from shardforge.dicom.voi import Voi, defined
from shardforge.dicom.windows import FromHeader, Given, Percentiles, Request, VoiChoice, function_of, window_of
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason


@dataclass(frozen=True)
class Choice:
    """What one requested window means for one frame.

    Attributes:
        voi: the window, its function defined, or the table.
        source: ``user``, ``preset:NAME``, ``percentile``, ``lut`` (a table of the header), ``identity`` (grey levels
            as they are), or where the header's window stands: ``frame``, ``shared`` or ``top``.
        flags: what has to be noted of the sample.
    """

    voi: Voi
    source: str
    flags: tuple[Flag, ...] = ()

    @property
    def center(self) -> float | None:
        """Of the window, in modality values; None for a table."""
        return self.voi.center if isinstance(self.voi, Window) else None

    @property
    def width(self) -> float | None:
        """As :attr:`center`."""
        return self.voi.width if isinstance(self.voi, Window) else None

    @property
    def function(self) -> VoiFunction | None:
        """As :attr:`center`."""
        return self.voi.function if isinstance(self.voi, Window) else None


def choose(
    requests: Sequence[Request],
    meaning: FrameMeaning,
    values: NDArray[Any],
    mask: NDArray[np.bool_] | None,
    *,
    function: VoiChoice = "auto",
    nonzero: bool = False,
    shown_bits: int | None = None,
) -> tuple[Choice, ...]:
    """Resolves requested windows for one frame.

    A window that the user gives counts as it is. ``header`` means the header's VOI tables, then its windows (which
    are per frame, shared or top-level, as the reader resolved them). Where the header has none at all, values that
    are grey levels already are shown as they are (``shown_bits``); of others the range between the default
    `Percentiles` is, flagged ``NO_WINDOW``.

    Args:
        values: modality values of the frame, looked at only where percentiles are needed.
        mask: True at padding, of the same shape; or None.
        function: forced on every window; VOI tables are no windows and stay. ``auto``: a window of the header keeps
            its own, percentiles are the ends of LINEAR_EXACT, all others are LINEAR.
        nonzero: percentiles leave out zeros too (the background of MR).
        shown_bits: the values are grey levels of so many bits, as of ultrasound; None: they are measured values.

    Raises:
        SampleError: ``unsupported`` where the header has windows or tables, but not as many as ``header:N`` asks for.
    """
    return tuple(_choose(request, meaning, values, mask, function, nonzero, shown_bits) for request in requests)


def _choose(
    request: Request,
    meaning: FrameMeaning,
    values: NDArray[Any],
    mask: NDArray[np.bool_] | None,
    function: VoiChoice,
    nonzero: bool,
    shown_bits: int | None,
) -> Choice:
    if isinstance(request, Given):
        source = "user" if request.preset is None else f"preset:{request.preset}"
        return _window(window_of(request, function), source)
    if isinstance(request, FromHeader):
        alternatives: tuple[Voi, ...] = (*meaning.voi_luts, *meaning.windows)
        if request.alternative <= len(alternatives):
            found = alternatives[request.alternative - 1]
            if isinstance(found, Lut):
                return Choice(found, "lut")
            forced = Window(found.center, found.width, function_of(function, found.function))
            return _window(forced, meaning.voi_from)
        if alternatives:
            usable = "1 usable window or table" if len(alternatives) == 1 else f"{len(alternatives)} usable ones"
            raise SampleError(Reason.UNSUPPORTED, f"header:{request.alternative}, and the header has {usable}")
        if shown_bits is not None:
            # LINEAR over the whole range is the identity (PS3.3 C.11.2.1.2.1, note 4).
            return Choice(Window(float(1 << (shown_bits - 1)), float(1 << shown_bits)), "identity")
        window = percentile_window(values, mask, function=function, nonzero=nonzero)
        return _window(window, "percentile", Flag.NO_WINDOW)
    window = percentile_window(values, mask, request, function=function, nonzero=nonzero)
    return _window(window, "percentile")


def _window(window: Window, source: str, *flags: Flag) -> Choice:
    usable = defined(window)
    return Choice(usable, source, flags if usable == window else (*flags, Flag.WIDTH_BELOW_1))


def percentile_window(
    values: NDArray[Any],
    mask: NDArray[np.bool_] | None,
    percentiles: Percentiles | None = None,
    *,
    function: VoiChoice = "auto",
    nonzero: bool = False,
) -> Window:
    """The window between two percentiles of the valid modality values (linear between ranks).

    One grey value, or none: the window begins at it (at 0) and is 1 wide.
    """
    asked = Percentiles() if percentiles is None else percentiles
    valid = valid_values(values, mask)
    if nonzero:
        valid = valid[valid != 0]
    if not valid.size:
        valid = np.zeros(1)
    low, high = _percentiles(valid, asked)
    width = high - low if high > low else 1.0
    return Window(low + width / 2, width, function_of(function, "LINEAR_EXACT"))


def _percentiles(valid: NDArray[Any], asked: Percentiles) -> tuple[float, float]:
    """As ``np.percentile`` in float64, without sorting or converting all values."""
    last = valid.size - 1
    ranks = [last * percent / 100 for percent in (asked.low, asked.high)]
    places = [(int(rank), min(int(rank) + 1, last)) for rank in ranks]
    ordered = np.partition(valid, sorted({place for pair in places for place in pair}))
    low, high = (
        float(ordered[below]) + (float(ordered[above]) - float(ordered[below])) * (rank - below)
        for rank, (below, above) in zip(ranks, places, strict=True)
    )
    return low, high
