"""Peaks and their explanations as numbers: what the pair network reads."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.evidence.lists import Ints, Lists
from mzseek.fragments import ExplainedPairs, IonForms, PeakTable, explained_pairs, peak_table
from mzseek.fragments.cuts import BONDS
from mzseek.fragments.ions import MOST_HYDROGENS, SHIFTS
from mzseek.ragged import pointers, spans
from mzseek.spectra import Spectrum
from mzseek.spectra.numbers import leading_number

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
        Of each candidate: logarithm of its number of pieces, share of the spectrum and share of
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
        return spans(starts, ends)[1], ends - starts

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
        own = spans(self.pair_ends[spectra], self.pair_ends[spectra + 1])[1]
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
        found[at, HYDROGENS + MOST_HYDROGENS + self.pairs.hydrogens[own]] = 1
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
    table = lists.molecules.pieces
    pairs = explained_pairs(peaks, table, lists.candidates, lists.counts, worth)
    of_spectrum = np.diff(peaks.starts)
    rows = lists.ragged.total
    share = np.bincount(pairs.row, peaks.shares[pairs.peak], minlength=rows)
    number = np.bincount(pairs.row, minlength=rows)
    totals = np.stack(
        [
            np.log1p(np.diff(table.starts)[lists.candidates]),
            share,
            number / np.maximum(lists.ragged.spread(of_spectrum), 1),
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
