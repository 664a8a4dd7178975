"""What a bench advises, from made-up measurements."""

from __future__ import annotations

import pytest

from shardforge.inspect.bench.advice import advise
from shardforge.inspect.bench.settings import Setting, Speed, grid

SMALL, LARGE, APART = Setting(0, 1), Setting(0, 4), Setting(1, 4)


def speed(setting: Setting, rate: float, step_ms: float = 0) -> Speed:
    return Speed(setting, step_ms, rate, 0.1, (0.01, 0.02))


def means(storage: float, decode: float, transform: float, hand_over: float) -> dict[str, float]:
    return {"storage": storage, "decode": decode, "transform": transform, "hand-over": hand_over}


@pytest.mark.parametrize(
    ("parts", "binds", "word"),
    [
        (means(5, 2, 1, 1), "storage", "56 %"),
        (means(1, 3, 1, 2), "CPU", "decoding takes 43 %"),
        (means(1, 1, 2, 2), "CPU", "transforming takes 33 %"),
        (means(1, 1, 1, 7), "hand-over", "70 %"),
    ],
)
def test_what_takes_most_of_a_samples_time_binds(parts: dict[str, float], binds: str, word: str) -> None:
    advice = advise(parts, [speed(SMALL, 100)], 10)
    assert advice.binds == binds
    assert word in advice.why


def test_the_smallest_setting_that_is_as_fast_is_advised() -> None:
    cpu = means(0, 1, 0, 0)
    assert advise(cpu, [speed(SMALL, 50), speed(LARGE, 99), speed(APART, 100)], 10).use == LARGE
    assert advise(cpu, [speed(SMALL, 50), speed(LARGE, 90), speed(APART, 100)], 10).use == APART
    assert advise(cpu, [speed(SMALL, 98), speed(LARGE, 99), speed(APART, 100)], 10).use == SMALL


def test_a_step_that_is_fed_binds_and_more_threads_than_it_needs_are_not_advised() -> None:
    # Ten rows in 100 ms: 100 images/s are all that is used.
    speeds = [
        speed(SMALL, 70),
        speed(SMALL, 60, 100),
        speed(LARGE, 900),
        speed(LARGE, 97, 100),
        speed(APART, 99, 100),
    ]
    advice = advise(means(0, 1, 0, 0), speeds, 10)
    assert (advice.binds, advice.use) == ("step", LARGE)


def test_a_step_that_waits_for_batches_does_not_bind() -> None:
    speeds = [speed(SMALL, 500), speed(SMALL, 60, 100), speed(LARGE, 80, 100)]
    advice = advise(means(3, 1, 0, 0), speeds, 10)
    assert (advice.binds, advice.use) == ("storage", LARGE)


@pytest.mark.parametrize("processors", [1, 2, 3, 8, 64])
def test_a_grid_holds_one_thread_all_processors_and_a_worker_and_no_setting_twice(processors: int) -> None:
    settings = grid(processors)
    assert len(set(settings)) == len(settings) <= 12
    assert {Setting(0, 1), Setting(0, processors), Setting(1, processors)} <= set(settings)
    assert all(setting.threads * max(1, setting.workers) <= processors for setting in settings)
