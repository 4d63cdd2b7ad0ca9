"""Channel: fragments that explain peaks, weighted by a small network over pairs.

A pair is a candidate and a peak that one of its fragments explains. The network is numpy's: the
base install has no torch, and sums in a fixed order keep scores independent of the batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack, vstack

from mzseek.core.compiled import compiled, is_plain
from mzseek.core.ragged import Ragged, pointers, ranges
from mzseek.core.registry import option
from mzseek.evidence.model import Channel, ChannelState, Features
from mzseek.evidence.queries import MODES, Flags, Ints, Queries, TrainingSet
from mzseek.evidence.ranker import fit_logit
from mzseek.fragments import (
    KINDS,
    ExplainedPairs,
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
from mzseek.spectra.records import leading_number

Values = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Weights = dict[str, Values]
_DEFAULT_ENERGY, _MAX_ENERGY = 30.0, 1000.0
_FLOOR = 1e-3  # of the highest peak's square root: lower ones are all noise
_OF_PEAK, _OF_ERROR = 9, 3
# Columns of the network's input: bond codes, radical or not, hydrogens, then numbers.
RADICAL, HYDROGENS = len(BONDS), len(BONDS) + 2
FIRST = HYDROGENS + SHIFTS
WIDTH = FIRST + _OF_PEAK + _OF_ERROR
HIDDEN = 64
SHAPES = {
    "first": (WIDTH, HIDDEN), "first_bias": (HIDDEN,),
    "second": (HIDDEN, HIDDEN), "second_bias": (HIDDEN,),
    "last": (HIDDEN,), "last_bias": (1,), "totals": (3,),
}  # fmt: skip
_LAYERS = tuple(name for name in SHAPES if name != "totals")
_BATCH_PAIRS = 1_000  # that numpy reads at a time, so that they stay in the cache
_BATCH, _WARMUP, _DECAY = 64, 50, 1e-3
_RATE, _RATE_AGAIN = 3e-3, 2e-3  # of learning: at first, and for one ion mode after both
_WORTH = "worth"  # of explanations by kind, beside the network's weights
_MIN_MOLECULES = 50  # with fewer, an ion mode has the weights of both


@dataclass(frozen=True, eq=False)
class PairInputs:
    """Explained peaks of candidates, to be read a few spectra at a time.

    ``totals`` has, for each candidate, the logarithm of its number of fragments, the share of the
    intensity and the share of the number of peaks that it explains.
    """

    pairs: ExplainedPairs
    pair_ends: Ints  # where the pairs of each spectrum begin, shape (spectra + 1,) …
    row_ends: Ints  # … and where its candidates begin
    of_peak: Values  # inputs that depend on the peak alone, shape (peaks, 9)
    tolerance: Floats  # shape (peaks,)
    peak_share: Floats  # shape (peaks,)
    totals: Values  # shape (candidates, 3)

    def __len__(self) -> int:
        return len(self.pair_ends) - 1

    def read(self, spectra: Ints) -> tuple[Values, Values, Ints, Ints]:
        """Return the network's input for some spectra, shape (pairs, WIDTH), and three arrays more.

        They are the square root of the share of each pair's peak, the index of its candidate among
        those of these spectra, and those candidates.
        """
        pairs = ranges(self.pair_ends[spectra], self.pair_ends[spectra + 1])[1]
        starts, ends = self.row_ends[spectra], self.row_ends[spectra + 1]
        counts = ends - starts
        # Candidates are consecutive within a spectrum, and the spectra are not.
        shift = np.cumsum(counts) - counts - starts
        sizes = self.pair_ends[spectra + 1] - self.pair_ends[spectra]
        index = self.pairs.row[pairs] + np.repeat(shift, sizes)
        peak, at = self.pairs.peak[pairs], np.arange(len(pairs))
        inputs = np.zeros((len(pairs), WIDTH), np.float32)
        inputs[at, self.pairs.code[pairs]] = 1
        inputs[at, RADICAL + self.pairs.radical[pairs]] = 1
        inputs[at, HYDROGENS + MAX_HYDROGENS_MOVED + self.pairs.hydrogens[pairs]] = 1
        inputs[:, FIRST : FIRST + _OF_PEAK] = self.of_peak[peak]
        error = self.pairs.error[pairs] / self.tolerance[peak]
        inputs[:, FIRST + _OF_PEAK] = error
        inputs[:, FIRST + _OF_PEAK + 1] = np.abs(error)
        inputs[:, FIRST + _OF_PEAK + 2] = np.exp(-8 * error**2)
        return inputs, np.sqrt(self.of_peak[peak, 0] / 10), index, ranges(starts, ends)[1]


def pair_inputs(queries: Queries, worth: Floats, ppm: float, least: float) -> PairInputs:
    """Explain peaks by all candidates; `worth` of each kind chooses among explanations."""
    peaks = peaks_of_spectra(queries.spectra, ppm, least)
    fragments = queries.molecules.fragments
    pairs = explained_pairs(peaks, fragments, queries.candidates, queries.counts, worth)
    rows = queries.ragged.total
    share = np.bincount(pairs.row, peaks.shares[pairs.peak], minlength=rows)
    number = np.bincount(pairs.row, minlength=rows)
    peak_counts = queries.ragged.repeat_per_list(np.diff(peaks.starts))
    totals = np.stack([_log_fragments(queries), share, number / np.maximum(peak_counts, 1)], 1)
    return PairInputs(
        pairs, pointers(pairs.counts), pointers(queries.counts), _peak_inputs(peaks, queries),
        peaks.tolerances, peaks.shares, totals.astype(np.float32),
    )  # fmt: skip


def adduct_of(spectrum: Spectrum) -> str:
    """Adduct as stated; [M+H]+, or [M-H]- in negative mode, where none is."""
    return spectrum.adduct or ("[M-H]-" if spectrum.polarity < 0 else "[M+H]+")


def peaks_of_spectra(spectra: Sequence[Spectrum], ppm: float, least: float) -> PeakTable:
    """Peaks of spectra with the ions that fragments of their adducts can be."""
    forms = [ion_forms(adduct_of(spectrum)) for spectrum in spectra]
    return peak_table(spectra, forms, ppm=ppm, least=least)


def _log_fragments(queries: Queries) -> Floats:
    counts = np.diff(queries.molecules.fragments.starts)
    return np.asarray(np.log1p(counts[queries.candidates]), np.float64)


def _peak_inputs(peaks: PeakTable, queries: Queries) -> Values:
    """Inputs by peak: relative heights, m/z, collision energy, number of peaks, neutral loss."""
    counts = np.diff(peaks.starts)
    precursor = np.repeat([spectrum.precursor_mz for spectrum in queries.spectra], counts)
    energy = np.repeat([collision_energy(spectrum) for spectrum in queries.spectra], counts)
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


def collision_energy(spectrum: Spectrum) -> float:
    """Collision energy as stated; eV and normalised energies are not distinguished."""
    stated = leading_number(spectrum.metadata.get("collision_energy", ""))
    return _DEFAULT_ENERGY if stated is None or not 0 < stated < _MAX_ENERGY else stated


def pair_worths(weights: Mapping[str, npt.NDArray[np.floating]], inputs: PairInputs) -> Floats:
    """Output of the network for each pair, before it is weighted by its peak's share."""
    pairs, worths = inputs.pairs, np.zeros(len(inputs.pairs.row))
    rows = np.stack(
        [
            np.asarray(pairs.code, np.int64),
            RADICAL + np.asarray(pairs.radical, np.int64),
            HYDROGENS + MAX_HYDROGENS_MOVED + np.asarray(pairs.hydrogens, np.int64),
        ]
    )
    # Rounded as the network has seen it in training.
    error = np.asarray(pairs.error / inputs.tolerance[pairs.peak], np.float32).astype(np.float64)
    # The exponential by numpy in both cases: that of machine code may differ in the last bit.
    of_error = np.stack([error, np.abs(error), np.exp(-8 * error**2)], 1)
    double = {name: np.ascontiguousarray(values, np.float64) for name, values in weights.items()}
    network = tuple(double[name] for name in _LAYERS)
    fill = _fill_by_units if is_plain() else _fill
    fill(rows, np.asarray(pairs.peak, np.int64), inputs.of_peak, of_error, network, worths)
    return worths


@compiled
def _fill(
    rows: Ints, peak: Ints, of_peak: Values, of_error: Floats, network: Any, worths: Floats
) -> None:
    """Fill `worths` with the network's output for each pair."""
    first, first_bias, second, second_bias, last, last_bias = network
    width = of_peak.shape[1]
    hidden, two = np.zeros(len(first_bias)), np.zeros(len(second_bias))
    numbers = np.zeros(width + 3)
    for pair in range(len(peak)):
        numbers[:width] = of_peak[peak[pair]]
        numbers[width:] = of_error[pair]
        hidden[:] = first_bias
        for kind in range(3):
            row = rows[kind, pair]
            for unit in range(len(hidden)):
                hidden[unit] += first[row, unit]
        for number in range(len(numbers)):
            value = numbers[number]
            for unit in range(len(hidden)):
                hidden[unit] += value * first[FIRST + number, unit]
        two[:] = second_bias
        for before in range(len(hidden)):
            value = hidden[before]
            if value > 0:
                for unit in range(len(two)):
                    two[unit] += value * second[before, unit]
        worth = last_bias[0]
        for unit in range(len(two)):
            worth += max(two[unit], 0.0) * last[unit]
        worths[pair] = worth


def _fill_by_units(
    rows: Ints, peak: Ints, of_peak: Values, of_error: Floats, network: Any, worths: Floats
) -> None:
    """Fill as `_fill` does, to the same bits, by numpy: unit by unit for many pairs."""
    first, first_bias, second, second_bias, last, last_bias = network
    for start in range(0, len(peak), _BATCH_PAIRS):
        batch = slice(start, start + _BATCH_PAIRS)
        numbers = np.hstack([of_peak[peak[batch]].astype(np.float64), of_error[batch]]).T
        hidden = np.repeat(first_bias[:, None], numbers.shape[1], axis=1)
        for kind in rows[:, batch]:
            hidden += first[kind].T
        for number, weights in zip(numbers, first[FIRST:], strict=True):
            hidden += number * weights[:, None]
        two = np.repeat(second_bias[:, None], numbers.shape[1], axis=1)
        for value, weights in zip(np.maximum(hidden, 0), second, strict=True):
            two += value * weights[:, None]
        worth = np.full(numbers.shape[1], last_bias[0])
        for value, weight in zip(np.maximum(two, 0), last, strict=True):
            worth += value * weight
        worths[batch] = worth


def pair_scores(weights: Mapping[str, Values], inputs: PairInputs) -> Values:
    """Score of every candidate: the summed worth of the peaks that it explains, and its totals.

    Sums are in double precision and in a fixed order: the score of a spectrum's candidates does
    not depend on the spectra beside it.
    """
    double = {name: values.astype(np.float64) for name, values in weights.items()}
    values = pair_worths(double, inputs) * np.sqrt(inputs.of_peak[inputs.pairs.peak, 0] / 10)
    summed = np.bincount(inputs.pairs.row, values, minlength=int(inputs.row_ends[-1]))
    scores: Values = (summed + (inputs.totals * double["totals"]).sum(1)).astype(np.float32)
    return scores


def train_pairs(
    inputs: PairInputs,
    labels: Flags,
    shares: npt.NDArray[np.floating],
    *,
    epochs: int = 16,
    lr: float = _RATE,
    seed: int = 0,
    start: Mapping[str, Values] | None = None,
    progress: Progress = silent,
) -> Weights:
    """Train the network to make the labelled candidates most probable, by AdamW.

    Each spectrum has a label at least, and ``shares`` are the weights of spectra. The network
    starts from the weights ``start``, or from random ones.
    """
    random = np.random.default_rng(seed)
    weights = initial_weights(random)
    if start is not None:
        weights = {name: start[name].copy() for name in weights}
    moments = {name: (np.zeros_like(w), np.zeros_like(w)) for name, w in weights.items()}
    share = np.asarray(shares / np.mean(shares), np.float32)
    steps = epochs * -(-len(inputs) // _BATCH)
    step = 0
    for _ in range(epochs):
        order = random.permutation(len(inputs))
        for first in range(0, len(order), _BATCH):
            spectra = order[first : first + _BATCH]
            gradients = _gradients(weights, inputs, spectra, labels, share[spectra])
            step += 1
            rate = lr * min(1.0, step / _WARMUP) * (1 - (step - 1) / steps)
            for name, slope in gradients.items():
                mean, square = moments[name]
                mean += 0.1 * (slope - mean)
                square += 0.001 * (slope**2 - square)
                unbiased = mean / (1 - 0.9**step)
                scale = np.sqrt(square / (1 - 0.999**step)) + 1e-8
                weights[name] *= 1 - rate * _DECAY
                weights[name] -= (rate * unbiased / scale).astype(np.float32)
            progress("worth of pairs", step, steps)
    return weights


def initial_weights(random: np.random.Generator) -> Weights:
    """Draw weights uniformly within ±1/√inputs; those of the totals are 0."""
    weights: Weights = {}
    for name, shape in SHAPES.items():
        width = SHAPES[name.removesuffix("_bias")][0]
        drawn = random.uniform(-1, 1, shape) / np.sqrt(width)
        weights[name] = drawn.astype(np.float32) * (name != "totals")
    return weights


def _layers(weights: Mapping[str, Values], inputs: Values) -> tuple[Values, Values, Values]:
    """Hidden layers and output of the network."""
    first = np.maximum(inputs @ weights["first"] + weights["first_bias"], 0)
    second = np.maximum(first @ weights["second"] + weights["second_bias"], 0)
    return first, second, second @ weights["last"] + weights["last_bias"]


def _gradients(
    weights: Weights, inputs: PairInputs, spectra: Ints, labels: Flags, share: Values
) -> Weights:
    """Gradients of the mean of −log p(truth) over some spectra."""
    values_in, roots, index, rows = inputs.read(spectra)
    first, second, values = _layers(weights, values_in)
    summed = np.bincount(index, values * roots, minlength=len(rows)).astype(values.dtype)
    scores: Values = summed + inputs.totals[rows] @ weights["totals"]
    lists = Ragged(inputs.row_ends[spectra + 1] - inputs.row_ends[spectra])
    p = np.exp(scores - lists.repeat_per_list(lists.max(scores)))
    p /= lists.repeat_per_list(lists.sum(p))
    of_truth = np.where(labels[rows], p, 0)
    of_truth /= lists.repeat_per_list(np.maximum(lists.sum(of_truth), np.finfo(np.float32).tiny))
    slope = ((p - of_truth) * lists.repeat_per_list(share) / len(spectra)).astype(np.float32)
    of_value = slope[index] * roots
    of_second = np.outer(of_value, weights["last"]) * (second > 0)
    of_first = (of_second @ weights["second"].T) * (first > 0)
    return {
        "first": values_in.T @ of_first,
        "first_bias": of_first.sum(0),
        "second": first.T @ of_second,
        "second_bias": of_second.sum(0),
        "last": second.T @ of_value,
        "last_bias": of_value.sum(keepdims=True),
        "totals": inputs.totals[rows].T @ slope,
    }


@dataclass(frozen=True)
class FragmentOptions:
    """Options of the fragment channel."""

    ppm: float = option(PPM, "tolerance of a peak", above=0, at_most=1000)
    least: float = option(LEAST, "m/z that is always within the tolerance", at_least=0, at_most=1)
    rounds: int = option(
        2, "times that explanations are chosen and their worth is fitted", at_least=1
    )
    l2: float = option(1e-4, "penalty on the squares of weights", at_least=0)
    epochs: int = option(
        16, "passes over the spectra that train the network", at_least=1, at_most=100
    )
    seed: int = option(0, "of the network's first weights", at_least=0)


class Fragments(Channel):
    """Peaks that the fragments of a candidate explain."""

    name: ClassVar[str] = "fragments"
    options_type: ClassVar[type] = FragmentOptions
    needs_fragments: ClassVar[bool] = True
    shapes: ClassVar[Mapping[str, tuple[int, ...]]] = {
        f"{mode}.{name}": shape
        for mode in MODES
        for name, shape in {_WORTH: KINDS, **SHAPES}.items()
    }
    feature_names = (
        "pairs", "worth", "no break", "one break", "two breaks", "three breaks", "radicals",
        "ways", "pieces",
    )  # fmt: skip

    def fit(self, training_set: TrainingSet, progress: Progress = silent) -> ChannelState:
        """Fit the worth of explained peaks, by ion mode where there are enough molecules."""
        queries = training_set.queries.in_canonical_order()
        both = self._fit(queries, progress)
        arrays: dict[str, npt.NDArray[np.floating]] = {}
        for mode, sign in MODES.items():
            inside = np.flatnonzero(queries.modes == sign)
            molecules = len(np.unique(queries.inchikey14[inside]))
            fitted = both
            if len(inside) < len(queries) and molecules >= _MIN_MOLECULES:
                fitted = self._fit(queries.only(inside), progress, both)
            arrays |= {f"{mode}.{name}": array for name, array in fitted.items()}
        return ChannelState(arrays, {}, training_set.molecules_used)

    def _fit(
        self,
        queries: Queries,
        progress: Progress,
        both: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> dict[str, npt.NDArray[np.floating]]:
        """Worth of explanations by kind, and the network's weights.

        With ``both``, fitted on both ion modes, the network starts from its weights, and is trained
        half as long: a mode learns from the other how fragments come about.

        Explanations are chosen by the last worths, at first by plausibility. The number of
        fragments is fitted along, and not kept: a candidate of many fragments explains more by
        chance, which must not make explained peaks look worthless.
        """
        options, worth = self.options, plausible()
        for turn in range(options.rounds):
            progress("worth of fragments", turn, options.rounds)
            parts = []
            for _, part in queries.in_parts():
                peaks = peaks_of_spectra(part.spectra, options.ppm, options.least)
                kinds = kind_lists(
                    peaks, part.molecules.fragments, part.candidates, part.counts, worth
                )
                parts.append(csr_array(kinds.reshape(-1, worth.size)))
            number = csr_array(_log_fragments(queries)[:, None])
            design = hstack([vstack(parts), number]).tocsr().astype(np.float64)
            weights = queries.molecule_weights()
            fitted = fit_logit(design, queries.counts, queries.labels, weights, options.l2)
            worth = fitted[:-1].reshape(KINDS)
        network = train_pairs(
            pair_inputs(queries, worth, options.ppm, options.least), queries.labels,
            np.sqrt(queries.molecule_weights()),
            epochs=options.epochs if both is None else max(1, options.epochs // 2),
            lr=_RATE if both is None else _RATE_AGAIN,
            seed=options.seed, start=both, progress=progress,
        )  # fmt: skip
        return {_WORTH: worth, **network}

    def features(self, state: ChannelState, queries: Queries) -> Features:
        """Shares of the spectrum (square roots of intensities) by how they are explained."""
        values = np.zeros((queries.ragged.total, len(self.feature_names)), np.float32)
        for rows, part in queries.in_parts():
            for mode, sign in MODES.items():
                inside = np.flatnonzero(part.modes == sign if sign < 0 else part.modes >= 0)
                if len(inside):
                    values[rows][part.rows(inside)] = self._features(state, mode, part.only(inside))
        return values

    def _features(self, state: ChannelState, mode: str, queries: Queries) -> Features:
        worth = np.asarray(state.arrays[f"{mode}.{_WORTH}"], np.float64)
        weights: Weights = {name: state.arrays[f"{mode}.{name}"] for name in SHAPES}
        inputs = pair_inputs(queries, worth, self.options.ppm, self.options.least)
        row, kind = inputs.pairs.row, inputs.pairs.kind
        share = inputs.peak_share[inputs.pairs.peak]
        bonds_broken, total = BONDS[inputs.pairs.code], queries.ragged.total

        def summed(values: npt.NDArray[np.floating]) -> Floats:
            return np.bincount(row, values, minlength=total).astype(np.float64)

        kinds_used = np.unique(row * worth.size + kind) // worth.size
        columns: list[npt.NDArray[Any]] = [
            pair_scores(weights, inputs),
            summed(share * worth.reshape(-1)[kind]),
            *(summed(share * (bonds_broken == number)) for number in range(int(BONDS.max()) + 1)),
            summed(share * (inputs.pairs.radical > 0)),
            np.bincount(kinds_used, minlength=total),
            _log_fragments(queries),
        ]
        return np.stack(columns, 1).astype(np.float32)
