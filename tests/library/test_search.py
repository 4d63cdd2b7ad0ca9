"""The index finds what comparing with every spectrum finds."""

import numpy as np
import pytest

from mzseek.library.library import CODES, KINDS, Index
from mzseek.library.similarity import peak_lists


def test_every_kind_has_code_and_words() -> None:
    assert list(CODES) == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_few_are_the_first_of_all_whatever_the_threads(draw, kind: str) -> None:
    library, queries = peak_lists(draw(60)), peak_lists(draw(40, seed=1))
    index = Index(kind, *library, 0.02)
    groups, allowed = np.arange(60), np.ones(60, bool)
    every = index.search(*queries, 60, groups, allowed, threads=1)
    few = index.search(*queries, 5, groups, allowed, threads=3)
    for part, whole in zip(few, every, strict=True):
        np.testing.assert_array_equal(part, whole[:, :5])
    assert (np.diff(every.scores) <= 0).all()
    assert (every.scores[:, 0] > 0).all()
    assert every.scores.max() <= 1 + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_group_the_best_is_found(draw, kind: str) -> None:
    library, queries = peak_lists(draw(60)), peak_lists(draw(20, seed=1))
    index = Index(kind, *library, 0.02)
    groups, allowed = np.arange(60) % 7, np.ones(60, bool)
    every = index.search(*queries, 60, np.arange(60), allowed)
    best = index.search(*queries, 3, groups, allowed)
    for query in range(20):
        found = [record for record in every.records[query] if record >= 0]
        firsts = {groups[record]: record for record in reversed(found)}
        wanted = [record for record in found if firsts[groups[record]] == record][:3]
        assert [record for record in best.records[query] if record >= 0] == wanted


def test_what_is_not_allowed_or_far_in_mass_is_not_found(draw) -> None:
    library, queries = peak_lists(draw(60)), peak_lists(draw(20, seed=1))
    index = Index("cosine", *library, 0.02)
    allowed = np.arange(60) % 2 == 0
    best = index.search(*queries, 60, np.arange(60), allowed, ppm=10)
    assert (best.records >= 0).any()
    for query, records in enumerate(best.records):
        found = records[records >= 0]
        assert (found % 2 == 0).all()
        away = np.abs(library[1].precursors[found] - queries[1].precursors[query])
        assert (away <= 10e-6 * queries[1].precursors[query]).all()
