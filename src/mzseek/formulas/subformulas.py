"""Explain the peaks of a spectrum by parts of ion formulas, and compare with chance.

A peak supports the formula of an ion if its mass is that of some of the ion's atoms. A formula of
many elements has so many parts that any mass is near to one: what a peak adds is therefore the
density of measured masses around the parts near it, over the density of all parts of that ion in
the neighbourhood (`matched`).

For each peak either the fragment or what was lost is enumerated, whichever is lighter: it has
fewer formulas, and belongs to any ion that has its atoms.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.chem.adducts import ELECTRON_MASS, Adduct, atoms_of
from mzseek.core.compiled import always_compiled
from mzseek.core.errors import MoleculeError
from mzseek.core.ragged import pointers
from mzseek.formulas.enumeration import ELEMENTS, MASSES, VALENCES, parts_of_mass

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Bits of each element in two words, the highest of each left free: one subtraction then compares
# all elements (a field that becomes negative clears its free bit).
_BITS = {"C": 9, "H": 10, "N": 8, "O": 8, "P": 6, "S": 7, "F": 8,
         "Cl": 6, "Br": 6, "I": 6, "Si": 7, "B": 6, "Se": 6, "Na": 6, "K": 6}  # fmt: skip
_WORD = np.array([0] * 7 + [1] * 8)
_SHIFTS = np.zeros(len(ELEMENTS), np.int64)
_FREE = np.zeros(2, np.int64)
for _at, _name in enumerate(ELEMENTS):
    _same = [i for i in range(_at) if _WORD[i] == _WORD[_at]]
    _SHIFTS[_at] = sum(_BITS[ELEMENTS[i]] for i in _same)
    _FREE[_WORD[_at]] |= 1 << (_SHIFTS[_at] + _BITS[_name] - 1)

NEIGHBOURHOOD = 0.02  # Da around a peak, in which parts are counted
MAX_PEAKS = 40  # the most intense
_LEAST_INTENSITY = 0.003  # of the strongest
_BEYOND = 0.5  # m/z above the precursor: isotopes and noise
LEAST_LOSS, LEAST_FRAGMENT = -4, -1  # twice the RDBE: several losses at once have less than one
# Mass errors of the peaks of one spectrum are taken to be around one bias, with one spread: each
# pair (ppm) is a case, and an ion is judged under all of them (`Matches.log_odds`). Errors follow
# Student's t with five degrees of freedom, which forgives outliers.
ERROR_CASES = (
    (0.0, 0.7), (0.0, 2.0), (0.0, 6.0), (0.0, 15.0),
    (3.0, 2.0), (-3.0, 2.0), (7.0, 3.0), (-7.0, 3.0), (12.0, 4.0), (-12.0, 4.0), (20.0, 6.0),
    (-20.0, 6.0),
)  # fmt: skip
_LEAST_SPREAD = 0.0002  # Da
_DENSITY = 0.3796066898  # of the t distribution at 0
_LEAST_TOLERANCE = 0.001  # Da
EXPECTED = 0.8  # share of peaks that are fragments
# Weights of a log-linear model of which parts of an ion are fragments: a constant, then of the
# fragment whether it is a radical, has less RDBE than an even-electron ion, its RDBE (doubled) for
# each atom but hydrogen and the square of that, its heteroatoms for each carbon, whether it has no
# carbon; and of what was lost how much RDBE is missing, its RDBE for each atom but hydrogen and the
# square, its heteroatoms for each carbon, whether it has carbon and no hydrogen.
PART_WEIGHTS = (
    "constant", "radical", "saturated", "unsaturation", "unsaturation_squared", "heteroatoms",
    "no_carbon", "loss_saturated", "loss_unsaturation", "loss_unsaturation_squared",
    "loss_heteroatoms", "loss_without_hydrogen",
)  # fmt: skip
_MOST_RATIO = 4.0


@dataclass(frozen=True, eq=False)
class Ions:
    """Formulas of ions of one charge.

    Attributes
    ----------
    counts : int64 array, shape (ions, elements)
    masses : float64 array, shape (ions,)
        Of the atoms, without the charge.
    """

    counts: Ints
    masses: Floats

    @classmethod
    def of(cls, molecules: Ints, adduct: Adduct) -> "Ions":
        """Return the ions that an adduct makes of molecules, given by their counts."""
        counts = adduct.molecules * molecules + adduct_counts(adduct)
        return cls(counts, counts @ MASSES)

    def only(self, which: npt.NDArray[np.bool_] | Ints) -> "Ions":
        """Return some of them."""
        return Ions(self.counts[which], self.masses[which])


@dataclass(frozen=True, eq=False)
class PeakMasses:
    """Peaks that parts are compared with.

    Attributes
    ----------
    peaks : int64 array, shape (peaks,)
        Indices in the spectrum, by rising m/z.
    mz, shares : float64 arrays, shape (peaks,)
        m/z, and intensities over the strongest.
    """

    peaks: Ints
    mz: Floats
    shares: Floats


@dataclass(frozen=True, eq=False)
class Matches:
    """How well ions explain peaks.

    Attributes
    ----------
    ratios : float64 array, shape (ions, peaks, cases)
        Density of the measured mass around parts of the ion, over that of all its parts near it,
        for each of `ERROR_CASES`.
    parts : int64 array, shape (ions, peaks)
        The likeliest part within the tolerance, as a row of `counts`; −1 for none.
    counts : int64 array, shape (parts, elements)
        Fragments, or losses where `is_loss`.
    is_loss : bool array, shape (peaks,)
    """

    ratios: Floats
    parts: Ints
    counts: Ints
    is_loss: npt.NDArray[np.bool_]

    def log_odds(self, case_shares: Floats) -> Floats:
        """Return the log-odds of each peak against chance, shape (ions, peaks).

        Averaged over the cases of mass errors, by how well each suits all peaks of the spectrum.
        """
        odds = np.log(1 - EXPECTED + EXPECTED * self.ratios)
        if not odds.shape[1]:
            return odds[:, :, 0]
        total = np.log(np.maximum(case_shares, 1e-9)) + np.cumsum(odds, 1)[:, -1]
        weights = np.exp(total - total.max(1, keepdims=True))
        weights /= np.cumsum(weights, 1)[:, -1:]
        return np.asarray(np.cumsum(odds * weights[:, None], 2)[:, :, -1])

    def fragment(self, ion: Ints, row: int, peak: int) -> Ints | None:
        """Return the fragment that explains a peak for the ion in a row; None for none."""
        part = self.parts[row, peak]
        if part < 0:
            return None
        counts = self.counts[part]
        return np.asarray(ion - counts if self.is_loss[peak] else counts)


def adduct_counts(adduct: Adduct) -> Ints:
    """Return the counts of the atoms that an adduct adds to its molecules (negative: takes off).

    Raises
    ------
    MoleculeError
        It has an element that is not enumerated.
    """
    counts = np.zeros(len(ELEMENTS), np.int64)
    for number, part in adduct.parts:
        for element, count in atoms_of(part).items():
            if element not in ELEMENTS:
                raise MoleculeError(f"{adduct.name}: formulas with {element} are not enumerated")
            counts[ELEMENTS.index(element)] += number * count
    return counts


def chosen_peaks(mz: Floats, intensities: Floats, precursor_mz: float) -> PeakMasses:
    """Choose the most intense peaks up to the precursor; of equal ones those of lower m/z."""
    shares = intensities / (intensities.max(initial=0.0) or 1.0)
    usable = np.flatnonzero((shares >= _LEAST_INTENSITY) & (mz <= precursor_mz + _BEYOND))
    strongest = usable[np.argsort(-shares[usable], kind="stable")][:MAX_PEAKS]
    peaks = np.sort(strongest)
    return PeakMasses(peaks, mz[peaks], shares[peaks])


def matched(
    peaks: PeakMasses,
    ions: Ions,
    charge: int,
    ion_mass: float,
    ppm: float,
    part_weights: Floats,
    common: Mapping[str, Mapping[tuple[int, ...], float]] | None = None,
) -> Matches:
    """Compare peaks, taken as singly charged, with the parts of ions.

    Parameters
    ----------
    peaks : PeakMasses
    ions : Ions
    charge : int
        Of the ions, by whose sign the electron's mass is taken off or added.
    ion_mass : float
        Of the atoms of the ions, as measured.
    ppm : float
        Tolerance within which a part explains a peak.
    part_weights : float64 array
        In the order of `PART_WEIGHTS`.
    common : mapping, optional
        Log-weights to add for common fragments and losses (keys "fragments" and "losses"), by their
        counts.
    """
    atoms = peaks.mz + (ELECTRON_MASS if charge > 0 else -ELECTRON_MASS)
    is_loss = atoms > ion_mass / 2
    limits = ions.counts.max(0, initial=0)
    reach = float(np.abs(ions.masses - ion_mass).max(initial=0.0))
    lists = []
    for mass, lost in zip(atoms.tolist(), is_loss.tolist(), strict=True):
        if lost:
            centre, width, least = ion_mass - mass, NEIGHBOURHOOD + reach, LEAST_LOSS
        else:
            centre, width, least = mass, NEIGHBOURHOOD, LEAST_FRAGMENT
        lists.append(parts_of_mass(centre - width, centre + width, limits, least))
    counts = np.concatenate([np.zeros((0, len(ELEMENTS)), np.int64), *lists])
    first = pointers(np.array([len(part) for part in lists], np.int64))
    ratios = np.zeros((len(ions.counts), len(atoms), len(ERROR_CASES)))
    parts = np.full(ratios.shape[:2], -1, np.int64)
    cases = np.array(ERROR_CASES) * 1e-6
    _match(
        atoms, np.maximum(ppm * 1e-6 * atoms, _LEAST_TOLERANCE), is_loss, first,
        _packed(counts), counts @ MASSES, _shape(counts), _added(counts, first, is_loss, common),
        _packed(ions.counts), ions.masses, _shape(ions.counts), part_weights,
        np.outer(atoms, cases[:, 0]), np.maximum(np.outer(atoms, cases[:, 1]), _LEAST_SPREAD),
        _DENSITY, _FREE, NEIGHBOURHOOD, LEAST_FRAGMENT, LEAST_LOSS, ratios, parts,
    )  # fmt: skip
    return Matches(ratios, parts, counts, is_loss)


def _added(
    counts: Ints,
    first: Ints,
    is_loss: npt.NDArray[np.bool_],
    common: Mapping[str, Mapping[tuple[int, ...], float]] | None,
) -> Floats:
    """Return the log-weights of common fragments and losses, shape (parts,)."""
    added = np.zeros(len(counts))
    if not common:
        return added
    lost = np.repeat(is_loss, np.diff(first))
    for kind, rows in (("fragments", ~lost), ("losses", lost)):
        weights = common[kind]
        if not weights:
            continue
        known = np.array(list(weights), np.int64)
        values = np.array(list(weights.values()))
        words = np.concatenate([_packed(known), _packed(counts)])
        _, index = np.unique(words, axis=0, return_inverse=True)
        by_index = np.zeros(int(index.max()) + 1)
        by_index[index.ravel()[: len(known)]] = values
        added = np.where(rows, by_index[index.ravel()[len(known) :]], added)
    return added


def _shape(counts: Ints) -> Ints:
    """Return carbon, hydrogen, other atoms, and twice the RDBE less that of nothing."""
    others = counts[:, 2:].sum(1)
    return np.stack([counts[:, 0], counts[:, 1], others, counts @ VALENCES], 1)


def part_descriptors(fragments: Ints, losses: Ints) -> Floats:
    """Return what `PART_WEIGHTS` are weights of, shape (parts, weights)."""
    shapes = zip(_shape(fragments), _shape(losses), strict=True)
    units = np.eye(len(PART_WEIGHTS))
    return np.array([[_log_weight(f, lost, unit) for unit in units] for f, lost in shapes]).reshape(
        len(fragments), len(PART_WEIGHTS)
    )


@always_compiled
def _log_weight(fragment: Ints, lost: Ints, weights: Floats) -> float:
    """Return the log-weight of a part, given `_shape` of the fragment and of what was lost."""
    rdbe, rest = 2 + fragment[3], 2 + lost[3]
    value = weights[0]
    if not rdbe & 1:
        value += weights[1]
    if rdbe < 1:
        value += weights[2]
    share = rdbe / (fragment[0] + fragment[2] + 1.0)
    value += weights[3] * share + weights[4] * share * share
    value += weights[5] * min(fragment[2] / (fragment[0] + 1.0), _MOST_RATIO)
    if fragment[0] == 0:
        value += weights[6]
    if rest < 0:
        value -= weights[7] * rest
    else:
        share = rest / (lost[0] + lost[2] + 1.0)
        value += weights[8] * share + weights[9] * share * share
    value += weights[10] * min(lost[2] / (lost[0] + 1.0), _MOST_RATIO)
    if lost[0] > 0 and lost[1] == 0:
        value += weights[11]
    return float(value)


def _packed(counts: Ints) -> Ints:
    """Pack counts into two words, shape (formulas, 2)."""
    fields = counts << _SHIFTS
    return np.stack([fields[:, word == _WORD].sum(1) for word in (0, 1)], 1)


@always_compiled
def _match(
    atoms: Floats,
    tolerances: Floats,
    is_loss: npt.NDArray[np.bool_],
    first: Ints,
    packed: Ints,
    masses: Floats,
    shapes: Ints,
    added: Floats,
    ions: Ints,
    ion_masses: Floats,
    ion_shapes: Ints,
    part_weights: Floats,
    biases: Floats,
    spreads: Floats,
    scale: float,
    free: Ints,
    neighbourhood: float,
    least_fragment: int,
    least_loss: int,
    ratios: Floats,
    parts: Ints,
) -> None:
    """Fill `ratios` and `parts`; see `matched`."""
    cases = spreads.shape[1]
    for peak in range(len(atoms)):
        for ion in range(len(ions)):
            low_word, high_word = ions[ion, 0] | free[0], ions[ion, 1] | free[1]
            total, best, best_part = 0.0, 0.0, -1
            for part in range(first[peak], first[peak + 1]):
                if ((low_word - packed[part, 0]) & free[0]) != free[0]:
                    continue
                if ((high_word - packed[part, 1]) & free[1]) != free[1]:
                    continue
                mass = masses[part]
                rest = ion_shapes[ion] - shapes[part]
                if is_loss[peak]:
                    mass = ion_masses[ion] - mass
                error = atoms[peak] - mass
                if abs(error) > neighbourhood:
                    continue
                fragment, lost = (rest, shapes[part]) if is_loss[peak] else (shapes[part], rest)
                if 2 + fragment[3] < least_fragment or 2 + lost[3] < least_loss:
                    continue
                weight = np.exp(_log_weight(fragment, lost, part_weights) + added[part])
                total += weight
                if abs(error) <= tolerances[peak]:
                    near = weight * (1.0 - 0.8 * abs(error) / tolerances[peak])
                    if near > best:
                        best, best_part = near, part
                for case in range(cases):
                    away = (error - biases[peak, case]) / spreads[peak, case]
                    tail = 1.0 + 0.2 * away * away
                    ratios[ion, peak, case] += (
                        weight * scale / (spreads[peak, case] * tail * tail * tail)
                    )
            for case in range(cases):
                ratios[ion, peak, case] *= 2.0 * neighbourhood / (1.0 + total)
            parts[ion, peak] = best_part
