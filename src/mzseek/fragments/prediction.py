"""Predicted intensities: the fragment ions of a molecule, their logits, and how a spectrum fits.

A network gives each fragment a logit for each number of hydrogens moved, and two more: for keeping
the adduct's atoms, and for a second charge. The softmax over all ions of the molecule, and noise,
is the predicted spectrum. An expected ion that is missing lowers the likelihood, as an unexplained
peak does.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mzseek.chem.adducts import Adduct
from mzseek.core.compiled import compiled, is_plain
from mzseek.fragments.contexts import FragmentRows
from mzseek.fragments.matching import AT_PRECURSOR, MAX_HYDROGENS_MOVED, SHIFTS, IonForms
from mzseek.spectra.records import INSTRUMENTS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Singles = npt.NDArray[np.float32]
Weights = Mapping[str, Singles]

CARRIED, DOUBLE = SHIFTS, SHIFTS + 1  # outputs beside those for hydrogens moved
OUTPUTS = SHIFTS + 2
BASES = 4  # logits that conditions mix
HIDDEN, MIXING = 64, 16
MIN_MZ = 30.0  # lower ions are below what instruments scan
# An unexplained peak may be at any of so many places: the noise is a density, not one lump.
NOISE_PLACES = 3000
MAX_PEAKS = 60  # of a spectrum, the highest
_CELLS = 10.0  # a unit of m/z
FLOOR = 0.02  # of the density of mass errors, for those far off

_ALKALI = frozenset({"Li", "Na", "K", "Rb", "Cs"})
_ANIONS = frozenset({"F", "Cl", "Br", "I", "FA", "HAc", "TFA"})
IONS = 7
_LAYERS = ("embeddings", "first", "first_bias", "second", "second_bias", "last", "last_bias")


def ion_inputs(adduct: Adduct) -> npt.NDArray[np.float32]:
    """Inputs of the network about the ion, shape (IONS,).

    Negative; with an alkali metal; with ammonium; after a neutral loss; with an added anion or
    acid; charged as it is, without a proton gained or lost; with several charges.
    """
    gained = {part for number, part in adduct.parts if number > 0}
    lost = {part for number, part in adduct.parts if number < 0}
    return np.array(
        [
            adduct.charge < 0,
            bool(gained & _ALKALI),
            "NH4" in gained,
            bool(lost - {"H"}),
            bool(gained & _ANIONS),
            not adduct.parts,
            abs(adduct.charge) > 1,
        ],
        np.float32,
    )


def conditions(
    energy: float, precursor_mz: float, instrument: str | None, peaks: int
) -> npt.NDArray[np.float32]:
    """Conditions of a measurement as the network reads them, shape (CONDITIONS,).

    ``instrument`` is one of `INSTRUMENTS` or None; ``peaks`` is the number of peaks.
    """
    scaled, mass = energy / 50, precursor_mz / 500
    of_instrument = [value for name in INSTRUMENTS for value in _at(instrument == name, scaled)]
    return np.array(
        [scaled, np.log(energy / 30), mass, scaled * mass, np.log1p(peaks) / 3, *of_instrument],
        np.float32,
    )


def _at(stated: bool, energy: float) -> tuple[float, float]:
    return float(stated), stated * energy


def width_of(instrument: str | None) -> int:
    """Index of the spread of mass errors: 0 for an unknown instrument, else one for each."""
    return 0 if instrument is None else 1 + INSTRUMENTS.index(instrument)


CONDITIONS = len(conditions(30.0, 500.0, None, 0))
WIDTHS = 1 + len(INSTRUMENTS)


class IonEntries(NamedTuple):
    """Ions of a molecule that a spectrum can show.

    Attributes
    ----------
    row : int64 array
        Index of the fragment.
    output : int64 array
        Index of the output for its hydrogens.
    carried, double : int64 arrays
        Atoms of the adduct that it keeps; 1 for a second charge.
    mz : float64 array
    """

    row: Ints
    output: Ints
    carried: Ints
    double: Ints
    mz: Floats


def ion_entries(rows: FragmentRows, forms: IonForms, precursor_mz: float) -> IonEntries:
    """List the ions of a molecule's fragments, but for the precursor and what lies beyond it."""
    charges, hydrogens, shifts, _ = forms.arrays
    mz = (rows.masses[:, None] + shifts) / np.abs(charges)
    single = np.abs(charges).max() == 1
    seen = (rows.hydrogens[:, None] + hydrogens >= 0) & (mz >= MIN_MZ)
    seen &= np.abs(mz - precursor_mz) > AT_PRECURSOR
    if single:
        seen &= mz < precursor_mz
    row, form = np.nonzero(seen)
    carried = np.array([len(atoms) for atoms in forms.carried], np.int64)
    return IonEntries(
        row, hydrogens[form] + MAX_HYDROGENS_MOVED, carried[form],
        (np.abs(charges[form]) > 1).astype(np.int64), mz[row, form],
    )  # fmt: skip


@compiled
def match_entries(entries: Floats, peaks: Floats, tolerances: Floats) -> tuple[Ints, Ints, Floats]:
    """Pairs of an ion and a peak within the tolerance, and the error in units of the tolerance.

    ``entries`` are m/z of ions in any order, ``peaks`` rise.
    """
    size, count = 64, 0
    pairs, errors = np.empty((2, size), np.int64), np.empty(size)
    # Most ions are far from any peak: cells of 0.1 that a peak reaches tell.
    reached = np.zeros(int(_CELLS * (entries.max() if len(entries) else 0.0)) + 2, np.bool_)
    for peak in range(len(peaks)):
        low, high = peaks[peak] - tolerances[peak], peaks[peak] + tolerances[peak]
        reached[max(int(_CELLS * low), 0) : int(_CELLS * high) + 1] = True
    for entry in range(len(entries)):
        mz = entries[entry]
        if not reached[int(_CELLS * mz)]:
            continue
        first = np.searchsorted(peaks, mz)
        # Tolerances rise with the peaks: walk to both sides while peaks are near enough.
        for step in (-1, 1):
            peak = first - 1 if step < 0 else first
            while 0 <= peak < len(peaks) and abs(peaks[peak] - mz) <= tolerances[peak]:
                if count == size:
                    more_pairs, more_errors = np.empty((2, 2 * size), np.int64), np.empty(2 * size)
                    more_pairs[:, :size], more_errors[:size] = pairs, errors
                    pairs, errors, size = more_pairs, more_errors, 2 * size
                pairs[0, count], pairs[1, count] = entry, peak
                errors[count] = (peaks[peak] - mz) / tolerances[peak]
                count += 1
                peak += step
    return pairs[0, :count], pairs[1, :count], errors[:count]


def error_density(errors: npt.NDArray[np.floating], width: float) -> Floats:
    """Density of mass errors in units of the tolerance, relative to an even one."""
    return np.asarray(np.exp(-0.5 * (errors / width) ** 2) * (0.8 / width) + FLOOR, np.float64)


def basis_logits(weights: Weights, rows: FragmentRows, ion: npt.NDArray[np.float32]) -> Floats:
    """Logits of each fragment, shape (rows, OUTPUTS, BASES)."""
    inputs = np.hstack([rows.numbers, np.broadcast_to(ion, (len(rows.numbers), len(ion)))])
    network = tuple(weights[name] for name in _LAYERS)
    logits = np.empty((len(inputs), OUTPUTS * BASES), np.float32)
    fill = _fill_by_units if is_plain() else _fill
    fill(inputs, rows.indices, network, logits)
    return logits.astype(np.float64).reshape(-1, OUTPUTS, BASES)


@compiled
def _fill(inputs: Singles, indices: npt.NDArray[np.int32], network: Any, logits: Singles) -> None:
    """Fill `logits` row by row, term after term: a row depends on no other."""
    embeddings, first, first_bias, second, second_bias, last, last_bias = network
    hidden, two = np.empty_like(first_bias), np.empty_like(second_bias)
    for row in range(len(inputs)):
        hidden[:] = first_bias
        for index in indices[row]:
            if index > 0:
                for unit in range(len(hidden)):
                    hidden[unit] += embeddings[index, unit]
        for number in range(inputs.shape[1]):
            value = inputs[row, number]
            if value != 0:
                for unit in range(len(hidden)):
                    hidden[unit] += value * first[number, unit]
        two[:] = second_bias
        for before in range(len(hidden)):
            value = hidden[before]
            if value > 0:
                for unit in range(len(two)):
                    two[unit] += value * second[before, unit]
        logits[row] = last_bias
        for before in range(len(two)):
            value = two[before]
            if value > 0:
                for output in range(logits.shape[1]):
                    logits[row, output] += value * last[before, output]


def _fill_by_units(
    inputs: Singles, indices: npt.NDArray[np.int32], network: Any, logits: Singles
) -> None:
    """Fill as `_fill` does, to the same bits, by numpy: term by term for all rows."""
    embeddings, first, first_bias, second, second_bias, last, last_bias = network
    hidden = np.repeat(first_bias[None], len(inputs), axis=0)
    for column in indices.T:
        hidden += embeddings[column]  # of 0, nothing
    for numbers, layer in ((inputs, first), (None, second), (None, last)):
        if numbers is None:
            numbers = np.maximum(hidden, 0)
            hidden = np.repeat(
                (second_bias if layer is second else last_bias)[None], len(inputs), 0
            )
        for value, terms in zip(numbers.T, layer, strict=True):
            hidden += value[:, None] * terms
    logits[:] = hidden


_CONDITIONAL = ("mixing", "mixing_bias", "mixing_last", "mixing_last_bias", "noise", "noise_bias")


def mixture(weights: Weights, condition: npt.NDArray[np.float32]) -> tuple[Floats, float]:
    """Weights of the bases under some conditions, and the logit of noise."""
    values, double = (
        condition.astype(np.float64),
        {name: weights[name].astype(np.float64) for name in _CONDITIONAL},
    )
    hidden = np.maximum(values @ double["mixing"] + double["mixing_bias"], 0)
    mixed = hidden @ double["mixing_last"] + double["mixing_last_bias"]
    noise = values @ double["noise"] + double["noise_bias"]
    return np.append(1.0, mixed), float(noise[0])


def entry_logits(basis: Floats, mixed: Floats, entries: IonEntries) -> Floats:
    """Logit of each ion under some conditions."""
    logits = basis[:, :, 0] * mixed[0]
    for base in range(1, BASES):
        logits += basis[:, :, base] * mixed[base]
    return np.asarray(
        logits[entries.row, entries.output]
        + entries.carried * logits[entries.row, CARRIED]
        + entries.double * logits[entries.row, DOUBLE]
    )


class PeaksOf(NamedTuple):
    """Peaks of one spectrum: rising m/z, tolerances, and shares that add up to 1."""

    mz: Floats
    tolerances: Floats
    shares: Floats


def log_likelihood(
    logits: Floats, entries: IonEntries, peaks: PeaksOf, noise: float, width: float
) -> float:
    """Mean over peaks, by their shares, of the logarithm of their predicted density."""
    top = max(float(logits.max(initial=-np.inf)), noise)
    weights, background = np.exp(logits - top), float(np.exp(noise - top))
    entry, peak, errors = match_entries(entries.mz, peaks.mz, peaks.tolerances)
    explained = np.bincount(
        peak, weights[entry] * error_density(errors, width), minlength=len(peaks.mz)
    )
    total = weights.sum() + background
    return float((peaks.shares * np.log((explained + background / NOISE_PLACES) / total)).sum())
