"""The journal: what has a line is whole, and going on after a cut gives the same as never having stopped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shardforge.compile.journal import Journal
from shardforge.shards.catalogue import Flag, Reason, Status
from shardforge.shards.metadata import Outcome
from shardforge.shards.tar import Extent


def outcome(i: int) -> Outcome:
    if i % 3 == 0:
        return Outcome(Status.FAILED, Reason.CORRUPT, flags=(Flag.SUSPECT,))
    return Outcome(
        Status.SUCCESS, width=i, scale_x=0.1 * i, extents={"jpg": Extent(512 * i, i)}, sample_crc32=2**32 - 1
    )


def histogram(i: int) -> np.ndarray:  # type: ignore[type-arg]
    return np.arange(512, dtype=np.int64).reshape(2, 256) * i


def write(folder: Path, start: int, stop: int, keep: bool) -> Journal:
    journal = Journal(folder, "s", 2, keep=keep)
    for i in range(start, stop):
        journal.append(outcome(i), histogram(i), 100 * (i + 1))
    return journal


def test_what_was_written_comes_back(tmp_path: Path) -> None:
    journal = write(tmp_path, 0, 7, keep=False)
    assert journal.outcomes() == [outcome(i) for i in range(7)]
    np.testing.assert_array_equal(journal.histogram(), sum(histogram(i) for i in range(7)))
    journal.close()
    again = Journal(tmp_path, "s", 2, keep=True)
    assert (again.count, again.tar_size) == (7, 700)
    assert again.outcomes() == [outcome(i) for i in range(7)]
    again.close()
    fresh = Journal(tmp_path, "s", 2, keep=False)
    assert (fresh.count, fresh.tar_size, fresh.outcomes()) == (0, 0, [])
    fresh.remove()
    assert list(tmp_path.iterdir()) == []


@given(cut=st.integers(0, 10_000), extra=st.integers(0, 3000))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_line_cut_anywhere_costs_that_item_only(tmp_path: Path, cut: int, extra: int) -> None:
    write(tmp_path, 0, 6, keep=False).close()
    rows = tmp_path / "s.rows"
    whole = rows.read_bytes()
    kept = whole[: cut % (len(whole) + 1)]
    rows.write_bytes(kept)
    with open(tmp_path / "s.hist", "ab") as file:
        file.write(bytes(extra))
    journal = Journal(tmp_path, "s", 2, keep=True)
    assert journal.count == kept.count(b"\n")
    assert journal.tar_size == 100 * journal.count
    start = journal.count
    journal.close()
    journal = write(tmp_path, start, 6, keep=True)
    assert journal.outcomes() == [outcome(i) for i in range(6)]
    np.testing.assert_array_equal(journal.histogram(), sum(histogram(i) for i in range(6)))
    journal.close()


def test_counts_do_not_overflow_when_summed(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "s", 1, keep=False)
    big = np.zeros((1, 256), np.int64)
    big[0, 7] = 2**32 - 1
    for i in range(3):
        journal.append(outcome(i), big, i)
    assert journal.histogram()[0, 7] == 3 * (2**32 - 1)
    journal.close()


def test_a_full_disk_is_an_error_not_a_short_line() -> None:
    class Full:
        def write(self, data: bytes) -> int:
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        Journal._write(Full(), b"abc")  # type: ignore[arg-type]
