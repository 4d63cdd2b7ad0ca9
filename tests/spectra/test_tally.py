import tracemalloc

import pytest

from mzseek.spectra.summary import Distinct, Extent, Tally


def test_a_tally_counts_values_and_what_is_not_given() -> None:
    tally = Tally()
    for value in ("a", None, "b", "a", " a "):
        tally.add(value)
    assert dict(tally.values) == {"a": 3, "b": 1}
    assert (tally.given, tally.none_given, tally.not_listed) == (4, 1, 0)
    assert tally.to_dict() == {"values": {"a": 3, "b": 1}, "not_listed": 0, "none_given": 1}


def test_counts_add_up_however_many_values_there_are() -> None:
    tally = Tally()
    tracemalloc.start()
    for number in range(50_000):
        tally.add(f"value {number} " + "x" * 300)
        tally.add("usual")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2e6
    assert tally.given == 100_000
    assert tally.values["usual"] == 50_000
    assert tally.not_listed == tally.given - tally.values.total() > 0
    assert max(map(len, tally.values)) <= 80


def test_an_extent_of_nothing_is_none() -> None:
    extent = Extent()
    assert extent.to_dict() is None
    extent.add(2.5)
    assert extent.to_dict() == {"lowest": 2.5, "highest": 2.5, "count": 1}


@pytest.mark.parametrize("number", [0, 1, 255, 256])
def test_distinct_texts_are_counted_exactly_where_all_are_kept(number: int) -> None:
    distinct = Distinct(256)
    for _ in range(3):
        for text in range(number):
            distinct.add(str(text))
    assert (distinct.count, distinct.is_exact) == (number, True)


def test_beyond_that_the_estimate_is_as_near_as_it_says() -> None:
    distinct = Distinct(1 << 12)
    for number in range(60_000):
        distinct.add(f"molecule {number}")
        distinct.add(f"molecule {number // 2}")
    assert not distinct.is_exact
    assert distinct.count == pytest.approx(60_000, rel=4 / 64)  # four standard errors of 1 / √4096


def test_texts_that_are_no_unicode_count_too() -> None:
    distinct = Distinct()
    distinct.add("\udcff")
    assert distinct.count == 1
