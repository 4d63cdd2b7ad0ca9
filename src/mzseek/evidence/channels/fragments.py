"""Fragments: which peaks the pieces of a candidate explain, and in which way.

A way is how many bonds broke (and how many of them in rings), whether the ion is a radical, and
how many hydrogens moved. A conditional logit over candidate lists learns what a peak that is
explained in each way is worth. The worth decides between explanations of a peak, too, so that
assigning and fitting take turns. Then a small network reads each peak with its explanation, mass
error and height and place included, and learns what the pair is worth (`mzseek.evidence.pairs`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack, vstack

from mzseek.evidence.channel import Channel, Features, Learned
from mzseek.evidence.known import Lessons, Questions
from mzseek.evidence.lists import MODES, Lists
from mzseek.evidence.logit import fit_logit
from mzseek.evidence.ordered import in_order
from mzseek.evidence.pairs.inputs import PairInputs, Values, pair_inputs
from mzseek.evidence.pairs.network import SHAPES, Lesson, pair_scores, train_pairs
from mzseek.fragments import KINDS, IonForms, ion_forms, kind_lists, peak_table, plausible
from mzseek.fragments.cuts import BONDS
from mzseek.fragments.match import LEAST, PPM
from mzseek.registry import option
from mzseek.work.progress import Progress, silent

Floats = npt.NDArray[np.float64]
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
    """Peaks that the pieces of a candidate explain."""

    name: ClassVar[str] = "fragments"
    options_type: ClassVar[type] = FragmentOptions
    reads_pieces: ClassVar[bool] = True
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

    def learn(self, lessons: Lessons, progress: Progress = silent) -> Learned:
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
        return Learned(arrays, {}, lessons.learned_from)

    def _learned(self, asked: Questions, progress: Progress) -> dict[str, npt.NDArray[np.floating]]:
        """Worth of ways, and the network's weights."""
        worth = self._worth(asked, progress)
        lesson = Lesson(self.options.epochs, seed=self.options.seed)
        inputs, shares = self._inputs(asked.lists, worth), np.sqrt(asked.weights())
        return {_WORTH: worth, **train_pairs(inputs, asked.labels, shares, lesson, progress)}

    def features(self, learned: Learned, lists: Lists) -> Features:
        """Shares of the spectrum (square roots of intensities) by the way they are explained."""
        found = np.zeros((lists.ragged.total, len(self.feature_names)), np.float32)
        for here, part in lists.in_parts():
            own = found[here]
            for name, sign in MODES.items():
                of_mode = np.flatnonzero(part.modes == sign if sign < 0 else part.modes >= 0)
                if len(of_mode):
                    rows = np.isin(part.ragged.owner, of_mode)
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
            _log_pieces(lists),
        ]
        return np.stack(columns, 1).astype(np.float32)

    def _kinds(self, lists: Lists, worth: Floats) -> npt.NDArray[np.float32]:
        """Share of each spectrum that each candidate explains in each way."""
        peaks = peak_table(
            lists.spectra, _forms(lists), ppm=self.options.ppm, least=self.options.least
        )
        return kind_lists(peaks, lists.molecules.pieces, lists.candidates, lists.counts, worth)

    def _inputs(self, lists: Lists, worth: Floats) -> PairInputs:
        return pair_inputs(lists, _forms(lists), worth, self.options.ppm, self.options.least)

    def _worth(self, asked: Questions, progress: Progress) -> Floats:
        """Weights of ways; explanations are chosen by the last ones, at first by plausibility.

        The number of pieces is fitted along, and not kept: a candidate of many pieces explains
        more by chance, which must not make explained peaks look worthless.
        """
        worth = plausible()
        for turn in range(self.options.rounds):
            progress("worth of fragments", turn, self.options.rounds)
            parts = [
                csr_array(self._kinds(part, worth).reshape(-1, worth.size))
                for _, part in asked.lists.in_parts()
            ]
            pieces = csr_array(_log_pieces(asked.lists)[:, None])
            design = hstack([vstack(parts), pieces]).tocsr().astype(np.float64)
            fitted = fit_logit(
                design, asked.lists.counts, asked.labels, asked.weights(), self.options.l2
            )
            worth = fitted[:-1].reshape(KINDS)
        return worth


def _log_pieces(lists: Lists) -> Floats:
    sizes = np.diff(lists.molecules.pieces.starts)
    return np.asarray(np.log1p(sizes[lists.candidates]), np.float64)


def _of_mode(learned: Learned, mode: str) -> dict[str, npt.NDArray[np.floating]]:
    return {name: learned.arrays[f"{mode}.{name}"] for name in (_WORTH, *SHAPES)}


def _forms(lists: Lists) -> list[IonForms]:
    return [
        ion_forms(spectrum.adduct or _USUAL[int(mode)])
        for spectrum, mode in zip(lists.spectra, lists.modes, strict=True)
    ]
