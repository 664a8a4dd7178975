"""Training-time transforms: the geometric ones for a reader's ``transform``, ``PadCollate`` for its ``collate``, and
``Normalize`` to run on the device. ``Window`` works in both places.
"""

from shardforge.stream.augment import CenterCrop, Pad, RandomHorizontalFlip, RandomResizedCrop, Resize
from shardforge.stream.collate import PadCollate
from shardforge.stream.normalize import Normalize
from shardforge.stream.window import Window

__all__ = [
    "CenterCrop",
    "Normalize",
    "Pad",
    "PadCollate",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "Resize",
    "Window",
]
