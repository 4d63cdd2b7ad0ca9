"""Channel: fragments that explain peaks, weighted by a small network over pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack, vstack

from mzseek.core.compiled import compiled, is_plain
from mzseek.core.ragged import Ragged, pointers, ranges
from mzseek.core.registry import option
from mzseek.evidence.channel import Channel, ChannelState, Features
from mzseek.evidence.queries import MODES, Ints, LabelledQueries, Lists, TrainingSet, in_order
from mzseek.evidence.ranker import fit_logit
from mzseek.fragments import (
    KINDS,
    ExplainedPairs,
    IonForms,
    PeakTable,
    explained_pairs,
    ion_forms,
    kind_lists,
    peak_table,
    plausible,
)
from mzseek.fragments.fragmentation import BONDS
from mzseek.fragments.matching import LEAST, MAX_HYDROGENS_MOVED, PPM, SHIFTS
from mzseek.parallel.engine import Progress, silent
from mzseek.spectra import Spectrum
from mzseek.spectra.parsing import leading_number

Values = npt.NDArray[np.float32]
_ENERGY = 30.0  # where a spectrum states none
_MOST_ENERGY = 1000.0
_FLOOR = 1e-3  # of the highest peak's square root: lower ones are all noise
_OF_PEAK, _OF_ERROR = 9, 3
RADICAL, HYDROGENS = len(BONDS), len(BONDS) + 2
FIRST = HYDROGENS + SHIFTS
WIDTH = FIRST + _OF_PEAK + _OF_ERROR
TOTALS = 3


@dataclass(frozen=True, eq=False)
class PairInputs:
    """Explained peaks of candidates, to be read a few spectra at a time.

    Attributes
    ----------
    pairs : ExplainedPairs
    pair_ends, row_ends : int64 arrays, shape (spectra + 1,)
        Where the pairs, and the candidates, of each spectrum begin.
    of_peak : float32 array, shape (peaks, 9)
        Numbers of each peak that do not depend on a candidate.
    tolerance, peak_share : float64 arrays, shape (peaks,)
    totals : float32 array, shape (rows, 3)
        Of each candidate: logarithm of its number of fragments, share of the spectrum and share of
        the number of peaks that it explains.
    """

    pairs: ExplainedPairs
    pair_ends: Ints
    row_ends: Ints
    of_peak: Values
    tolerance: npt.NDArray[np.float64]
    peak_share: npt.NDArray[np.float64]
    totals: Values

    def __len__(self) -> int:
        return len(self.pair_ends) - 1

    @property
    def share(self) -> npt.NDArray[np.float64]:
        """Share of the spectrum that each pair explains."""
        return self.peak_share[self.pairs.peak]

    @property
    def counted(self) -> Values:
        """What each pair counts: the square root of its peak's share."""
        return np.asarray(np.sqrt(self.of_peak[self.pairs.peak, 0] / 10))

    def rows_of(self, spectra: Ints) -> tuple[Ints, Ints]:
        """Candidates of some spectra, and how many each of them has."""
        starts, ends = self.row_ends[spectra], self.row_ends[spectra + 1]
        return ranges(starts, ends)[1], ends - starts

    def read(self, spectra: Ints) -> tuple[Values, Values, Ints, Ints]:
        """What the network reads of some spectra.

        Returns
        -------
        inputs : float32 array, shape (pairs, WIDTH)
        weights : float32 array, shape (pairs,)
            What each pair counts: the square root of its peak's share.
        places : int64 array, shape (pairs,)
            Its candidate's place among those of these spectra.
        rows : int64 array
            Those candidates.
        """
        own = ranges(self.pair_ends[spectra], self.pair_ends[spectra + 1])[1]
        rows, counts = self.rows_of(spectra)
        # Candidates of the spectra are consecutive within each, and the spectra are not.
        shift = np.cumsum(counts) - counts - self.row_ends[spectra]
        sizes = self.pair_ends[spectra + 1] - self.pair_ends[spectra]
        places = self.pairs.row[own] + np.repeat(shift, sizes)
        peak = self.pairs.peak[own]
        return self._encoded(own, peak), np.sqrt(self.of_peak[peak, 0] / 10), places, rows

    def _encoded(self, own: Ints, peak: Ints) -> Values:
        at = np.arange(len(own))
        found = np.zeros((len(own), WIDTH), np.float32)
        found[at, self.pairs.code[own]] = 1
        found[at, RADICAL + self.pairs.radical[own]] = 1
        found[at, HYDROGENS + MAX_HYDROGENS_MOVED + self.pairs.hydrogens[own]] = 1
        numbers = self.of_peak.shape[1]
        found[:, FIRST : FIRST + numbers] = self.of_peak[peak]
        error = self.pairs.error[own] / self.tolerance[peak]
        found[:, FIRST + numbers] = error
        found[:, FIRST + numbers + 1] = np.abs(error)
        found[:, FIRST + numbers + 2] = np.exp(-8 * error**2)
        return found


def pair_inputs(
    lists: Lists, forms: list[IonForms], worth: npt.NDArray[np.float64], ppm: float, least: float
) -> PairInputs:
    """Explained peaks of all candidates; `worth` chooses among explanations of a peak."""
    peaks = peak_table(lists.spectra, forms, ppm=ppm, least=least)
    table = lists.molecules.fragments
    pairs = explained_pairs(peaks, table, lists.candidates, lists.counts, worth)
    of_spectrum = np.diff(peaks.starts)
    rows = lists.ragged.total
    share = np.bincount(pairs.row, peaks.shares[pairs.peak], minlength=rows)
    number = np.bincount(pairs.row, minlength=rows)
    totals = np.stack(
        [
            np.log1p(np.diff(table.starts)[lists.candidates]),
            share,
            number / np.maximum(lists.ragged.repeat_per_list(of_spectrum), 1),
        ],
        1,
    )
    return PairInputs(
        pairs, pointers(pairs.counts), pointers(lists.counts), _of_peaks(peaks, lists.spectra),
        peaks.tolerances, peaks.shares, totals.astype(np.float32),
    )  # fmt: skip


def _of_peaks(peaks: PeakTable, spectra: Sequence[Spectrum]) -> Values:
    """Numbers of each peak: how high it is, where it lies, how the spectrum was taken."""
    counts = np.diff(peaks.starts)
    precursor = np.repeat([spectrum.precursor_mz for spectrum in spectra], counts)
    energy = np.repeat([_energy(spectrum) for spectrum in spectra], counts)
    highest = np.ones(len(counts))
    filled = np.flatnonzero(counts)
    if len(filled):
        highest[filled] = np.maximum.reduceat(peaks.shares, peaks.starts[filled])
    relative = peaks.shares / np.repeat(highest, counts)
    columns = [
        10 * peaks.shares,
        relative,
        np.log(relative + _FLOOR),
        peaks.mz / precursor,
        peaks.mz / 200,
        np.log(peaks.mz / 100),
        energy / 50,
        np.log1p(np.repeat(counts, counts)) / 3,
        (precursor - peaks.mz) / 200,
    ]
    return np.stack(columns, 1).astype(np.float32)


def _energy(spectrum: Spectrum) -> float:
    """Collision energy, as it stands there: volts and per cent are not told apart."""
    stated = leading_number(spectrum.metadata.get("collision_energy", ""))
    return _ENERGY if stated is None or not 0 < stated < _MOST_ENERGY else stated


Floats = npt.NDArray[np.float64]
_AT_ONCE = 1_000  # pairs that numpy reads at a time, so that they stay in the cache


def worths(weights: Mapping[str, npt.NDArray[np.floating]], inputs: PairInputs) -> Floats:
    """What each pair is worth, before its peak's share is counted in."""
    pairs, found = inputs.pairs, np.zeros(len(inputs.pairs.row))
    rows = np.stack(
        [
            np.asarray(pairs.code, np.int64),
            RADICAL + np.asarray(pairs.radical, np.int64),
            HYDROGENS + MAX_HYDROGENS_MOVED + np.asarray(pairs.hydrogens, np.int64),
        ]
    )
    # As the network has seen them when it was trained: rounded.
    error = np.asarray(pairs.error / inputs.tolerance[pairs.peak], np.float32).astype(np.float64)
    # The exponential by numpy in both cases: that of machine code may differ in the last bit.
    of_error = np.stack([error, np.abs(error), np.exp(-8 * error**2)], 1)
    own = {name: np.ascontiguousarray(values, np.float64) for name, values in weights.items()}
    fill = _fill_by_units if is_plain() else _fill
    fill(
        rows, np.asarray(pairs.peak, np.int64), inputs.of_peak, of_error,
        own["first"], own["first_bias"], own["second"], own["second_bias"],
        own["last"], own["last_bias"], found,
    )  # fmt: skip
    return found


@compiled
def _fill(
    rows: Ints,
    peak: Ints,
    of_peak: npt.NDArray[np.float32],
    of_error: Floats,
    first: Floats,
    first_bias: Floats,
    second: Floats,
    second_bias: Floats,
    last: Floats,
    last_bias: Floats,
    found: Floats,
) -> None:
    width = of_peak.shape[1]
    one, two = np.zeros(len(first_bias)), np.zeros(len(second_bias))
    numbers = np.zeros(width + 3)
    for pair in range(len(peak)):
        numbers[:width] = of_peak[peak[pair]]
        numbers[width:] = of_error[pair]
        one[:] = first_bias
        for kind in range(3):
            row = rows[kind, pair]
            for unit in range(len(one)):
                one[unit] += first[row, unit]
        for number in range(len(numbers)):
            value = numbers[number]
            for unit in range(len(one)):
                one[unit] += value * first[FIRST + number, unit]
        two[:] = second_bias
        for before in range(len(one)):
            value = one[before]
            if value > 0:
                for unit in range(len(two)):
                    two[unit] += value * second[before, unit]
        worth = last_bias[0]
        for unit in range(len(two)):
            worth += max(two[unit], 0.0) * last[unit]
        found[pair] = worth


def _fill_by_units(
    rows: Ints,
    peak: Ints,
    of_peak: npt.NDArray[np.float32],
    of_error: Floats,
    first: Floats,
    first_bias: Floats,
    second: Floats,
    second_bias: Floats,
    last: Floats,
    last_bias: Floats,
    found: Floats,
) -> None:
    """Fill as `_fill` does, to the same bits, by numpy: unit by unit for many pairs."""
    for start in range(0, len(peak), _AT_ONCE):
        own = slice(start, start + _AT_ONCE)
        numbers = np.hstack([of_peak[peak[own]].astype(np.float64), of_error[own]]).T
        one = np.repeat(first_bias[:, None], numbers.shape[1], axis=1)
        for kind in rows[:, own]:
            one += first[kind].T
        for number, weights in zip(numbers, first[FIRST:], strict=True):
            one += number * weights[:, None]
        two = np.repeat(second_bias[:, None], numbers.shape[1], axis=1)
        for value, weights in zip(np.maximum(one, 0), second, strict=True):
            two += value * weights[:, None]
        worth = np.full(numbers.shape[1], last_bias[0])
        for value, weight in zip(np.maximum(two, 0), last, strict=True):
            worth += value * weight
        found[own] = worth


Weights = dict[str, Values]
HIDDEN = 64
SHAPES = {
    "first": (WIDTH, HIDDEN), "first_bias": (HIDDEN,),
    "second": (HIDDEN, HIDDEN), "second_bias": (HIDDEN,),
    "last": (HIDDEN,), "last_bias": (1,), "totals": (TOTALS,),
}  # fmt: skip
_BATCH, _WARMUP, _DECAY = 64, 50, 1e-3


@dataclass(frozen=True)
class Lesson:
    """How a network is trained: passes over the spectra, the highest step, the seed."""

    epochs: int = 16
    lr: float = 3e-3
    seed: int = 0


def pair_scores(weights: Mapping[str, Values], inputs: PairInputs) -> Values:
    """Score of every candidate: the worth of the peaks that it explains, and its totals.

    Sums are in double precision and in a fixed order: what is said of a spectrum does not depend
    on those beside it.
    """
    weights = {name: values.astype(np.float64) for name, values in weights.items()}
    values = worths(weights, inputs) * inputs.counted
    added = np.bincount(inputs.pairs.row, values, minlength=int(inputs.row_ends[-1]))
    found: Values = (added + (inputs.totals * weights["totals"]).sum(1)).astype(np.float32)
    return found


def train_pairs(
    inputs: PairInputs,
    labels: npt.NDArray[np.bool_],
    shares: npt.NDArray[np.floating],
    lesson: Lesson,
    progress: Progress = silent,
) -> Weights:
    """Weights under which the labelled candidates are most probable.

    Parameters
    ----------
    inputs : PairInputs
    labels : bool array, a value for each candidate
        Each spectrum has one at least.
    shares : array, shape (spectra,)
        What each spectrum counts.
    lesson : Lesson
    progress : callable
    """
    random = np.random.default_rng(lesson.seed)
    weights = _drawn(random)
    moments = {name: (np.zeros_like(w), np.zeros_like(w)) for name, w in weights.items()}
    share = np.asarray(shares / np.mean(shares), np.float32)
    steps = lesson.epochs * -(-len(inputs) // _BATCH)
    step = 0
    for _ in range(lesson.epochs):
        order = random.permutation(len(inputs))
        for first in range(0, len(order), _BATCH):
            spectra = order[first : first + _BATCH]
            gradient = _gradient(weights, inputs, spectra, labels, share[spectra])
            step += 1
            rate = lesson.lr * min(1.0, step / _WARMUP) * (1 - (step - 1) / steps)
            _adam(weights, gradient, moments, rate, step)
            progress("worth of pairs", step, steps)
    return weights


@dataclass(frozen=True, eq=False)
class _Kept:
    """What the way back needs of the way there."""

    inputs: Values
    first: Values
    second: Values
    values: Values
    shares: Values
    places: Ints


def _forward(
    weights: Mapping[str, Values], inputs: PairInputs, spectra: Ints
) -> tuple[Values, Ints, _Kept]:
    """Scores of the candidates of some spectra, and those candidates."""
    given, shares, places, rows = inputs.read(spectra)
    first = np.maximum(given @ weights["first"] + weights["first_bias"], 0)
    second = np.maximum(first @ weights["second"] + weights["second_bias"], 0)
    values = second @ weights["last"] + weights["last_bias"]
    added = np.bincount(places, values * shares, minlength=len(rows)).astype(values.dtype)
    scores: Values = added + inputs.totals[rows] @ weights["totals"]
    return scores, rows, _Kept(given, first, second, values, shares, places)


def _gradient(
    weights: Weights,
    inputs: PairInputs,
    spectra: Ints,
    labels: npt.NDArray[np.bool_],
    share: Values,
) -> Weights:
    """Of the mean of −log p(truth) over some spectra."""
    scores, rows, kept = _forward(weights, inputs, spectra)
    lists = Ragged(inputs.rows_of(spectra)[1])
    p = np.exp(scores - lists.repeat_per_list(lists.max(scores)))
    p /= lists.repeat_per_list(lists.sum(p))
    of_truth = np.where(labels[rows], p, 0)
    of_truth /= lists.repeat_per_list(np.maximum(lists.sum(of_truth), np.finfo(np.float32).tiny))
    slope = ((p - of_truth) * lists.repeat_per_list(share) / len(spectra)).astype(np.float32)
    of_value = slope[kept.places] * kept.shares
    of_second = np.outer(of_value, weights["last"]) * (kept.second > 0)
    of_first = (of_second @ weights["second"].T) * (kept.first > 0)
    return {
        "first": kept.inputs.T @ of_first,
        "first_bias": of_first.sum(0),
        "second": kept.first.T @ of_second,
        "second_bias": of_second.sum(0),
        "last": kept.second.T @ of_value,
        "last_bias": of_value.sum(keepdims=True),
        "totals": inputs.totals[rows].T @ slope,
    }


def _drawn(random: np.random.Generator) -> Weights:
    """Weights to begin with: uniform within ±1/√inputs, and no word from the totals."""
    found: Weights = {}
    for name, shape in SHAPES.items():
        width = SHAPES[name.removesuffix("_bias")][0]
        drawn = random.uniform(-1, 1, shape) / np.sqrt(width)
        found[name] = drawn.astype(np.float32) * (name != "totals")
    return found


def _adam(
    weights: Weights,
    gradient: Weights,
    moments: dict[str, tuple[Values, Values]],
    rate: float,
    step: int,
) -> None:
    """One step of AdamW, in place."""
    for name, slope in gradient.items():
        mean, square = moments[name]
        mean += 0.1 * (slope - mean)
        square += 0.001 * (slope**2 - square)
        unbiased = mean / (1 - 0.9**step)
        spread = np.sqrt(square / (1 - 0.999**step)) + 1e-8
        weights[name] *= 1 - rate * _DECAY
        weights[name] -= (rate * unbiased / spread).astype(np.float32)


_WORTH = "worth"  # of ways, beside the network's weights
_FEW = 50  # molecules: with fewer, an ion mode has the weights of both
# The ions that a spectrum without an adduct is read as.
_USUAL = {1: "[M+H]+", 0: "[M+H]+", -1: "[M-H]-"}


@dataclass(frozen=True)
class FragmentOptions:
    """Options of the fragment channel."""

    ppm: float = option(PPM, "tolerance of a peak", above=0, most=1000)
    least: float = option(LEAST, "m/z that is always within the tolerance", least=0, most=1)
    rounds: int = option(2, "times that explanations are chosen and their worth is fitted", least=1)
    l2: float = option(1e-4, "penalty on the squares of weights", least=0)
    epochs: int = option(16, "passes over the spectra that teach the network", least=1, most=100)
    seed: int = option(0, "of the network's first weights", least=0)


class Fragments(Channel):
    """Peaks that the fragments of a candidate explain."""

    name: ClassVar[str] = "fragments"
    options_type: ClassVar[type] = FragmentOptions
    reads_fragments: ClassVar[bool] = True
    shapes: ClassVar[Mapping[str, tuple[int, ...]]] = {
        f"{mode}.{name}": shape
        for mode in MODES
        for name, shape in {_WORTH: KINDS, **SHAPES}.items()
    }
    feature_names = (
        "pairs",
        "worth",
        "no break",
        "one break",
        "two breaks",
        "three breaks",
        "radicals",
        "ways",
        "pieces",
    )

    def learn(self, lessons: TrainingSet, progress: Progress = silent) -> ChannelState:
        """What explained peaks are worth, by ion mode where there are molecules enough."""
        asked = in_order(lessons.questions)
        shared: dict[str, npt.NDArray[np.floating]] | None = None
        arrays: dict[str, npt.NDArray[np.floating]] = {}
        for name, sign in MODES.items():
            own = np.flatnonzero(asked.lists.modes == sign)
            if len(own) < len(asked) and len(np.unique(asked.blocks[own])) >= _FEW:
                learned = self._learned(asked.only(own), progress)
            else:
                shared = self._learned(asked, progress) if shared is None else shared
                learned = shared
            arrays |= {f"{name}.{what}": array for what, array in learned.items()}
        return ChannelState(arrays, {}, lessons.learned_from)

    def _learned(
        self, asked: LabelledQueries, progress: Progress
    ) -> dict[str, npt.NDArray[np.floating]]:
        """Worth of ways, and the network's weights."""
        worth = self._worth(asked, progress)
        lesson = Lesson(self.options.epochs, seed=self.options.seed)
        inputs, shares = self._inputs(asked.lists, worth), np.sqrt(asked.weights())
        return {_WORTH: worth, **train_pairs(inputs, asked.labels, shares, lesson, progress)}

    def features(self, learned: ChannelState, lists: Lists) -> Features:
        """Shares of the spectrum (square roots of intensities) by the way they are explained."""
        found = np.zeros((lists.ragged.total, len(self.feature_names)), np.float32)
        for here, part in lists.in_parts():
            own = found[here]
            for name, sign in MODES.items():
                of_mode = np.flatnonzero(part.modes == sign if sign < 0 else part.modes >= 0)
                if len(of_mode):
                    rows = np.isin(part.ragged.list_index, of_mode)
                    own[rows] = self._pooled(part.only(of_mode), _of_mode(learned, name))
        return found

    def _pooled(self, lists: Lists, learned: Mapping[str, npt.NDArray[np.floating]]) -> Features:
        worth = np.asarray(learned[_WORTH], np.float64)
        weights: dict[str, Values] = {name: learned[name] for name in SHAPES}
        inputs = self._inputs(lists, worth)
        row, kind, share = inputs.pairs.row, inputs.pairs.kind, inputs.share
        breaks, radical = BONDS[inputs.pairs.code], inputs.pairs.radical
        total = lists.ragged.total

        def summed(values: npt.NDArray[np.floating]) -> Floats:
            return np.bincount(row, values, minlength=total).astype(np.float64)

        ways = np.unique(row * worth.size + kind) // worth.size
        columns: list[npt.NDArray[Any]] = [
            pair_scores(weights, inputs),
            summed(share * worth.reshape(-1)[kind]),
            *(summed(share * (breaks == each)) for each in range(int(BONDS.max()) + 1)),
            summed(share * (radical > 0)),
            np.bincount(ways, minlength=total),
            _log_fragments(lists),
        ]
        return np.stack(columns, 1).astype(np.float32)

    def _kinds(self, lists: Lists, worth: Floats) -> npt.NDArray[np.float32]:
        """Share of each spectrum that each candidate explains in each way."""
        peaks = peak_table(
            lists.spectra, _forms(lists), ppm=self.options.ppm, least=self.options.least
        )
        return kind_lists(peaks, lists.molecules.fragments, lists.candidates, lists.counts, worth)

    def _inputs(self, lists: Lists, worth: Floats) -> PairInputs:
        return pair_inputs(lists, _forms(lists), worth, self.options.ppm, self.options.least)

    def _worth(self, asked: LabelledQueries, progress: Progress) -> Floats:
        """Weights of ways; explanations are chosen by the last ones, at first by plausibility.

        The number of fragments is fitted along, and not kept: a candidate of many fragments
        explains more by chance, which must not make explained peaks look worthless.
        """
        worth = plausible()
        for turn in range(self.options.rounds):
            progress("worth of fragments", turn, self.options.rounds)
            parts = [
                csr_array(self._kinds(part, worth).reshape(-1, worth.size))
                for _, part in asked.lists.in_parts()
            ]
            fragments = csr_array(_log_fragments(asked.lists)[:, None])
            design = hstack([vstack(parts), fragments]).tocsr().astype(np.float64)
            fitted = fit_logit(
                design, asked.lists.counts, asked.labels, asked.weights(), self.options.l2
            )
            worth = fitted[:-1].reshape(KINDS)
        return worth


def _log_fragments(lists: Lists) -> Floats:
    sizes = np.diff(lists.molecules.fragments.starts)
    return np.asarray(np.log1p(sizes[lists.candidates]), np.float64)


def _of_mode(learned: ChannelState, mode: str) -> dict[str, npt.NDArray[np.floating]]:
    return {name: learned.arrays[f"{mode}.{name}"] for name in (_WORTH, *SHAPES)}


def _forms(lists: Lists) -> list[IonForms]:
    return [
        ion_forms(spectrum.adduct or _USUAL[int(mode)])
        for spectrum, mode in zip(lists.spectra, lists.modes, strict=True)
    ]
