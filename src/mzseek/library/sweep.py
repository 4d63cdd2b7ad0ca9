"""Search by an inverted index: a bound for every spectrum, and the score of those it lets pass.

All peaks of the library stand in one rising list. A query's peak adds what it could bring at most
to every spectrum with a peak near it; where the sum cannot reach the best found so far, the
spectrum is passed over. All others are scored pair by pair: what is found is what comparing with
every spectrum finds. Compiled; holds no lock of Python's, so that threads share the work.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mzseek.compiled import compiled
from mzseek.library.lists import Entries, Ions, Lists
from mzseek.library.pairs import entropy_similarity, greedy_cosine, shared_entropy

COSINE, MODIFIED, ENTROPY, ANALOG = 0, 1, 2, 3
_LEAST = 1e-300  # of what a pair adds: a spectrum that was met once is told from one never met
_ROOM = 1 + 1e-9  # bounds are sums in another order than scores


class Side(NamedTuple):
    """Spectra as one of the two sides of a search.

    ``peaks`` and ``losses`` are what the index is swept with, ``whole`` what pairs are scored by.
    """

    peaks: Lists
    losses: Lists
    whole: Lists
    ions: Ions


class Rules(NamedTuple):
    """What counts as a match, and what may be one.

    ``allowed`` says of each library spectrum whether it may be found, ``groups`` of what at most
    one is: its molecule, or itself. ``ppm`` below 0 lets any precursor pass.
    """

    kind: int
    tolerance: float
    ppm: float
    allowed: npt.NDArray[np.bool_]
    groups: npt.NDArray[np.int64]


class Best(NamedTuple):
    """The best of each query, the best first; record −1 where there are no more."""

    records: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    matches: npt.NDArray[np.int64]


@compiled
def search_range(
    start: int, end: int, queries: Side, library: Side, by_peak: Entries, by_loss: Entries,
    rules: Rules, best: Best,
) -> None:  # fmt: skip
    """Fill in the best of the queries from ``start`` to ``end``."""
    records = len(library.ions.precursors)
    bounds = np.zeros(records)
    touched = np.empty(records, np.int64)
    for query in range(start, end):
        count = _sweep(by_peak, queries.peaks, query, rules, bounds, touched, 0)
        count = _sweep(by_loss, queries.losses, query, rules, bounds, touched, count)
        last = best.scores.shape[1] - 1
        for place in range(count):
            record = touched[place]
            bound, bounds[record] = bounds[record], 0.0
            if bound * _ROOM < best.scores[query, last]:
                continue
            if not _may_match(queries.ions, query, library.ions, record, rules):
                continue
            score, matches = bound, 0
            if rules.kind != ANALOG:
                score, matches = _scored(queries, query, library, record, rules)
            if score > 0:
                _insert(best, query, record, score, matches, rules.groups)
        if rules.kind == ANALOG:
            for place in range(last + 1):
                record = best.records[query, place]
                if record >= 0:
                    best.matches[query, place] = _shared(queries, query, library, record)


@compiled
def _sweep(
    entries: Entries, lists: Lists, query: int, rules: Rules, bounds: npt.NDArray[np.float64],
    touched: npt.NDArray[np.int64], count: int,
) -> int:  # fmt: skip
    """Add to each spectrum's bound what the query's values could bring it."""
    for place in range(lists.pointers[query], lists.pointers[query + 1]):
        value, weight = lists.values[place], lists.weights[place]
        # A little wider than the tolerance: the pairs decide, in their own arithmetic.
        reach = rules.tolerance + 1e-9 + (5e-7 * abs(value) if rules.kind == ENTROPY else 0.0)
        entry = np.searchsorted(entries.values, value - reach)
        while entry < len(entries.values) and entries.values[entry] <= value + reach:
            if rules.kind == ENTROPY:
                added = shared_entropy(weight, entries.weights[entry]) / 2
            else:
                added = weight * entries.weights[entry]
            owner = entries.owners[entry]
            if bounds[owner] == 0:
                touched[count] = owner
                count += 1
            bounds[owner] += max(added, _LEAST)
            entry += 1
    return count


@compiled
def _may_match(queries: Ions, query: int, library: Ions, record: int, rules: Rules) -> bool:
    if not rules.allowed[record] or queries.modes[query] * library.modes[record] < 0:
        return False
    precursor = queries.precursors[query]
    off = abs(library.precursors[record] - precursor)
    return rules.ppm < 0 or off <= rules.ppm * 1e-6 * precursor


@compiled
def _scored(
    queries: Side, query: int, library: Side, record: int, rules: Rules
) -> tuple[float, int]:
    theirs = slice(library.whole.pointers[record], library.whole.pointers[record + 1])
    mine = slice(queries.whole.pointers[query], queries.whole.pointers[query + 1])
    mz, weights = library.whole.values[theirs], library.whole.weights[theirs]
    own_mz, own_weights = queries.whole.values[mine], queries.whole.weights[mine]
    if rules.kind == ENTROPY:
        return entropy_similarity(mz, weights, own_mz, own_weights, rules.tolerance)
    shift = 0.0
    if rules.kind == MODIFIED:
        shift = library.ions.precursors[record] - queries.ions.precursors[query]
    return greedy_cosine(mz, weights, own_mz, own_weights, rules.tolerance, shift)


@compiled
def _shared(queries: Side, query: int, library: Side, record: int) -> int:
    """Bins of peaks that both have."""
    i, j = queries.peaks.pointers[query], library.peaks.pointers[record]
    count = 0
    while i < queries.peaks.pointers[query + 1] and j < library.peaks.pointers[record + 1]:
        difference = queries.peaks.values[i] - library.peaks.values[j]
        count += difference == 0
        i += difference <= 0
        j += difference >= 0
    return count


@compiled
def _insert(
    best: Best, query: int, record: int, score: float, matches: int,
    groups: npt.NDArray[np.int64],
) -> None:  # fmt: skip
    """Put a spectrum in its place, one of its group out; of equal scores the earlier leads."""
    size = best.scores.shape[1]
    gap = size - 1  # the place that becomes free
    for place in range(size):
        other = best.records[query, place]
        if other >= 0 and groups[other] == groups[record]:
            gap = place
            break
    held = best.records[query, gap]
    worse = best.scores[query, gap]
    if held >= 0 and (score < worse or (score == worse and record > held)):
        return
    while gap > 0:
        above = best.records[query, gap - 1]
        better = best.scores[query, gap - 1]
        if above >= 0 and (better > score or (better == score and above < record)):
            break
        best.records[query, gap] = above
        best.scores[query, gap] = better
        best.matches[query, gap] = best.matches[query, gap - 1]
        gap -= 1
    best.records[query, gap] = record
    best.scores[query, gap] = score
    best.matches[query, gap] = matches
