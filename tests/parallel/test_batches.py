import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.parallel import in_batches


@given(st.lists(st.integers(), max_size=30), st.integers(1, 12))
def test_batches_hold_all_items_in_order(items: list[int], size: int) -> None:
    found = list(in_batches(sum, items, size, jobs=1))
    assert [item for batch, _ in found for item in batch] == items
    assert all(result == sum(batch) for batch, result in found)
    assert all(len(batch) == size for batch, _ in found[:-1])


def test_several_processes_give_the_same() -> None:
    items = list(range(50))
    assert list(in_batches(sum, items, 7, jobs=2)) == list(in_batches(sum, items, 7, jobs=1))


def test_a_single_batch_is_done_here() -> None:
    assert [pid for _, pid in in_batches(lambda _: os.getpid(), [1, 2], 5)] == [os.getpid()]


@pytest.mark.parametrize("jobs", [1, 2])
def test_errors_come_through(jobs: int) -> None:
    with pytest.raises(ZeroDivisionError):
        list(in_batches(lambda batch: 1 // batch[0], [1, 0, 2], 1, jobs=jobs))
