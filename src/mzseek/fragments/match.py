"""Which peaks the pieces of candidates explain: many spectra, a list of candidates each.

A peak is explained by a piece if one of the ions that the piece can be seen as lies within the
tolerance. Of several explanations the one counts that the given weights like best; of equal ones
the nearest. Nothing depends on the order of peaks, candidates or spectra.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import cpu_count

import numpy as np
import numpy.typing as npt

from mzseek.compiled import compiled
from mzseek.errors import MzseekError
from mzseek.fragments.cuts import BONDS
from mzseek.fragments.ions import MOST_HYDROGENS, SHIFTS, IonForms
from mzseek.fragments.table import PieceTable
from mzseek.ragged import pointers
from mzseek.spectra import Spectrum

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PPM = 10.0
LEAST = 0.001  # m/z: what is always within the tolerance, since small ions are measured worse
AT_PRECURSOR = 0.5  # m/z: nearer to the precursor a peak says what was broken, not how
# Ways an explanation can be: code of its breaks, radical or not, hydrogens moved.
KINDS = (len(BONDS), 2, SHIFTS)


@dataclass(frozen=True, eq=False)
class PeakTable:
    """Peaks of many spectra as the kernels read them, rising in each.

    Attributes
    ----------
    starts : int64 array, shape (spectra + 1,)
    mz, tolerances : float64 arrays, shape (peaks,)
    shares : float64 array, shape (peaks,)
        Square roots of intensities, divided by their sum in the spectrum.
    forms : tuple of IonForms
        Distinct ones, …
    form_of : int64 array, shape (spectra,)
        … and which of them belongs to each spectrum.
    """

    starts: Ints
    mz: Floats
    tolerances: Floats
    shares: Floats
    forms: tuple[IonForms, ...]
    form_of: Ints

    def __len__(self) -> int:
        return len(self.form_of)


def peak_table(
    spectra: Sequence[Spectrum],
    forms: Sequence[IonForms],
    *,
    ppm: float = PPM,
    least: float = LEAST,
    at_precursor: float = AT_PRECURSOR,
) -> PeakTable:
    """Peaks of spectra, each with the ions that its pieces can be.

    Parameters
    ----------
    spectra : sequence of Spectrum
    forms : sequence of IonForms
        One for each spectrum: ``ion_forms(spectrum.adduct)``.
    ppm, least : float
        The tolerance: the larger of `ppm` of a peak's m/z and `least`.
    at_precursor : float
        Peaks so near to the precursor are left out; a negative number keeps all.
    """
    if len(forms) != len(spectra):
        raise MzseekError(f"{len(forms)} ion forms for {len(spectra)} spectra")
    mz, roots, counts = [np.empty(0)], [np.empty(0)], []
    for spectrum in spectra:
        far = np.abs(spectrum.mz - spectrum.precursor_mz) > at_precursor
        order = np.lexsort((spectrum.intensities[far], spectrum.mz[far]))
        root = np.sqrt(spectrum.intensities[far][order])
        mz.append(spectrum.mz[far][order])
        roots.append(root / root.sum())
        counts.append(len(order))
    distinct = {id(form): form for form in forms}
    places = {key: place for place, key in enumerate(distinct)}
    all_mz = np.concatenate(mz)
    return PeakTable(
        pointers(counts),
        all_mz,
        np.maximum(all_mz * ppm * 1e-6, least),
        np.concatenate(roots),
        tuple(distinct.values()),
        np.array([places[id(form)] for form in forms], np.int64),
    )


def plausible() -> Floats:
    """Weights of explanations before any were learned, shape `KINDS`.

    Fewer breaks weigh more, radicals half as much, and each hydrogen moved beyond the first takes
    some away: an order of explanations, not a probability.
    """
    moved = np.abs(np.arange(SHIFTS) - MOST_HYDROGENS)
    of_breaks = 1.0 / (1.0 + BONDS)
    of_shift = 1.0 / (1.0 + 0.25 * np.maximum(moved - 1, 0))
    of_electrons = np.array([1.0, 0.5])
    table: Floats = of_breaks[:, None, None] * of_electrons[None, :, None] * of_shift
    return table


def checked_weights(weights: npt.ArrayLike | None) -> Floats:
    """Weights of explanations as the kernels read them; `plausible` where there are none."""
    table = plausible() if weights is None else np.ascontiguousarray(weights, np.float64)
    if table.shape != KINDS or np.isnan(table).any():
        raise MzseekError(f"weights have shape {table.shape}, expected {KINDS} numbers")
    return table


@compiled
def assign(
    peaks: tuple[Floats, Floats],
    forms: tuple[Ints, Ints, Floats, Ints],
    pieces: tuple[Floats, npt.NDArray[np.int8], npt.NDArray[np.int32], npt.NDArray[np.int32]],
    weights: Floats,
) -> tuple[Ints, Ints]:
    """The piece and the ion form that explain each peak best, −1 for none.

    Peaks: m/z, tolerances; forms: charges, hydrogens, shifts, electrons; pieces: masses, codes,
    hydrogens, electrons. Peaks and pieces rise, so each form needs one walk along both.
    """
    mz, tolerances = peaks
    charges, moved, shifts, form_electrons = forms
    masses, codes, hydrogens, electrons = pieces
    best_piece, best_form = np.full(len(mz), -1, np.int64), np.full(len(mz), -1, np.int64)
    best, nearest = np.empty(len(mz)), np.empty(len(mz))
    for form in range(len(charges)):
        size = abs(charges[form])
        low = 0
        for peak in range(len(mz)):
            target = mz[peak] * size - shifts[form]
            within = tolerances[peak] * size
            while low < len(masses) and masses[low] < target - within:
                low += 1
            if low == len(masses):
                break
            for piece in range(low, len(masses)):
                if masses[piece] > target + within:
                    break
                if hydrogens[piece] + moved[form] < 0:
                    continue
                radical = (electrons[piece] + form_electrons[form]) & 1
                weight = weights[codes[piece], radical, moved[form] + MOST_HYDROGENS]
                off = abs(masses[piece] - target) / size
                if (
                    best_piece[peak] < 0
                    or weight > best[peak]
                    or (weight == best[peak] and off < nearest[peak])
                ):
                    best[peak], nearest[peak] = weight, off
                    best_piece[peak], best_form[peak] = piece, form
    return best_piece, best_form


@compiled
def _explained(
    peaks: tuple[Floats, Floats, Floats],
    forms: tuple[Ints, Ints, Floats, Ints],
    pieces: tuple[Ints, Floats, npt.NDArray[np.int8], npt.NDArray[np.int32], npt.NDArray[np.int32]],
    candidates: Ints,
    weights: Floats,
    scores: Floats,
    shares_by_kind: npt.NDArray[np.float32],
) -> None:
    """One spectrum against its candidates: fills scores, and shares if they have columns."""
    mz, tolerances, shares = peaks
    _, moved, _, form_electrons = forms
    starts, masses, codes, hydrogens, electrons = pieces
    shifts = weights.shape[2]
    for place in range(len(candidates)):
        begin, end = starts[candidates[place]], starts[candidates[place] + 1]
        own = (masses[begin:end], codes[begin:end], hydrogens[begin:end], electrons[begin:end])
        best_piece, best_form = assign((mz, tolerances), forms, own, weights)
        total = 0.0
        for peak in range(len(mz)):
            piece, form = best_piece[peak], best_form[peak]
            if piece < 0:
                continue
            radical = (own[3][piece] + form_electrons[form]) & 1
            shift = moved[form] + MOST_HYDROGENS
            total += shares[peak] * weights[own[1][piece], radical, shift]
            if shares_by_kind.shape[1]:
                kind = (own[1][piece] * 2 + radical) * shifts + shift
                shares_by_kind[place, kind] += shares[peak]
        scores[place] = total


def score_lists(
    peaks: PeakTable,
    pieces: PieceTable,
    candidates: npt.ArrayLike,
    counts: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    threads: int | None = None,
) -> Floats:
    """Score of each candidate of each spectrum: shares of explained peaks times their weights.

    Parameters
    ----------
    peaks : PeakTable
        Of the spectra.
    pieces : PieceTable
        Of all candidates of all spectra.
    candidates : int array
        Molecules of `pieces`, the lists of all spectra one after the other.
    counts : int array
        Candidates of each spectrum.
    weights : array of shape `KINDS`, optional
        `plausible` by default.
    threads : int, optional
        All cores by default.
    """
    return _run(peaks, pieces, candidates, counts, weights, threads, with_kinds=False)[0]


def kind_lists(
    peaks: PeakTable,
    pieces: PieceTable,
    candidates: npt.ArrayLike,
    counts: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    threads: int | None = None,
) -> npt.NDArray[np.float32]:
    """Share of peaks that each candidate explains in each way, shape (candidates, *KINDS).

    Arguments as of `score_lists`; the weights choose among explanations of a peak. What is left
    to one is unexplained.
    """
    _, kinds = _run(peaks, pieces, candidates, counts, weights, threads, with_kinds=True)
    return kinds.reshape(-1, *KINDS)


def _run(
    peaks: PeakTable,
    pieces: PieceTable,
    candidates: npt.ArrayLike,
    counts: npt.ArrayLike,
    weights: npt.ArrayLike | None,
    threads: int | None,
    with_kinds: bool,
) -> tuple[Floats, npt.NDArray[np.float32]]:
    rows, sizes = np.asarray(candidates, np.int64), np.asarray(counts, np.int64)
    table = checked_weights(weights)
    check_lists(peaks, pieces, rows, sizes)
    ends = pointers(sizes)
    scores = np.zeros(len(rows))
    kinds = np.zeros((len(rows), table.size if with_kinds else 0), np.float32)
    arrays = (pieces.starts, pieces.masses, pieces.codes, pieces.hydrogens, pieces.electrons)

    def one(spectrum: int) -> None:
        own = slice(peaks.starts[spectrum], peaks.starts[spectrum + 1])
        form = peaks.forms[peaks.form_of[spectrum]]
        listed = slice(ends[spectrum], ends[spectrum + 1])
        _explained(
            (peaks.mz[own], peaks.tolerances[own], peaks.shares[own]),
            (form.charges, form.hydrogens, form.shifts, form.electrons),
            arrays,
            rows[listed],
            table,
            scores[listed],
            kinds[listed],
        )

    in_threads(one, len(peaks), threads)
    return scores, kinds


def check_lists(peaks: PeakTable, pieces: PieceTable, rows: Ints, sizes: Ints) -> None:
    """Refuse lists that do not fit their spectra, or name molecules that are not in the table."""
    if len(sizes) != len(peaks):
        raise MzseekError(f"{len(sizes)} candidate lists for {len(peaks)} spectra")
    if (sizes < 0).any() or sizes.sum() != len(rows):
        raise MzseekError(f"counts add up to {sizes.sum()}, but there are {len(rows)} candidates")
    if len(rows) and not (rows.min() >= 0 and rows.max() < len(pieces)):
        raise MzseekError(f"candidates are places in a table of {len(pieces)} molecules")


def in_threads(work: Callable[[int], None], count: int, threads: int | None) -> None:
    """Work on 0 … count − 1; the kernels let go of Python's lock."""
    threads = min(threads or cpu_count() or 1, max(count, 1))
    if threads == 1:
        for each in range(count):
            work(each)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, range(count)):
            pass
