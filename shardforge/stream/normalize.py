"""uint8 or uint16 batches → floats, on the device where the model is."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Self

import torch
from torch import nn

from shardforge.errors import UsageError
from shardforge.shards.manifest import Manifest
from shardforge.stream.dataset import ShardDataset
from shardforge.stream.reader import Dataset

_TRAIN = "train"
_WHITES = {torch.uint8: 255, torch.uint16: 65535}


class Normalize(nn.Module):
    """(x / white - mean) / std per channel, computed in float32 whatever the autocast, then cast to ``dtype``.

    White is 255 for uint8 and 65535 for uint16; for other types it is ``white``.

    Args:
        mean, std: per channel, in units of the full range (0 … 1), or of the values themselves where ``white`` is 1
            (modality values). A constant channel (std 0) is centred only.
        dtype: of the result: float32, float16 or bfloat16.
        memory_format: of the result, ``torch.contiguous_format`` or ``torch.channels_last``.
        white: the value of full intensity in images that are neither uint8 nor uint16.
    """

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(
        self,
        mean: Sequence[float],
        std: Sequence[float],
        dtype: torch.dtype = torch.float32,
        memory_format: torch.memory_format = torch.contiguous_format,
        white: int = 255,
    ) -> None:
        super().__init__()
        if len(mean) != len(std) or not mean or any(value < 0 for value in std):
            raise UsageError(f"mean={tuple(mean)} and std={tuple(std)}: one number per channel each")
        self.dtype, self.memory_format, self.white = dtype, memory_format, white
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32))
        self.register_buffer("std", torch.tensor([value or 1.0 for value in std], dtype=torch.float32))

    @classmethod
    def from_dataset(
        cls,
        dataset: ShardDataset | Dataset | str | PathLike[str],
        dtype: torch.dtype = torch.float32,
        memory_format: torch.memory_format = torch.contiguous_format,
    ) -> Self:
        """With mean and standard deviation of the training split, which the build put into the manifest.

        Raises:
            UsageError: the manifest has none.
        """
        manifest = dataset.manifest if isinstance(dataset, ShardDataset | Dataset) else Manifest.read(Path(dataset))
        split = manifest.splits.get(_TRAIN)
        if split is None or split.stats is None:
            raise UsageError(
                f"this dataset has no pixel statistics of a split {_TRAIN!r}",
                todo="Give mean and std to Normalize yourself.",
            )
        mean, std = split.stats.mean, split.stats.std
        if not manifest.modality_values:
            return cls(mean, std, dtype, memory_format, (1 << manifest.depth) - 1)
        # Counted as 0 … 65535 from −32768 on.
        mean, std = tuple(value * 65535 - 32768 for value in mean), tuple(value * 65535 for value in std)
        return cls(mean, std, dtype, memory_format, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """uint8, uint16 or int16 [N, H, W, C] or [N, C, H, W], or volumes [N, Z, Y, X, C] or [N, C, Z, Y, X] →
        ``dtype`` with the channels second.

        The last dimension is taken for the channels if it has as many as ``mean``, else the second.
        """
        channels = len(self.mean)
        if images.ndim in (4, 5) and images.shape[-1] == channels:
            images = images.movedim(-1, 1)
        elif images.ndim not in (4, 5) or images.shape[1] != channels:
            raise UsageError(f"images of shape {list(images.shape)} where [N, H, W, {channels}] belongs")
        scale = 1 / (_WHITES.get(images.dtype, self.white) * self.std.float())
        shift = -self.mean.float() / self.std.float()
        beside = (1, -1, *[1] * (images.ndim - 2))
        out = images.float() * scale.view(beside) + shift.view(beside)
        return out.to(self.dtype, memory_format=self.memory_format)

    def extra_repr(self) -> str:
        return f"mean={self.mean.tolist()}, std={self.std.tolist()}, dtype={self.dtype}"
