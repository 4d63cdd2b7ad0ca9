"""A small network over pairs of a peak and its explanation: what each pair is worth.

Each explained peak gets a number from its explanation (bonds broken, radical, hydrogens moved, mass
error) and from the peak (height, place, energy). The numbers of a candidate's peaks add up, so that
a score can be read peak by peak. It is trained by the softmax over candidate lists, as the paper's
contrastive loss is; gradients are written out, since there are three layers and no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.compiled import is_plain
from mzseek.evidence.lists import Ints
from mzseek.evidence.pairs.forward import worths
from mzseek.evidence.pairs.inputs import TOTALS, WIDTH, PairInputs, Values
from mzseek.ragged import Ragged
from mzseek.work.progress import Progress, silent

Weights = dict[str, Values]
HIDDEN = 64
SHAPES = {
    "first": (WIDTH, HIDDEN), "first_bias": (HIDDEN,),
    "second": (HIDDEN, HIDDEN), "second_bias": (HIDDEN,),
    "last": (HIDDEN,), "last_bias": (1,), "totals": (TOTALS,),
}  # fmt: skip
_BATCH, _WARMUP, _DECAY = 64, 50, 1e-3
_AT_ONCE = 200  # spectra that are scored together


@dataclass(frozen=True)
class Lesson:
    """How a network is trained: passes over the spectra, the highest step, the seed."""

    epochs: int = 16
    lr: float = 3e-3
    seed: int = 0


def pair_scores(weights: Mapping[str, Values], inputs: PairInputs) -> Values:
    """Score of every candidate: the worth of the peaks that it explains, and its totals.

    In double precision, rounded at the end: products of other shapes add up in another order, and
    what is said of a spectrum must not depend on those beside it.
    """
    weights = {name: values.astype(np.float64) for name, values in weights.items()}
    candidates = int(inputs.row_ends[-1])
    if not is_plain():
        values = worths(weights, inputs) * inputs.counted
        added = np.bincount(inputs.pairs.row, values, minlength=candidates)
        found: Values = (added + (inputs.totals * weights["totals"]).sum(1)).astype(np.float32)
        return found
    found = np.zeros(candidates, np.float32)
    for first in range(0, len(inputs), _AT_ONCE):
        spectra = np.arange(first, min(first + _AT_ONCE, len(inputs)))
        scores, rows, _ = _forward(weights, inputs, spectra)
        found[rows] = scores
    return found


def pair_worth(weights: Mapping[str, Values], inputs: PairInputs, spectrum: int) -> Values:
    """What each pair of one spectrum adds to its candidate's score."""
    _, _, kept = _forward(weights, inputs, np.array([spectrum]))
    return kept.values * kept.shares


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
    p = np.exp(scores - lists.spread(lists.max(scores)))
    p /= lists.spread(lists.sum(p))
    of_truth = np.where(labels[rows], p, 0)
    of_truth /= lists.spread(np.maximum(lists.sum(of_truth), np.finfo(np.float32).tiny))
    slope = ((p - of_truth) * lists.spread(share) / len(spectra)).astype(np.float32)
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
