"""DICOM windows at training time: modality values → grey levels, the same to the bit as at build time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import torch

from shardforge.dicom.facts import Window as Setting
from shardforge.dicom.voi import brightness, brightness_table, defined, level_table, levels
from shardforge.dicom.windows import Given, VoiChoice, parse_windows, window_of
from shardforge.errors import UsageError

Array = TypeVar("Array", np.ndarray[Any, Any], torch.Tensor)


class Window:
    """Shows modality values (HU) through one or more windows, as channels.

    For datasets built with windows ``none``: as a reader's ``transform`` (NumPy), or on whole batches on the model's
    device (torch). int16 goes through a table; int32 and floats through the formula, in float64.

    Args:
        windows: presets, combinations and CENTER/WIDTH as the build takes them, such as ``"brain,subdural,40/380"``,
            or `shardforge.dicom.facts.Window` objects.
        voi: ``linear`` (also ``auto``), ``linear_exact`` or ``sigmoid``; for windows given as text.
        dtype: ``uint8``, or ``float32`` from 0 to 1, not quantised.
        inverted: the values are of MONOCHROME1 images: high is dark.
        axis: of the channels: -1, or 1 for [N, C, H, W].

    Raises:
        UsageError: no such window, or one that only a file's header or pixels could tell.
    """

    def __init__(
        self,
        windows: str | Sequence[Setting],
        *,
        voi: VoiChoice = "auto",
        dtype: Literal["uint8", "float32"] = "uint8",
        inverted: bool = False,
        axis: int = -1,
    ) -> None:
        self.windows = _resolve(windows, voi)
        if dtype not in ("uint8", "float32"):
            raise UsageError(f"Window with dtype={dtype!r}: uint8 or float32")
        self.dtype, self.inverted, self.axis = dtype, inverted, axis
        make = level_table if dtype == "uint8" else brightness_table
        self._table = np.stack([make(window, inverted=inverted) for window in self.windows])
        self._on: dict[torch.device, torch.Tensor] = {}

    def __call__(self, image: Array) -> Array:
        """int16, int32 or float [..., C, ...] with C at ``axis`` → ``dtype`` [..., C · windows, ...].

        Channels of the result: all windows of the first channel, then of the second, and so on.
        """
        if isinstance(image, torch.Tensor):
            planes = self._planes_torch(image)
            axis = self.axis % image.ndim
            return torch.stack(planes, axis + 1).flatten(axis, axis + 1)
        axis = self.axis % image.ndim
        stacked = np.stack(self._planes(image), axis + 1)
        return stacked.reshape(*image.shape[:axis], -1, *image.shape[axis + 1 :])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_on": {}}

    def __repr__(self) -> str:
        return f"Window({list(self.windows)}, dtype={self.dtype!r}, inverted={self.inverted}, axis={self.axis})"

    def _planes(self, image: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
        if image.dtype == np.int16:
            index = image.astype(np.intp)
            return [table.take(index) for table in self._table]
        if image.dtype.kind != "f" and image.dtype != np.int32:
            raise _wrong_type(image.dtype)
        if self.dtype == "uint8":
            return [levels(image, window, inverted=self.inverted) for window in self.windows]
        return [brightness(image, window, inverted=self.inverted).astype(np.float32) for window in self.windows]

    def _planes_torch(self, image: torch.Tensor) -> list[torch.Tensor]:
        if image.dtype == torch.int16:
            if image.device not in self._on:
                self._on[image.device] = torch.from_numpy(self._table).to(image.device)
            index = (image.int() & 0xFFFF).flatten()
            return [table.index_select(0, index).view(image.shape) for table in self._on[image.device]]
        if not image.dtype.is_floating_point and image.dtype != torch.int32:
            raise _wrong_type(image.dtype)
        return [self._formula(image.double(), window) for window in self.windows]

    def _formula(self, x: torch.Tensor, window: Setting) -> torch.Tensor:
        """`shardforge.dicom.voi.brightness` and `levels`, operation by operation, on the tensor's device."""
        center, width = window.center, window.width
        if window.function == "SIGMOID":
            y = 1 / (1 + torch.exp((x - center) * -4 / width))
        elif window.function == "LINEAR" and width == 1:
            y = torch.where(x.isnan(), x, (x > center - 0.5).double())
        else:
            if window.function == "LINEAR":
                center, width = center - 0.5, width - 1
            y = ((x - center) / width + 0.5).clamp(0, 1)
        if self.inverted:
            y = 1 - y
        return y.float() if self.dtype == "float32" else (y * 255 + 0.5).nan_to_num(0).to(torch.uint8)


def _resolve(windows: str | Sequence[Setting], voi: VoiChoice) -> tuple[Setting, ...]:
    if not isinstance(windows, str):
        if not windows or not all(isinstance(window, Setting) and window.width > 0 for window in windows):
            raise UsageError(f"Window({windows!r}): a text such as 'lung,40/400', or windows of positive width")
        return tuple(defined(window) for window in windows)
    try:
        requests = parse_windows(windows)
        given = [request for request in requests if isinstance(request, Given)]
        resolved = tuple(defined(window_of(request, voi)) for request in given)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if not resolved or len(resolved) < len(requests):
        raise UsageError(
            f"Window({windows!r}): at training time neither the file's header nor its padding is at hand",
            todo="Give presets or CENTER/WIDTH, or window at build time.",
        )
    return resolved


def _wrong_type(dtype: object) -> UsageError:
    return UsageError(
        f"Window takes modality values (int16, int32, float), not {dtype}",
        todo="Build with windows none and format npy to keep them.",
    )
