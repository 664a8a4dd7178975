"""Training-time transforms: pass the first four to a reader's ``transform``, and run ``Normalize`` on the device."""

from shardforge.stream.augment import CenterCrop, RandomHorizontalFlip, RandomResizedCrop, Resize
from shardforge.stream.normalize import Normalize

__all__ = ["CenterCrop", "Normalize", "RandomHorizontalFlip", "RandomResizedCrop", "Resize"]
