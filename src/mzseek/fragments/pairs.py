"""Every peak that a candidate explains, with its explanation: many spectra, a list of each."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.compiled import compiled
from mzseek.fragments.ions import MOST_HYDROGENS
from mzseek.fragments.match import (
    KINDS,
    Floats,
    Ints,
    PeakTable,
    assign,
    check_lists,
    checked_weights,
    in_threads,
)
from mzseek.fragments.table import PieceTable
from mzseek.ragged import pointers

_COLUMNS = {
    "row": np.int64,
    "peak": np.int64,
    "code": np.int8,
    "radical": np.int8,
    "hydrogens": np.int8,
    "error": np.float32,
}


@dataclass(frozen=True, eq=False)
class ExplainedPairs:
    """Pairs of a candidate and a peak that it explains, candidate by candidate, peaks rising.

    Attributes
    ----------
    row : int64 array
        Place of the candidate in the lists.
    peak : int64 array
        Place of the peak in the table.
    code : int8 array
        How the piece was broken out: a place in `mzseek.fragments.cuts.BONDS`.
    radical : int8 array
        1 for an ion with an odd number of electrons.
    hydrogens : int8 array
        Taken up (+) or lost (−).
    error : float32 array
        Measured − explained, in m/z.
    counts : int64 array
        Pairs of each spectrum.
    """

    row: Ints
    peak: Ints
    code: npt.NDArray[np.int8]
    radical: npt.NDArray[np.int8]
    hydrogens: npt.NDArray[np.int8]
    error: npt.NDArray[np.float32]
    counts: Ints

    def __len__(self) -> int:
        return len(self.row)

    @property
    def kind(self) -> Ints:
        """Way of each explanation: its place among all of `mzseek.fragments.match.KINDS`."""
        at = (self.code.astype(np.int64), self.radical, self.hydrogens + MOST_HYDROGENS)
        return np.ravel_multi_index(at, KINDS).astype(np.int64)


def explained_pairs(
    peaks: PeakTable,
    pieces: PieceTable,
    candidates: npt.ArrayLike,
    counts: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    threads: int | None = None,
) -> ExplainedPairs:
    """The best explanation of each peak by each candidate that has one.

    Arguments as of `mzseek.fragments.match.score_lists`; the weights choose among explanations of
    a peak.
    """
    rows, sizes = np.asarray(candidates, np.int64), np.asarray(counts, np.int64)
    table = checked_weights(weights)
    check_lists(peaks, pieces, rows, sizes)
    ends = pointers(sizes)
    arrays = (pieces.starts, pieces.masses, pieces.codes, pieces.hydrogens, pieces.electrons)
    parts: list[list[npt.NDArray[Any]]] = [[]] * len(peaks)

    def one(spectrum: int) -> None:
        own = slice(peaks.starts[spectrum], peaks.starts[spectrum + 1])
        form = peaks.forms[peaks.form_of[spectrum]]
        listed = rows[ends[spectrum] : ends[spectrum + 1]]
        most = len(listed) * (own.stop - own.start)
        columns = tuple(np.empty(most, dtype) for dtype in _COLUMNS.values())
        filled = _pairs(
            (peaks.mz[own], peaks.tolerances[own]),
            (form.charges, form.hydrogens, form.shifts, form.electrons),
            arrays, listed, table, columns,
        )  # fmt: skip
        kept = [column[:filled].copy() for column in columns]
        kept[0] += ends[spectrum]
        kept[1] += own.start
        parts[spectrum] = kept

    in_threads(one, len(peaks), threads)
    found = {
        name: np.concatenate([np.empty(0, dtype), *(part[place] for part in parts)])
        for place, (name, dtype) in enumerate(_COLUMNS.items())
    }
    return ExplainedPairs(**found, counts=np.array([len(part[0]) for part in parts], np.int64))


@compiled
def _pairs(
    peaks: tuple[Floats, Floats],
    forms: tuple[Ints, Ints, Floats, Ints],
    pieces: tuple[Ints, Floats, npt.NDArray[np.int8], npt.NDArray[np.int32], npt.NDArray[np.int32]],
    candidates: Ints,
    weights: Floats,
    columns: Any,
) -> int:
    """Fills the columns for one spectrum, and returns how many rows they have."""
    mz, _ = peaks
    charges, moved, shifts, form_electrons = forms
    starts, masses, codes, hydrogens, electrons = pieces
    row, of_peak, code, radical, taken, error = columns
    at = 0
    for place in range(len(candidates)):
        begin, end = starts[candidates[place]], starts[candidates[place] + 1]
        own = (masses[begin:end], codes[begin:end], hydrogens[begin:end], electrons[begin:end])
        best_piece, best_form = assign(peaks, forms, own, weights)
        for peak in range(len(mz)):
            piece, form = best_piece[peak], best_form[peak]
            if piece < 0:
                continue
            size = abs(charges[form])
            row[at], of_peak[at], code[at] = place, peak, own[1][piece]
            radical[at] = (own[3][piece] + form_electrons[form]) & 1
            taken[at] = moved[form]
            error[at] = (mz[peak] * size - shifts[form] - own[0][piece]) / size
            at += 1
    return at
