"""The canvas on which the frames of an animation are drawn one after the other (GIF89a, APNG 1.0, RFC 9649)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shardforge.codecs.samples import Array
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason

Disposal = Literal["keep", "clear", "restore"]


@dataclass(frozen=True)
class FrameRule:
    """Where a frame lies and how it is drawn.

    Attributes:
        left, top, width, height: its place on the canvas, in pixels.
        blend: it is drawn over what is there; otherwise it replaces it, transparency included.
        disposal: what becomes of its place before the next frame is drawn: it stays, is made transparent, or gets
            back what was there before.
    """

    left: int
    top: int
    width: int
    height: int
    blend: bool
    disposal: Disposal

    def covers(self, width: int, height: int) -> bool:
        """Whether it fills the canvas."""
        return (self.left, self.top, self.width, self.height) == (0, 0, width, height)


def draw_frames(
    rules: Sequence[FrameRule],
    pixels: Callable[[int], Array],
    width: int,
    height: int,
    wanted: int,
    dtype: type[np.uint8] | type[np.uint16] = np.uint8,
) -> Array:
    """The canvas as it looks while a frame is shown. It begins transparent.

    Frames of which nothing is left to be seen are not decoded.

    Args:
        rules: one for each frame, at least up to the one that is wanted.
        pixels: decodes a frame: [h, w, 4] of ``dtype``, straight alpha.
        wanted: number of the frame.
        dtype: of the canvas.

    Returns:
        [height, width, 4], straight alpha.

    Raises:
        SampleError: ``bad_header`` for a frame that is empty or lies outside the canvas; what ``pixels`` raises.
    """
    canvas: Array = np.zeros((height, width, 4), dtype)
    for number in range(_first_needed(rules, width, height, wanted), wanted + 1):
        rule = rules[number]
        if number < wanted and rule.disposal == "restore":
            continue
        _check(rule, width, height)
        place = canvas[rule.top : rule.top + rule.height, rule.left : rule.left + rule.width]
        if number < wanted and rule.disposal == "clear":
            place[:] = 0
        else:
            frame = pixels(number)
            place[:] = over(frame, place) if rule.blend else frame
    return canvas


def _first_needed(rules: Sequence[FrameRule], width: int, height: int, wanted: int) -> int:
    """The latest frame from which on the canvas depends on no earlier one."""
    for number in range(wanted, 0, -1):
        rule, before = rules[number], rules[number - 1]
        stays = number == wanted or rule.disposal != "restore"
        if rule.covers(width, height) and not rule.blend and stays:
            return number
        if before.covers(width, height) and before.disposal == "clear":
            return number
    return 0


def _check(rule: FrameRule, width: int, height: int) -> None:
    inside = 0 <= rule.left <= width - rule.width and 0 <= rule.top <= height - rule.height
    if not inside or rule.width < 1 or rule.height < 1:
        raise SampleError(Reason.BAD_HEADER, "a frame is empty or lies outside the canvas")


def over(front: Array, back: Array) -> Array:
    """One picture over another, straight alpha, rounded (Porter and Duff 1984).

    Args:
        front, back: uint8 or uint16 [h, w, 4].
    """
    white = np.iinfo(front.dtype).max
    opacity = front[..., 3:]
    simple = np.where(opacity == 0, back, front)
    partial = (opacity[..., 0] > 0) & (opacity[..., 0] < white)
    if partial.any():
        a, b = front[partial].astype(np.float64), back[partial].astype(np.float64)
        behind = b[:, 3:] * (1 - a[:, 3:] / white)
        alpha = a[:, 3:] + behind
        mixed = np.concatenate([(a[:, :3] * a[:, 3:] + b[:, :3] * behind) / alpha, alpha], axis=1)
        simple[partial] = np.floor(mixed + 0.5).astype(front.dtype)
    return simple
