"""Spectral similarity: entropy, cosine, modified cosine, over many pairs."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mzseek.core.compiled import compiled
from mzseek.core.errors import SpectrumError
from mzseek.core.ragged import pointers, ranges
from mzseek.spectra import Spectrum, clean_peaks

Array = npt.NDArray[Any]


class PeakLists(NamedTuple):
    """One list of (value, weight) for each spectrum; list i is ``pointers[i]:pointers[i + 1]``."""

    pointers: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]

    @property
    def list_index(self) -> npt.NDArray[np.int64]:
        """Index of the list that each value is in."""
        return np.repeat(np.arange(len(self.pointers) - 1), np.diff(self.pointers))


class PrecursorIons(NamedTuple):
    """The ion of each spectrum: m/z of the precursor, and 1, −1 or 0 (unknown) for the mode."""

    precursors: npt.NDArray[np.float64]
    modes: npt.NDArray[np.int8]


class InvertedIndex(NamedTuple):
    """All values of lists in rising order, each with its list."""

    values: npt.NDArray[np.float64]
    list_index: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float64]


def peak_lists(spectra: Iterable[Spectrum]) -> tuple[PeakLists, PrecursorIons]:
    """Clean and concatenate the peaks of spectra, in rising order whatever order they came in.

    Raises
    ------
    SpectrumError
        One has no usable peaks, or no precursor; the message names it.
    """
    mz: list[Array] = []
    heights: list[Array] = []
    precursors: list[float] = []
    modes: list[int] = []
    for spectrum in spectra:
        try:
            cleaned = clean_peaks(spectrum.mz, spectrum.intensities)
        except SpectrumError as error:
            raise SpectrumError(f"{spectrum.identifier}: {error}") from error
        if not 0 < spectrum.precursor_mz < np.inf:
            raise SpectrumError(f"{spectrum.identifier}: has no precursor m/z")
        mz.append(cleaned[0])
        heights.append(cleaned[1])
        precursors.append(spectrum.precursor_mz)
        modes.append(spectrum.polarity)
    lengths = np.array([len(values) for values in mz], np.int64)
    nothing = [np.zeros(0)]
    lists = PeakLists(
        pointers(lengths), np.concatenate(mz or nothing), np.concatenate(heights or nothing)
    )
    return lists, PrecursorIons(np.array(precursors, np.float64), np.array(modes, np.int8))


def inverted_index(lists: PeakLists) -> InvertedIndex:
    """Invert lists: from values to lists."""
    order = np.argsort(lists.values, kind="stable")
    list_index = lists.list_index[order].astype(np.int32)
    return InvertedIndex(lists.values[order], list_index, lists.weights[order])


def normalised(lists: PeakLists, square: float = 1.0) -> PeakLists:
    """Scale weights so that their squares sum to ``square`` in each list."""
    list_index = lists.list_index
    # Of nothing at all, bincount makes whole numbers.
    sums = np.bincount(list_index, lists.weights**2, len(lists.pointers) - 1).astype(np.float64)
    scale = np.sqrt(np.divide(square, sums, out=np.zeros_like(sums), where=sums > 0))
    return lists._replace(weights=lists.weights * scale[list_index])


def neutral_losses(lists: PeakLists, precursors: npt.NDArray[np.float64]) -> PeakLists:
    """Return the same lists by neutral loss: precursor − peak."""
    return lists._replace(values=precursors[lists.list_index] - lists.values)


def empty_lists(count: int) -> PeakLists:
    """Return so many empty lists."""
    return PeakLists(np.zeros(count + 1, np.int64), np.zeros(0), np.zeros(0))


NOISE = 0.01
_RICH = 3.0  # spectra of more entropy are taken as they are

Singles = npt.NDArray[np.float32]


def entropy_lists(lists: PeakLists, tolerance: float) -> PeakLists:
    """Centroid, filter and weight each list of peaks for `entropy_similarity`."""
    values = lists.values.astype(np.float32)
    weights = lists.weights.astype(np.float32)
    counts = _weight_peaks(lists.pointers, values, weights, np.float32(2 * tolerance))
    ends, rows = ranges(lists.pointers[:-1], lists.pointers[:-1] + counts)
    return PeakLists(ends, values[rows].astype(np.float64), weights[rows].astype(np.float64))


@compiled
def _weight_peaks(
    begins: npt.NDArray[np.int64], values: Singles, weights: Singles, apart: np.float32
) -> npt.NDArray[np.int64]:
    """Rewrite each list at its beginning; return how many peaks are left in each."""
    counts = np.zeros(len(begins) - 1, np.int64)
    for row in range(len(counts)):
        mz, heights = values[begins[row] : begins[row + 1]], weights[begins[row] : begins[row + 1]]
        while not _are_apart(mz, apart):
            mz, heights = _centroided(mz, heights, apart)
        strong = heights >= np.float32(NOISE) * heights.max()
        mz, heights = mz[strong], heights[strong]
        heights = heights / heights.sum()
        entropy = -(heights * np.log(heights)).sum()
        if entropy < _RICH:
            heights = heights ** np.float32(0.25 + 0.25 * entropy)
            heights = heights / heights.sum()
        counts[row] = len(mz)
        values[begins[row] : begins[row] + len(mz)] = mz
        weights[begins[row] : begins[row] + len(mz)] = heights
    return counts


@compiled
def _are_apart(mz: Singles, apart: np.float32) -> bool:
    for index in range(1, len(mz)):  # noqa: SIM110 (compiled, a generator would be slow)
        if mz[index] - mz[index - 1] < apart:
            return False
    return True


@compiled
def _centroided(mz: Singles, heights: Singles, apart: np.float32) -> tuple[Singles, Singles]:
    """Merge peaks into the largest one near them, the largest of all first."""
    left = heights.copy()
    new_mz, new_heights = np.empty_like(mz), np.empty_like(mz)
    count = 0
    for index in np.argsort(heights, kind="mergesort")[::-1]:
        if left[index] <= 0:
            continue
        begin, end = index, index + 1
        while begin > 0 and mz[index] - mz[begin - 1] <= apart:
            begin -= 1
        while end < len(mz) and mz[end] - mz[index] <= apart:
            end += 1
        total = left[begin:end].sum()
        new_mz[count] = (left[begin:end] * mz[begin:end]).sum() / total
        new_heights[count] = total
        count += 1
        left[begin:end] = 0
    order = np.argsort(new_mz[:count], kind="mergesort")
    return new_mz[:count][order], new_heights[:count][order]


Floats = npt.NDArray[np.float64]


@compiled
def _matches(
    mz: Floats, other_mz: Floats, tolerance: float, shift: float, first: list[int],
    second: list[int],
) -> None:  # fmt: skip
    """Add all pairs of peaks that lie within the tolerance, the other ones moved by the shift."""
    lowest = 0
    for i in range(len(mz)):
        for j in range(lowest, len(other_mz)):
            moved = other_mz[j] + shift
            if moved > mz[i] + tolerance:
                break
            if moved < mz[i] - tolerance:
                lowest = j + 1
            else:
                first.append(i)
                second.append(j)


@compiled
def greedy_cosine(
    mz: Floats, heights: Floats, other_mz: Floats, other_heights: Floats, tolerance: float,
    shift: float,
) -> tuple[float, int]:  # fmt: skip
    """Cosine of two spectra whose peaks are paired greedily, the largest product first.

    With ``shift`` (precursor − the other's precursor) beyond the tolerance, peaks also match at
    this distance: the modified cosine. Of equal products the pair that was found last goes first,
    as in matchms.

    Parameters
    ----------
    mz, heights, other_mz, other_heights : float64 arrays
        Of the reference, and of the query; m/z rising.
    tolerance, shift : float

    Returns
    -------
    score, matches : float, int
    """
    first = [0 for _ in range(0)]
    second = [0 for _ in range(0)]
    _matches(mz, other_mz, tolerance, 0.0, first, second)
    if abs(shift) > tolerance:
        _matches(mz, other_mz, tolerance, shift, first, second)
    if len(first) == 0:
        return 0.0, 0
    products = np.empty(len(first))
    for pair in range(len(first)):
        products[pair] = heights[first[pair]] * other_heights[second[pair]]
    used = np.zeros(len(mz), np.bool_)
    other_used = np.zeros(len(other_mz), np.bool_)
    score, matches = 0.0, 0
    for pair in np.argsort(products, kind="mergesort")[::-1]:
        i, j = first[pair], second[pair]
        if not used[i] and not other_used[j]:
            used[i] = other_used[j] = True
            score += products[pair]
            matches += 1
    # One after the other: numpy and machine code sum arrays in different orders.
    square = other_square = 0.0
    for height in heights:
        square += height * height
    for height in other_heights:
        other_square += height * height
    return score / np.sqrt(square * other_square), matches


@compiled
def shared_entropy(weight: float, other: float) -> float:
    """Return f(a + b) − f(a) − f(b), f(x) = x log₂ x: the share of two peaks in 2 · similarity."""
    total = weight + other
    added: float = total * np.log2(total) - weight * np.log2(weight) - other * np.log2(other)
    return added


@compiled
def entropy_similarity(
    mz: Floats, weights: Floats, other_mz: Floats, other_weights: Floats, tolerance: float
) -> tuple[float, int]:
    """Spectral entropy similarity of two weighted spectra.

    Their peaks lie at least twice the tolerance apart, so that each has one partner at most.
    """
    i = j = matches = 0
    score = 0.0
    while i < len(mz) and j < len(other_mz):
        # In single precision, as the m/z of `entropy_lists` are.
        difference = np.float32(mz[i]) - np.float32(other_mz[j])
        if difference < -np.float32(tolerance):
            i += 1
        elif difference > np.float32(tolerance):
            j += 1
        else:
            score += shared_entropy(weights[i], other_weights[j])
            matches += 1
            i += 1
            j += 1
    return score / 2, matches


COSINE, MODIFIED, ENTROPY, ANALOG = 0, 1, 2, 3
_MIN_ADDED = 1e-300  # by a pair of peaks: marks a spectrum as met
_ROUNDING = 1 + 1e-9  # bounds are sums in another order than scores


class SearchSide(NamedTuple):
    """Spectra as one of the two sides of a search.

    The index is searched with ``peaks`` and ``losses``; pairs are scored by ``whole``.
    """

    peaks: PeakLists
    losses: PeakLists
    whole: PeakLists
    ions: PrecursorIons


class SearchRules(NamedTuple):
    """What counts as a match, and what may be one.

    ``allowed`` says of each library spectrum whether it may be found, ``groups`` of what at most
    one is: its molecule, or itself. ``reach`` is, for each query, how far a precursor may be away.
    Matches have a score of ``least_score`` and ``least_peaks`` matching peaks at least.
    """

    kind: int
    tolerance: float
    reach: npt.NDArray[np.float64]
    allowed: npt.NDArray[np.bool_]
    groups: npt.NDArray[np.int64]
    least_score: float = 0.0
    least_peaks: int = 0


class BestMatches(NamedTuple):
    """The best of each query, the best first; record −1 where there are no more."""

    records: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    matches: npt.NDArray[np.int64]


@compiled
def search_range(
    start: int, end: int, queries: SearchSide, library: SearchSide, by_peak: InvertedIndex,
    by_loss: InvertedIndex, rules: SearchRules, best: BestMatches,
) -> None:  # fmt: skip
    """Fill in the best of the queries from ``start`` to ``end``."""
    records = len(library.ions.precursors)
    bounds = np.zeros(records)
    touched = np.empty(records, np.int64)
    for query in range(start, end):
        count = _sweep(by_peak, queries.peaks, query, rules, bounds, touched, 0)
        count = _sweep(by_loss, queries.losses, query, rules, bounds, touched, count)
        last = best.scores.shape[1] - 1
        for index in range(count):
            record = touched[index]
            bound, bounds[record] = bounds[record], 0.0
            if bound * _ROUNDING < max(best.scores[query, last], rules.least_score):
                continue
            if not _may_match(queries.ions, query, library.ions, record, rules):
                continue
            score, matches = bound, 0
            if rules.kind != ANALOG:
                score, matches = _scored(queries, query, library, record, rules)
            if score > 0 and score >= rules.least_score and matches >= rules.least_peaks:
                _insert(best, query, record, score, matches, rules.groups)
        if rules.kind == ANALOG:
            for index in range(last + 1):
                record = best.records[query, index]
                if record >= 0:
                    best.matches[query, index] = _shared(queries, query, library, record)


@compiled
def _sweep(
    entries: InvertedIndex, lists: PeakLists, query: int, rules: SearchRules,
    bounds: npt.NDArray[np.float64], touched: npt.NDArray[np.int64], count: int,
) -> int:  # fmt: skip
    """Add the largest possible contributions of the query's values to each spectrum's bound."""
    for index in range(lists.pointers[query], lists.pointers[query + 1]):
        value, weight = lists.values[index], lists.weights[index]
        # A little wider than the tolerance: the pairs decide, in their own arithmetic.
        reach = rules.tolerance + 1e-9 + (5e-7 * abs(value) if rules.kind == ENTROPY else 0.0)
        entry = np.searchsorted(entries.values, value - reach)
        while entry < len(entries.values) and entries.values[entry] <= value + reach:
            if rules.kind == ENTROPY:
                added = shared_entropy(weight, entries.weights[entry]) / 2
            else:
                added = weight * entries.weights[entry]
            record = entries.list_index[entry]
            if bounds[record] == 0:
                touched[count] = record
                count += 1
            bounds[record] += max(added, _MIN_ADDED)
            entry += 1
    return count


@compiled
def _may_match(
    queries: PrecursorIons, query: int, library: PrecursorIons, record: int, rules: SearchRules
) -> bool:
    if not rules.allowed[record] or queries.modes[query] * library.modes[record] < 0:
        return False
    off = abs(library.precursors[record] - queries.precursors[query])
    is_near: bool = off <= rules.reach[query]
    return is_near


@compiled
def _scored(
    queries: SearchSide, query: int, library: SearchSide, record: int, rules: SearchRules
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
def _shared(queries: SearchSide, query: int, library: SearchSide, record: int) -> int:
    """Count the bins of peaks that both have."""
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
    best: BestMatches, query: int, record: int, score: float, matches: int,
    groups: npt.NDArray[np.int64],
) -> None:  # fmt: skip
    """Insert a spectrum by score, one of its group at most; of equal scores the earlier leads."""
    size = best.scores.shape[1]
    gap = size - 1  # the place that becomes free
    for index in range(size):
        other = best.records[query, index]
        if other >= 0 and groups[other] == groups[record]:
            gap = index
            break
    previous = best.records[query, gap]
    worse = best.scores[query, gap]
    if previous >= 0 and (score < worse or (score == worse and record > previous)):
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
