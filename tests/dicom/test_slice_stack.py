"""Neighbours of a slice: in order, as many for every slice, the ends repeated."""

from __future__ import annotations

import pytest

from shardforge.dicom.slice_stack import stack_indices


def test_neighbours_stand_in_order_and_the_ends_repeat() -> None:
    assert stack_indices(5, 10, 1) == (4, 5, 6)
    assert stack_indices(0, 10, 2) == (0, 0, 0, 1, 2)
    assert stack_indices(9, 10, 2) == (7, 8, 9, 9, 9)
    assert stack_indices(0, 1, 1) == (0, 0, 0)
    assert stack_indices(3, 10, 0) == (3,)


@pytest.mark.parametrize("wrong", [(-1, 10, 1), (10, 10, 1), (0, 0, 1), (1, 10, -1)])
def test_a_slice_that_is_not_there_is_refused(wrong: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="slice"):
        stack_indices(*wrong)
