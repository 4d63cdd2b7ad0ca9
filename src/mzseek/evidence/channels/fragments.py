"""Fragments: which peaks the pieces of a candidate explain, and in which way.

A way is how many bonds broke (and how many of them in rings), whether the ion is a radical, and
how many hydrogens moved. A conditional logit over candidate lists learns what a peak that is
explained in each way is worth. The worth decides between explanations of a peak, too, so that
assigning and fitting take turns.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack, vstack

from mzseek.evidence.channel import Channel, Features, Learned
from mzseek.evidence.known import Lessons, Questions
from mzseek.evidence.lists import MODES, Lists
from mzseek.evidence.logit import fit_logit
from mzseek.fragments import KINDS, IonForms, ion_forms, kind_lists, peak_table, plausible
from mzseek.fragments.cuts import BONDS
from mzseek.fragments.match import LEAST, PPM
from mzseek.registry import option
from mzseek.spectra import Spectrum
from mzseek.work.progress import Progress, silent

Floats = npt.NDArray[np.float64]
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


class Fragments(Channel):
    """Peaks that the pieces of a candidate explain."""

    name: ClassVar[str] = "fragments"
    options_type: ClassVar[type] = FragmentOptions
    reads_pieces: ClassVar[bool] = True
    feature_names: ClassVar[tuple[str, ...]] = (
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
        """What an explained peak is worth in each way, by ion mode where there are molecules."""
        asked = lessons.questions
        shared: Floats | None = None
        tables = {}
        for name, sign in MODES.items():
            own = np.flatnonzero(asked.lists.modes == sign)
            if len(own) < len(asked) and len(np.unique(asked.blocks[own])) >= _FEW:
                tables[name] = self._worth(asked.only(own), progress)
            else:
                shared = self._worth(asked, progress) if shared is None else shared
                tables[name] = shared
        return Learned(tables, {}, lessons.learned_from)

    def features(self, learned: Learned, lists: Lists) -> Features:
        """Shares of the spectrum (square roots of intensities) by the way they are explained."""
        found = np.zeros((lists.ragged.total, len(self.feature_names)), np.float32)
        for here, part in lists.in_parts():
            own = found[here]
            for name, sign in MODES.items():
                of_mode = np.flatnonzero(part.modes == sign if sign < 0 else part.modes >= 0)
                if len(of_mode):
                    rows = np.isin(part.ragged.owner, of_mode)
                    own[rows] = self._pooled(part.only(of_mode), learned.arrays[name])
        return found

    def _pooled(self, lists: Lists, worth: Floats) -> Features:
        kinds = self._kinds(lists, worth)
        by_breaks = [kinds[:, codes].sum((1, 2, 3)) for codes in _codes()]
        columns = [
            kinds.reshape(len(kinds), -1) @ worth.reshape(-1),
            *by_breaks,
            kinds[:, :, 1].sum((1, 2)),
            (kinds > 0).sum((1, 2, 3)),
            _log_pieces(lists),
        ]
        return np.stack(columns, 1).astype(np.float32)

    def _kinds(self, lists: Lists, worth: Floats) -> npt.NDArray[np.float32]:
        """Share of each spectrum that each candidate explains in each way."""
        forms = [_forms(s, int(m)) for s, m in zip(lists.spectra, lists.modes, strict=True)]
        peaks = peak_table(lists.spectra, forms, ppm=self.options.ppm, least=self.options.least)
        return kind_lists(peaks, lists.molecules.pieces, lists.candidates, lists.counts, worth)

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


def _codes() -> list[npt.NDArray[np.intp]]:
    return [np.flatnonzero(np.equal(BONDS, breaks)) for breaks in range(int(BONDS.max()) + 1)]


def _log_pieces(lists: Lists) -> Floats:
    sizes = np.diff(lists.molecules.pieces.starts)
    return np.asarray(np.log1p(sizes[lists.candidates]), np.float64)


def _forms(spectrum: Spectrum, mode: int) -> IonForms:
    return ion_forms(spectrum.adduct or _USUAL[mode])
