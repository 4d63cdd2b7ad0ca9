import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.errors import MetricError
from mzseek.core.ragged import (
    Ragged,
    gather,
    gather_indices,
    pointers,
    ranges,
    read_labels,
    read_values,
)

lists_of = st.lists(st.lists(st.integers(-50, 50), min_size=1, max_size=6), min_size=0, max_size=8)


@given(lists_of)
def test_each_list_is_worked_on_as_a_loop_would(lists: list[list[int]]) -> None:
    ragged = Ragged(np.array([len(each) for each in lists], np.int64))
    values = np.array([value for each in lists for value in each], np.int64)
    assert (len(ragged), ragged.total) == (len(lists), len(values))
    assert ragged.sum(values).tolist() == [sum(each) for each in lists]
    assert ragged.max(values).tolist() == [max(each) for each in lists]
    assert ragged.min(values).tolist() == [min(each) for each in lists]
    assert ragged.any(values > 9).tolist() == [any(v > 9 for v in each) for each in lists]
    assert ragged.list_index.tolist() == [n for n, each in enumerate(lists) for _ in each]
    assert ragged.repeat_per_list(np.arange(len(lists))).tolist() == ragged.list_index.tolist()
    assert ragged.sum(values > 0, np.int64).dtype == np.int64


def test_an_empty_list_has_no_flag() -> None:
    flags = np.array([True, False])
    assert Ragged(np.array([0, 1, 0, 1, 0])).any(flags).tolist() == [False, True, *[False] * 3]


@given(lists_of, st.data())
def test_rows_are_gathered_as_slices_would(lists: list[list[int]], data: st.DataObject) -> None:
    indptr = pointers([len(each) for each in lists])
    values = np.array([value for each in lists for value in each], np.int64)
    any_row = st.integers(0, max(len(lists) - 1, 0))
    rows = np.array(data.draw(st.lists(any_row, max_size=9)) if lists else [], np.int64)
    expected = [value for row in rows for value in lists[row]]
    ends, (found, tenfold) = gather(indptr, (values, 10 * values), rows)
    assert (found.tolist(), tenfold.tolist()) == (expected, [10 * value for value in expected])
    assert np.diff(ends).tolist() == [len(lists[row]) for row in rows]
    also, where = gather_indices(indptr, rows)
    assert (also.tolist(), values[where].tolist()) == (ends.tolist(), expected)


def test_floats_stay_what_they_are_unless_a_type_is_asked_for() -> None:
    for dtype in (np.float16, np.float32):
        values, _ = read_values(np.ones(2, dtype), [2], "scores", MetricError)
        assert values.dtype == dtype
    values, _ = read_values([np.inf, 1], [2], "scores", MetricError)
    assert values.tolist() == [np.inf, 1]
    with pytest.raises(MetricError, match="scores hold a value that is not finite"):
        read_values([np.inf, 1], [2], "scores", MetricError, np.float64)


def test_messages_say_what_is_wrong_and_where() -> None:
    with pytest.raises(MetricError, match=r"^list 1 has no candidates \(as do 1 more\)$"):
        read_values([1.0], [1, 0, 0], "scores", MetricError)
    with pytest.raises(MetricError, match=r"\(list 1, candidate 1; 2 in all\)$"):
        read_values([1.0, 2.0, np.nan, np.nan], [1, 3], "scores", MetricError)
    lists = Ragged(np.array([1, 2, 1]))
    with pytest.raises(MetricError, match=r"^list 1 has no labelled candidate \(as do 1 more\)$"):
        read_labels([1, 0, 0, 0], lists, MetricError)
    for odd in ([1, 0, 2, 1], ["a", "b", "c", "d"]):
        with pytest.raises(MetricError, match="True and False"):
            read_labels(odd, lists, MetricError)


def test_no_lists_are_accepted_only_where_allowed() -> None:
    values, lists = read_values([], [], "scores", MetricError, allow_no_lists=True)
    assert (len(values), len(lists)) == (0, 0)
    assert read_labels([], lists, MetricError).tolist() == []
    with pytest.raises(MetricError, match="no lists"):
        read_values([], np.array([], int), "scores", MetricError)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 6))))
def test_spans_are_the_ranges_one_after_the_other(bounds: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in bounds], np.int64)
    ends, numbers = ranges(starts, starts + np.array([count for _, count in bounds], np.int64))
    assert np.diff(ends).tolist() == [count for _, count in bounds]
    assert numbers.tolist() == [n for start, count in bounds for n in range(start, start + count)]


def test_pointers_have_the_type_asked_for() -> None:
    assert pointers([], np.int32).dtype == np.int32
    assert pointers(np.array([True, False]), np.int32).tolist() == [0, 1, 1]
