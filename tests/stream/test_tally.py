"""Samples that could not be read are counted exactly, by any number of threads, and logged once for each cause."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shardforge.errors import DamagedError
from shardforge.stream.loader import ShardLoader
from shardforge.stream.tally import ErrorTally
from tests.datasets import make_dataset


def test_threads_lose_no_count_and_log_a_cause_once(caplog: pytest.LogCaptureFixture) -> None:
    tally, error, before = ErrorTally(), DamagedError("no PNG"), sys.getswitchinterval()
    together = threading.Barrier(16)

    def add() -> None:
        together.wait()
        for _ in range(2500):
            tally.add(0, "no PNG", error)

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(16) as pool:
            for done in [pool.submit(add) for _ in range(16)]:
                done.result()
    finally:
        sys.setswitchinterval(before)
    assert tally.total == 40_000
    assert len(caplog.records) == 1


def test_causes_that_quote_what_they_found_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    tally = ErrorTally()
    for number in range(500):
        tally.add(0, f"no valid array, but {number}", DamagedError(f"no valid array, but {number}"))
    assert tally.total == 500
    assert len(caplog.records) == 20
    told = [record.getMessage() for record in caplog.records]
    assert told[0].endswith("no valid array, but 0")
    assert told[-1].endswith("no valid array, but 19; other causes that follow are counted, not logged")


def test_a_loader_logs_each_cause_once_however_often_and_in_how_many_threads_it_is_met(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_dataset(tmp_path, {"train": [8, 8, 8]}, format="png")
    tar = tmp_path / "train-000000.tar"
    tar.write_bytes(tar.read_bytes().replace(b"\x89PNG\r\n", b"\x89PNX\r\n"))
    (tmp_path / "train-000001.tar").write_bytes(b"")
    with ShardLoader(tmp_path, batch_size=4, threads=4, on_error="mask") as loader:
        valid = sum(int(batch["valid"].sum()) for _ in range(3) for batch in loader)
        masked = loader.dataset.masked_errors
    assert (valid, masked) == (3 * 8, 3 * 16)
    causes = sorted(record.getMessage().partition(": ")[2] for record in caplog.records)
    assert len(causes) == 2
    assert "no PNG" in causes[0]
    assert "0 bytes long" in causes[1]
