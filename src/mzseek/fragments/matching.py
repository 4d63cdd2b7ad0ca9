"""Match peaks with fragments: ion forms, tolerances, scores of candidate lists."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from os import cpu_count
from typing import Any

import numpy as np
import numpy.typing as npt
from rdkit.Chem import GetPeriodicTable

from mzseek.chem.adducts import ELECTRON_MASS, Adduct, parse_adduct, parts_of
from mzseek.core.compiled import compiled
from mzseek.core.errors import MzseekError
from mzseek.core.ragged import pointers
from mzseek.fragments.fragmentation import BONDS, HYDROGEN, PER_DALTON, nano_mass
from mzseek.fragments.table import FragmentTable
from mzseek.spectra import Spectrum

MAX_HYDROGENS_MOVED = 4
SHIFTS = 2 * MAX_HYDROGENS_MOVED + 1
# Atoms that stay with a fragment as often as they go.
_CARRIED = ("Li", "Na", "K", "Rb", "Cs", "Ag", "Mg", "Ca", "F", "Cl", "Br", "I")


@dataclass(frozen=True, eq=False)
class IonForms:
    """Ions that a fragment can be seen as, one a row.

    Attributes
    ----------
    charges : int64 array
        Signed.
    hydrogens : int64 array
        Taken up (+) or lost (−).
    carried : tuple of tuples of str
        Symbols of atoms that the fragment carries.
    shifts : float64 array
        What is added to the fragment's mass before it is divided by the charge.
    electrons : int64 array
        What is added to the fragment's electrons; the sum is odd for a radical.
    """

    charges: npt.NDArray[np.int64]
    hydrogens: npt.NDArray[np.int64]
    carried: tuple[tuple[str, ...], ...]
    shifts: npt.NDArray[np.float64]
    electrons: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.charges)


def ion_forms(adduct: str | Adduct) -> IonForms:
    """Ions that fragments of an ion of this form can be seen as.

    Examples
    --------
    >>> forms = ion_forms("[M+Na]+")
    >>> sorted(set(forms.carried)), len(forms)
    ([(), ('Na',)], 18)
    """
    return _forms(parse_adduct(adduct) if isinstance(adduct, str) else adduct)


@lru_cache(maxsize=512)
def _forms(adduct: Adduct) -> IonForms:
    most = [(part, number) for number, part in parts_of(adduct) if part in _CARRIED and number > 0]
    loads = [
        tuple(symbol for (symbol, _), taken in zip(most, count, strict=True) for _ in range(taken))
        for count in product(*(range(number + 1) for _, number in most))
    ]
    sign = 1 if adduct.charge > 0 else -1
    rows = [
        (sign * size, hydrogens, load)
        for size in range(1, abs(adduct.charge) + 1)
        for load in loads
        for hydrogens in range(-MAX_HYDROGENS_MOVED, MAX_HYDROGENS_MOVED + 1)
    ]
    number = GetPeriodicTable().GetAtomicNumber
    return IonForms(
        np.array([charge for charge, _, _ in rows]),
        np.array([hydrogens for _, hydrogens, _ in rows]),
        tuple(load for _, _, load in rows),
        np.array([_shift(*row) for row in rows]),
        np.array([h - charge + sum(map(number, load)) for charge, h, load in rows]),
    )


def _shift(charge: int, hydrogens: int, load: tuple[str, ...]) -> float:
    number = GetPeriodicTable().GetAtomicNumber
    atoms = hydrogens * nano_mass(HYDROGEN) + sum(nano_mass(number(symbol)) for symbol in load)
    return atoms / PER_DALTON - charge * ELECTRON_MASS


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PPM = 10.0
LEAST = 0.001  # m/z: what is always within the tolerance, since small ions are measured worse
AT_PRECURSOR = 0.5  # m/z: nearer to the precursor a peak says what was broken, not how
# Ways an explanation can be: code of its cleavages, radical or not, hydrogens moved.
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
    """Peaks of spectra, each with the ions that its fragments can be.

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

    Fewer cleavages weigh more, radicals half as much, and each hydrogen moved beyond the first
    takes some away: an order of explanations, not a probability.
    """
    moved = np.abs(np.arange(SHIFTS) - MAX_HYDROGENS_MOVED)
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
    fragments: tuple[Floats, npt.NDArray[np.int8], npt.NDArray[np.int32], npt.NDArray[np.int32]],
    weights: Floats,
) -> tuple[Ints, Ints]:
    """The fragment and the ion form that explain each peak best, −1 for none.

    Peaks: m/z, tolerances; forms: charges, hydrogens, shifts, electrons; fragments: masses, codes,
    hydrogens, electrons. Peaks and fragments rise, so each form needs one walk along both.
    """
    mz, tolerances = peaks
    charges, moved, shifts, form_electrons = forms
    masses, codes, hydrogens, electrons = fragments
    best_fragment, best_form = np.full(len(mz), -1, np.int64), np.full(len(mz), -1, np.int64)
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
            for fragment in range(low, len(masses)):
                if masses[fragment] > target + within:
                    break
                if hydrogens[fragment] + moved[form] < 0:
                    continue
                radical = (electrons[fragment] + form_electrons[form]) & 1
                weight = weights[codes[fragment], radical, moved[form] + MAX_HYDROGENS_MOVED]
                off = abs(masses[fragment] - target) / size
                if (
                    best_fragment[peak] < 0
                    or weight > best[peak]
                    or (weight == best[peak] and off < nearest[peak])
                ):
                    best[peak], nearest[peak] = weight, off
                    best_fragment[peak], best_form[peak] = fragment, form
    return best_fragment, best_form


@compiled
def _explained(
    peaks: tuple[Floats, Floats, Floats],
    forms: tuple[Ints, Ints, Floats, Ints],
    fragments: tuple[
        Ints, Floats, npt.NDArray[np.int8], npt.NDArray[np.int32], npt.NDArray[np.int32]
    ],
    candidates: Ints,
    weights: Floats,
    scores: Floats,
    shares_by_kind: npt.NDArray[np.float32],
) -> None:
    """One spectrum against its candidates: fills scores, and shares if they have columns."""
    mz, tolerances, shares = peaks
    _, moved, _, form_electrons = forms
    starts, masses, codes, hydrogens, electrons = fragments
    shifts = weights.shape[2]
    for place in range(len(candidates)):
        begin, end = starts[candidates[place]], starts[candidates[place] + 1]
        own = (masses[begin:end], codes[begin:end], hydrogens[begin:end], electrons[begin:end])
        best_fragment, best_form = assign((mz, tolerances), forms, own, weights)
        total = 0.0
        for peak in range(len(mz)):
            fragment, form = best_fragment[peak], best_form[peak]
            if fragment < 0:
                continue
            radical = (own[3][fragment] + form_electrons[form]) & 1
            shift = moved[form] + MAX_HYDROGENS_MOVED
            total += shares[peak] * weights[own[1][fragment], radical, shift]
            if shares_by_kind.shape[1]:
                kind = (own[1][fragment] * 2 + radical) * shifts + shift
                shares_by_kind[place, kind] += shares[peak]
        scores[place] = total


def score_lists(
    peaks: PeakTable,
    fragments: FragmentTable,
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
    fragments : FragmentTable
        Of all candidates of all spectra.
    candidates : int array
        Molecules of `fragments`, the lists of all spectra one after the other.
    counts : int array
        Candidates of each spectrum.
    weights : array of shape `KINDS`, optional
        `plausible` by default.
    threads : int, optional
        All cores by default.
    """
    return _run(peaks, fragments, candidates, counts, weights, threads, with_kinds=False)[0]


def kind_lists(
    peaks: PeakTable,
    fragments: FragmentTable,
    candidates: npt.ArrayLike,
    counts: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    threads: int | None = None,
) -> npt.NDArray[np.float32]:
    """Share of peaks that each candidate explains in each way, shape (candidates, *KINDS).

    Arguments as of `score_lists`; the weights choose among explanations of a peak. What is left
    to one is unexplained.
    """
    _, kinds = _run(peaks, fragments, candidates, counts, weights, threads, with_kinds=True)
    return kinds.reshape(-1, *KINDS)


def _run(
    peaks: PeakTable,
    fragments: FragmentTable,
    candidates: npt.ArrayLike,
    counts: npt.ArrayLike,
    weights: npt.ArrayLike | None,
    threads: int | None,
    with_kinds: bool,
) -> tuple[Floats, npt.NDArray[np.float32]]:
    rows, sizes = np.asarray(candidates, np.int64), np.asarray(counts, np.int64)
    table = checked_weights(weights)
    check_lists(peaks, fragments, rows, sizes)
    ends = pointers(sizes)
    scores = np.zeros(len(rows))
    kinds = np.zeros((len(rows), table.size if with_kinds else 0), np.float32)
    arrays = (
        fragments.starts,
        fragments.masses,
        fragments.codes,
        fragments.hydrogens,
        fragments.electrons,
    )

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


def check_lists(peaks: PeakTable, fragments: FragmentTable, rows: Ints, sizes: Ints) -> None:
    """Refuse lists that do not fit their spectra, or name molecules that are not in the table."""
    if len(sizes) != len(peaks):
        raise MzseekError(f"{len(sizes)} candidate lists for {len(peaks)} spectra")
    if (sizes < 0).any() or sizes.sum() != len(rows):
        raise MzseekError(f"counts add up to {sizes.sum()}, but there are {len(rows)} candidates")
    if len(rows) and not (rows.min() >= 0 and rows.max() < len(fragments)):
        raise MzseekError(f"candidates are places in a table of {len(fragments)} molecules")


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
        How the fragment was broken out: a place in `mzseek.fragments.fragmentation.BONDS`.
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
        """Way of each explanation: its place among all of `mzseek.fragments.matching.KINDS`."""
        at = (self.code.astype(np.int64), self.radical, self.hydrogens + MAX_HYDROGENS_MOVED)
        return np.ravel_multi_index(at, KINDS).astype(np.int64)


def explained_pairs(
    peaks: PeakTable,
    fragments: FragmentTable,
    candidates: npt.ArrayLike,
    counts: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    threads: int | None = None,
) -> ExplainedPairs:
    """The best explanation of each peak by each candidate that has one.

    Arguments as of `score_lists`; the weights choose among explanations of a peak.
    """
    rows, sizes = np.asarray(candidates, np.int64), np.asarray(counts, np.int64)
    table = checked_weights(weights)
    check_lists(peaks, fragments, rows, sizes)
    ends = pointers(sizes)
    arrays = (
        fragments.starts,
        fragments.masses,
        fragments.codes,
        fragments.hydrogens,
        fragments.electrons,
    )
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
    fragments: tuple[
        Ints, Floats, npt.NDArray[np.int8], npt.NDArray[np.int32], npt.NDArray[np.int32]
    ],
    candidates: Ints,
    weights: Floats,
    columns: Any,
) -> int:
    """Fills the columns for one spectrum, and returns how many rows they have."""
    mz, _ = peaks
    charges, moved, shifts, form_electrons = forms
    starts, masses, codes, hydrogens, electrons = fragments
    row, of_peak, code, radical, taken, error = columns
    at = 0
    for place in range(len(candidates)):
        begin, end = starts[candidates[place]], starts[candidates[place] + 1]
        own = (masses[begin:end], codes[begin:end], hydrogens[begin:end], electrons[begin:end])
        best_fragment, best_form = assign(peaks, forms, own, weights)
        for peak in range(len(mz)):
            fragment, form = best_fragment[peak], best_form[peak]
            if fragment < 0:
                continue
            size = abs(charges[form])
            row[at], of_peak[at], code[at] = place, peak, own[1][fragment]
            radical[at] = (own[3][fragment] + form_electrons[form]) & 1
            taken[at] = moved[form]
            error[at] = (mz[peak] * size - shifts[form] - own[0][fragment]) / size
            at += 1
    return at
