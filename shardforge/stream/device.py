"""Batches → the device where the model is."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import torch

from shardforge.errors import UsageError

Content = dict[str, Any]


class DeviceFeed:
    """Puts the tensors of batches on a device; None leaves them where they are.

    For a CUDA device they are copied on a stream of their own, one batch ahead: while the training loop works with a
    batch, the next is on its way. The stream that is current when a batch is handed over waits for its copy.

    Attributes:
        device: where to.
        copies: whether that is another memory, to which page-locked memory is copied faster.

    Raises:
        UsageError: there is no such device.
    """

    def __init__(self, device: torch.device | str | None) -> None:
        try:
            self.device = None if device is None else torch.device(device)
        except (RuntimeError, TypeError) as error:
            raise UsageError(f"device={device!r}: {str(error).splitlines()[0]}") from None
        self.copies = self.device is not None and self.device.type == "cuda"
        if self.copies and not torch.cuda.is_available():
            raise UsageError(f"device={str(device)!r}, but torch finds no CUDA device")

    def __call__(self, batches: Iterator[Content]) -> Generator[Content, None, None]:
        """The batches, moved."""
        if self.device is None or self.device.type == "cpu":
            return _as_they_are(batches)
        return self._ahead(batches, self.device) if self.copies else self._moved(batches, self.device)

    def _moved(self, batches: Iterator[Content], device: torch.device) -> Generator[Content, None, None]:
        for content in batches:
            yield _to(content, device)

    def _ahead(self, batches: Iterator[Content], device: torch.device) -> Generator[Content, None, None]:
        stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        waiting: tuple[Content, torch.cuda.Event] | None = None
        for content in batches:
            with torch.cuda.stream(stream):
                copied = _to(content, device), stream.record_event()
            del content
            if waiting is not None:
                yield _after(*waiting, device)
            waiting = copied
        if waiting is not None:
            yield _after(*waiting, device)


def _as_they_are(batches: Iterator[Content]) -> Generator[Content, None, None]:
    for content in batches:
        yield content
        del content


def _to(content: Content, device: torch.device) -> Content:
    return {
        name: value.to(device, non_blocking=True) if isinstance(value, torch.Tensor) else value
        for name, value in content.items()
    }


def _after(content: Content, copied: torch.cuda.Event, device: torch.device) -> Content:
    current = torch.cuda.current_stream(device)
    current.wait_event(copied)
    for value in content.values():
        if isinstance(value, torch.Tensor):
            # Else the allocator could give this memory away while the current stream still reads it.
            value.record_stream(current)
    return content
