"""Match peaks with fragments: ion forms, tolerances, scores of candidate lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from rdkit.Chem import GetPeriodicTable

from mzseek.chem.adducts import ELECTRON_MASS, Adduct, parse_adduct
from mzseek.core.compiled import compiled
from mzseek.core.errors import MzseekError
from mzseek.core.ragged import pointers
from mzseek.fragments.fragmentation import BONDS, HYDROGEN, PER_DALTON, FragmentColumns, nano_mass
from mzseek.fragments.table import FragmentArrays, FragmentTable
from mzseek.parallel import in_threads
from mzseek.spectra import Spectrum

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
FormArrays = tuple[Ints, Ints, Floats, Ints]

MAX_HYDROGENS_MOVED = 4
SHIFTS = 2 * MAX_HYDROGENS_MOVED + 1
PPM = 10.0
LEAST = 0.001  # m/z: what is always within the tolerance, since small ions are measured worse
AT_PRECURSOR = 0.5  # m/z: nearer to the precursor a peak says what was broken, not how
# Ways an explanation can be: code of its cleavages, radical or not, hydrogens moved.
KINDS = (len(BONDS), 2, SHIFTS)
# Atoms that stay with a fragment as often as they go.
_CARRIED = ("Li", "Na", "K", "Rb", "Cs", "Ag", "Mg", "Ca", "F", "Cl", "Br", "I")


@dataclass(frozen=True, eq=False)
class IonForms:
    """Ions that a fragment can be seen as, one a row."""

    charges: Ints  # signed
    hydrogens: Ints  # taken up (+) or lost (−)
    carried: tuple[tuple[str, ...], ...]  # symbols of atoms that the fragment carries
    shifts: Floats  # added to the fragment's mass before it is divided by the charge
    electrons: Ints  # added to the fragment's electrons; the sum is odd for a radical

    def __len__(self) -> int:
        return len(self.charges)

    @property
    def arrays(self) -> FormArrays:
        """What the kernels read."""
        return self.charges, self.hydrogens, self.shifts, self.electrons


def ion_forms(adduct: str | Adduct) -> IonForms:
    """Return the ions that fragments of an ion of this form can be seen as.

    Examples
    --------
    >>> forms = ion_forms("[M+Na]+")
    >>> sorted(set(forms.carried)), len(forms)
    ([(), ('Na',)], 18)
    """
    return _forms(parse_adduct(adduct) if isinstance(adduct, str) else adduct)


@lru_cache(maxsize=512)
def _forms(adduct: Adduct) -> IonForms:
    bound = [(part, number) for number, part in adduct.parts if part in _CARRIED and number > 0]
    loads = [
        tuple(symbol for (symbol, _), taken in zip(bound, count, strict=True) for _ in range(taken))
        for count in product(*(range(number + 1) for _, number in bound))
    ]
    sign = 1 if adduct.charge > 0 else -1
    charges, loads_of, hydrogens = zip(
        *product(
            [sign * size for size in range(1, abs(adduct.charge) + 1)],
            loads,
            range(-MAX_HYDROGENS_MOVED, MAX_HYDROGENS_MOVED + 1),
        ),
        strict=True,
    )
    number = GetPeriodicTable().GetAtomicNumber
    masses = np.array([sum(nano_mass(number(symbol)) for symbol in load) for load in loads_of])
    masses += np.array(hydrogens) * nano_mass(HYDROGEN)
    added = np.array([sum(map(number, load)) for load in loads_of])
    return IonForms(
        np.array(charges),
        np.array(hydrogens),
        loads_of,
        masses / PER_DALTON - np.array(charges) * ELECTRON_MASS,
        np.array(hydrogens) - np.array(charges) + added,
    )


@dataclass(frozen=True, eq=False)
class PeakTable:
    """Peaks of many spectra as the kernels read them, rising in each."""

    starts: Ints  # where the peaks of each spectrum begin, shape (spectra + 1,)
    mz: Floats
    tolerances: Floats  # of each peak
    shares: Floats  # square roots of intensities, divided by their sum in the spectrum
    forms: tuple[IonForms, ...]  # distinct ones, …
    form_of: Ints  # … and which of them belongs to each spectrum

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
    """Make a table of the peaks of spectra, with their ion forms.

    Parameters
    ----------
    spectra, forms : sequences of Spectrum and of IonForms
        A form for each spectrum: ``ion_forms(spectrum.adduct)``.
    ppm, least : float
        The tolerance: the larger of `ppm` of a peak's m/z and `least`. A spectrum's own
        ``peak_ppm`` stands in for `ppm`.
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
    indices = {key: index for index, key in enumerate(distinct)}
    all_mz = np.concatenate(mz)
    own_ppm = [ppm if spectrum.peak_ppm is None else spectrum.peak_ppm for spectrum in spectra]
    return PeakTable(
        pointers(counts),
        all_mz,
        np.maximum(all_mz * np.repeat(np.array(own_ppm, np.float64), counts) * 1e-6, least),
        np.concatenate(roots),
        tuple(distinct.values()),
        np.array([indices[id(form)] for form in forms], np.int64),
    )


def plausible() -> Floats:
    """Return default weights of explanations, shape `KINDS`.

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
    """Check weights of explanations; `plausible` by default."""
    table = plausible() if weights is None else np.ascontiguousarray(weights, np.float64)
    if table.shape != KINDS or np.isnan(table).any():
        raise MzseekError(f"weights have shape {table.shape}, expected {KINDS} numbers")
    return table


@compiled
def assign(
    peaks: tuple[Floats, Floats],
    forms: FormArrays,
    fragments: FragmentColumns,
    weights: Floats,
) -> tuple[Ints, Ints]:
    """Find the fragment and ion form that explain each peak best, −1 for none.

    Peaks: m/z, tolerances; forms: charges, hydrogens, shifts, electrons; fragments: masses, codes,
    hydrogens, electrons. Peaks and fragments rise, so each form needs one walk along both.
    """
    mz, tolerances = peaks
    charges, moved, shifts, form_electrons = forms
    masses, codes, hydrogens, electrons = fragments
    # Two arrays, not four: this is called for every candidate, and to allocate takes time.
    chosen, quality = np.full((2, len(mz)), -1, np.int64), np.empty((2, len(mz)))
    best_fragment, best_form = chosen
    best, nearest = quality
    for form in range(len(charges)):
        size, shift, hydrogens_moved = abs(charges[form]), shifts[form], moved[form]
        of_kind = weights[:, :, hydrogens_moved + MAX_HYDROGENS_MOVED]
        low = 0
        for peak in range(len(mz)):
            target = mz[peak] * size - shift
            within = tolerances[peak] * size
            while low < len(masses) and masses[low] < target - within:
                low += 1
            if low == len(masses):
                break
            for fragment in range(low, len(masses)):
                if masses[fragment] > target + within:
                    break
                if hydrogens[fragment] + hydrogens_moved < 0:
                    continue
                weight = of_kind[codes[fragment], (electrons[fragment] + form_electrons[form]) & 1]
                off = abs(masses[fragment] - target) / size
                if (
                    best_fragment[peak] < 0
                    or weight > best[peak]
                    or (weight == best[peak] and off < nearest[peak])
                ):
                    best[peak], nearest[peak] = weight, off
                    best_fragment[peak], best_form[peak] = fragment, form
    return best_fragment, best_form


@dataclass(frozen=True, eq=False)
class ExplainedPairs:
    """Pairs of a candidate and a peak that it explains, candidate by candidate, peaks rising."""

    row: Ints  # index of the candidate in the lists
    peak: Ints  # index of the peak in the table
    kind: Ints  # way of the explanation: an index into the flattened `KINDS`
    error: npt.NDArray[np.float32]  # measured − explained, in m/z
    counts: Ints  # pairs of each spectrum

    def __len__(self) -> int:
        return len(self.row)

    @cached_property
    def code(self) -> Ints:
        """How each fragment was broken out: an index of `mzseek.fragments.fragmentation.BONDS`."""
        return self.kind // (2 * SHIFTS)

    @cached_property
    def radical(self) -> Ints:
        """1 for an ion with an odd number of electrons."""
        return self.kind // SHIFTS % 2

    @cached_property
    def hydrogens(self) -> Ints:
        """Hydrogens taken up (+) or lost (−)."""
        return self.kind % SHIFTS - MAX_HYDROGENS_MOVED


def explained_pairs(
    peaks: PeakTable,
    fragments: FragmentTable,
    candidates: npt.ArrayLike,
    counts: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    threads: int | None = None,
) -> ExplainedPairs:
    """Find the best explanation of each peak by each candidate that has one.

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
        Which explanation of a peak is the best; `plausible` by default.
    threads : int, optional
        All cores by default.
    """
    rows, sizes = np.asarray(candidates, np.int64), np.asarray(counts, np.int64)
    table = checked_weights(weights)
    if len(sizes) != len(peaks):
        raise MzseekError(f"{len(sizes)} candidate lists for {len(peaks)} spectra")
    if (sizes < 0).any() or sizes.sum() != len(rows):
        raise MzseekError(f"counts add up to {sizes.sum()}, but there are {len(rows)} candidates")
    if len(rows) and not (rows.min() >= 0 and rows.max() < len(fragments)):
        raise MzseekError(f"candidates are indices of a table of {len(fragments)} molecules")
    ends = pointers(sizes)
    columns: list[list[npt.NDArray[Any]]] = [[]] * len(peaks)

    def match(spectrum: int) -> None:
        first, last = peaks.starts[spectrum : spectrum + 2]
        columns[spectrum] = _pairs(
            (peaks.mz[first:last], peaks.tolerances[first:last]),
            peaks.forms[peaks.form_of[spectrum]].arrays,
            fragments.arrays,
            rows[ends[spectrum] : ends[spectrum + 1]],
            table,
            (ends[spectrum], first),
        )

    in_threads(match, len(peaks), threads)
    row, peak, kind, error = (
        np.concatenate([np.empty(0, dtype), *(column[index] for column in columns)])
        for index, dtype in enumerate((np.int64, np.int64, np.int64, np.float32))
    )
    pair_counts = np.array([len(column[0]) for column in columns], np.int64)
    return ExplainedPairs(row, peak, kind, error, pair_counts)


@compiled
def _pairs(
    peaks: tuple[Floats, Floats],
    forms: FormArrays,
    fragments: FragmentArrays,
    candidates: Ints,
    weights: Floats,
    firsts: tuple[int, int],
) -> Any:
    """Find the pairs of one spectrum, whose first candidate and peak have the indices `firsts`."""
    mz, _ = peaks
    charges, moved, shifts, form_electrons = forms
    starts, masses, codes, hydrogens, electrons = fragments
    size = len(candidates) * len(mz)
    row, of_peak = np.empty(size, np.int64), np.empty(size, np.int64)
    kind, error = np.empty(size, np.int64), np.empty(size, np.float32)
    count = 0
    for index in range(len(candidates)):
        begin, end = starts[candidates[index]], starts[candidates[index] + 1]
        arrays = (masses[begin:end], codes[begin:end], hydrogens[begin:end], electrons[begin:end])
        best_fragment, best_form = assign(peaks, forms, arrays, weights)
        for peak in range(len(mz)):
            fragment, form = best_fragment[peak], best_form[peak]
            if fragment < 0:
                continue
            charge = abs(charges[form])
            radical = (arrays[3][fragment] + form_electrons[form]) & 1
            row[count], of_peak[count] = firsts[0] + index, firsts[1] + peak
            kind[count] = (arrays[1][fragment] * 2 + radical) * SHIFTS
            kind[count] += moved[form] + MAX_HYDROGENS_MOVED
            error[count] = (mz[peak] * charge - shifts[form] - arrays[0][fragment]) / charge
            count += 1
    return row[:count].copy(), of_peak[:count].copy(), kind[:count].copy(), error[:count].copy()


def score_lists(
    peaks: PeakTable,
    fragments: FragmentTable,
    candidates: npt.ArrayLike,
    counts: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    threads: int | None = None,
) -> Floats:
    """Score each candidate of each spectrum: shares of explained peaks times their weights.

    Arguments as of `explained_pairs`.
    """
    table = checked_weights(weights)
    pairs = explained_pairs(peaks, fragments, candidates, counts, table, threads)
    terms = peaks.shares.take(pairs.peak) * table.ravel().take(pairs.kind)
    return np.bincount(pairs.row, terms, np.size(candidates)).astype(np.float64, copy=False)


def kind_lists(
    peaks: PeakTable,
    fragments: FragmentTable,
    candidates: npt.ArrayLike,
    counts: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> npt.NDArray[np.float32]:
    """Return the share of peaks explained in each way, shape (candidates, *KINDS).

    Arguments as of `explained_pairs`. What is left to one is unexplained.
    """
    pairs = explained_pairs(peaks, fragments, candidates, counts, weights)
    kinds = np.zeros((np.size(candidates), *KINDS), np.float32)
    _add_shares(pairs.row, pairs.kind, peaks.shares[pairs.peak], kinds.reshape(len(kinds), -1))
    return kinds


@compiled
def _add_shares(row: Ints, kind: Ints, shares: Floats, kinds: npt.NDArray[np.float32]) -> None:
    for pair in range(len(row)):
        kinds[row[pair], kind[pair]] += shares[pair]
