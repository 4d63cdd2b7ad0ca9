"""Kernel regression from spectra to molecules: which known molecules a spectrum speaks for.

The nearest known spectra are a good guess, and no more: a peak that thousands of spectra have says
little, and ten known molecules that are alike say the same thing ten times. Regression weighs
both. With K the similarities of known spectra among one another and k those to a new one, the
weights of the known are (K + doubt · 1)⁻¹ k. They may be negative: what is like them is then less
credible. The likeness of a candidate to the known molecules, summed by these weights, is its score
(input-output kernel regression; Brouard et al., 2016).
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array, diags_array, hstack

from mzseek.library.analogs import WIDTH, analog_lists
from mzseek.library.lists import Ions, of_length_one
from mzseek.library.lists import Lists as PeakLists
from mzseek.spectra.peaks import MAX_MZ

Values = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
_BINS = round(MAX_MZ / WIDTH)


class Regression:
    """Known molecules, each with its spectra of an ion mode as one.

    Ion modes have no bins in common, so that each is a regression of its own; it is solved when a
    spectrum of its mode is first asked about.

    Parameters
    ----------
    points : int64 array, shape (points,)
        Twice the molecule's number, and one more in negative mode; rising.
    rows : CSR, shape (points, bins)
        Its spectra as one vector of length 1.
    doubt : float
    """

    def __init__(self, points: Ints, rows: csr_array, doubt: float) -> None:
        self._points, self.rows, self._doubt = points, rows, doubt
        self._factors: dict[bool, Any] = {}

    @property
    def molecule(self) -> Ints:
        """The molecule of each point."""
        return self._points // 2

    @classmethod
    def of(cls, peaks: PeakLists, ions: Ions, molecule: Ints, doubt: float) -> "Regression":
        """Spectra of known molecules.

        Parameters
        ----------
        peaks, ions : of all spectra
        molecule : int array, shape (spectra,)
        doubt : float
            Above 0: how much less than the most is believed of known spectra. The larger, the more
            the weights become plain similarities.
        """
        each = 2 * np.asarray(molecule, np.int64) + (ions.modes < 0)
        points, place = np.unique(each, return_inverse=True)
        share = 1 / np.bincount(place)[place]
        shape = (len(points), len(each))
        mean = csr_array((share, (place, np.arange(len(each)))), shape=shape)
        sides = [_unit(mean @ side) for side in _sides(peaks, ions)]
        return cls(points, csr_array(hstack(sides, format="csr")), doubt)

    def weights(self, peaks: PeakLists, ions: Ions) -> Values:
        """Weights of the known for spectra: shape (points, spectra).

        A spectrum that has nothing in common with any of them gives each the weight 0.
        """
        asked = csr_array(hstack(_sides(peaks, ions), format="csr"))
        found = np.zeros((len(self._points), asked.shape[0]), np.float32)
        for negative in (False, True):
            own = np.flatnonzero((self._points % 2 == 1) == negative)
            spectra = np.flatnonzero((ions.modes < 0) == negative)
            if not len(own) or not len(spectra):
                continue
            near = (self.rows[own] @ asked[spectra].T).toarray()
            solved = cho_solve(self._factor(own, negative), near, check_finite=False)
            found[np.ix_(own, spectra)] = solved
        return found

    def by_molecule(self, peaks: PeakLists, ions: Ions, number: int) -> Values:
        """The same by molecule, of so many: shape (molecules, spectra)."""
        weights = self.weights(peaks, ions)
        found = np.zeros((number, weights.shape[1]), np.float32)
        for negative in (False, True):  # a molecule has one point of each mode, at the most
            own = np.flatnonzero((self._points % 2 == 1) == negative)
            found[self.molecule[own]] += weights[own]
        return found

    def _factor(self, own: npt.NDArray[np.intp], negative: bool) -> Any:
        """Of the kernel of an ion mode, made once."""
        if negative not in self._factors:
            rows = self.rows[own]
            kernel = (rows @ rows.T).toarray()
            kernel[np.diag_indices_from(kernel)] += self._doubt
            self._factors[negative] = cho_factor(
                kernel, lower=True, overwrite_a=True, check_finite=False
            )
        return self._factors[negative]


def _sides(peaks: PeakLists, ions: Ions) -> list[csr_array]:
    """Peaks and losses of spectra as sparse rows, in float32.

    Bins of negative mode are other bins: its peaks mean other things.
    """
    return [_rows(side, ions.modes < 0) for side in analog_lists(peaks, ions)]


def _rows(side: PeakLists, negative: npt.NDArray[np.bool_]) -> csr_array:
    # Fourth roots of heights: small peaks tell more of a molecule than a search gives them.
    side = of_length_one(side._replace(weights=np.sqrt(side.weights)), square=0.5)
    shift = np.repeat(np.where(negative, _BINS, 0), np.diff(side.pointers))
    columns = side.values.astype(np.int64) + shift
    shape = (len(negative), 2 * _BINS)
    return csr_array((side.weights.astype(np.float32), columns, side.pointers), shape=shape)


def _unit(rows: csr_array) -> csr_array:
    """Rows with squares that sum to a half, as those of single spectra do."""
    square = np.asarray(rows.multiply(rows).sum(axis=1)).reshape(-1)
    scale = np.sqrt(np.divide(0.5, square, out=np.zeros(len(square)), where=square > 0))
    return csr_array(diags_array(scale) @ rows).astype(np.float32)
