"""What a person sees while a build runs: a bar on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
import time
from typing import Never, Protocol

from tqdm import tqdm

from shardforge.text import plain

_LINE_EVERY = 10.0
"""Seconds between plain progress lines."""
_FAILURES_TOLD = 10


class Reporter(Protocol):
    """Receives what a build has to say."""

    def say(self, line: str) -> None:
        """A line worth reading."""

    def start(self, items: int, done: int) -> None:
        """Work begins: so many items, of which some are done."""

    def update(self, done: int, failed: int, read: int) -> None:
        """Totals so far: items, failures among them, bytes read in this run."""

    def failure(self, source: str, reason: str, detail: str) -> None:
        """An item failed."""

    def finish(self) -> None:
        """Work has ended, one way or another."""


class Silent:
    """Says nothing."""

    def say(self, line: str) -> None: ...
    def start(self, items: int, done: int) -> None: ...
    def update(self, done: int, failed: int, read: int) -> None: ...
    def failure(self, source: str, reason: str, detail: str) -> None: ...
    def finish(self) -> None: ...


class Console:
    """Writes to standard error, which keeps standard output free for results."""

    def __init__(self) -> None:
        self._bar: tqdm[Never] | None = None
        self._terminal = sys.stderr.isatty()
        self._items = self._before = self._told = 0
        self._began = self._last = 0.0

    def say(self, line: str) -> None:
        if self._bar is None:
            print(plain(line), file=sys.stderr, flush=True)
        else:
            self._bar.write(plain(line), file=sys.stderr)

    def start(self, items: int, done: int) -> None:
        self._items, self._before, self._told = items, done, 0
        self._began = self._last = time.monotonic()
        if self._terminal:
            self._bar = tqdm(total=items, initial=done, unit=" samples", dynamic_ncols=True, file=sys.stderr)

    def update(self, done: int, failed: int, read: int) -> None:
        now = time.monotonic()
        seconds = max(now - self._began, 1e-9)
        rate = f"{read / seconds / 1e6:.1f} MB/s, {failed:,} failed"
        if self._bar is not None:
            self._bar.set_postfix_str(rate, refresh=False)
            self._bar.update(done - self._bar.n)
        elif now - self._last >= _LINE_EVERY:
            self._last = now
            speed = (done - self._before) / seconds
            left = (self._items - done) / speed if speed else float("inf")
            eta = f", {left:.0f} s left" if left < float("inf") else ""
            self.say(f"{done:,} of {self._items:,} items, {speed:.0f} samples/s, {rate}{eta}")

    def failure(self, source: str, reason: str, detail: str) -> None:
        self._told += 1
        if self._told <= _FAILURES_TOLD:
            self.say(f"failed: {source}: {reason}" + (f" ({detail})" if detail else ""))
        elif self._told == _FAILURES_TOLD + 1:
            self.say("further failures are in the parquet files (column reason)")

    def finish(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
