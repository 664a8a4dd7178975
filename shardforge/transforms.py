"""Training-time transforms: pass them to a reader's ``transform``, but run ``Normalize`` on the device.

``Window`` works in both places.
"""

from shardforge.stream.augment import CenterCrop, RandomHorizontalFlip, RandomResizedCrop, Resize
from shardforge.stream.normalize import Normalize
from shardforge.stream.window import Window

__all__ = ["CenterCrop", "Normalize", "RandomHorizontalFlip", "RandomResizedCrop", "Resize", "Window"]
