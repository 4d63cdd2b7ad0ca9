"""Predicted spectra of molecules: an in-silico library by the channel `intensities`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.chem.adducts import Adduct, parse_adduct
from mzseek.chem.ions import net_charge, takes_charged
from mzseek.chem.molecules import DescribedMolecule, parse_molecule
from mzseek.core.errors import AdductError, EvidenceError, Reason
from mzseek.evidence.intensities import Intensities
from mzseek.evidence.model import ChannelState, EvidenceModel
from mzseek.fragments.contexts import (
    HYDROGEN_COLUMN,
    SYMBOLS,
    FragmentRows,
    compositions,
    describe,
    molecule_context,
)
from mzseek.fragments.matching import MAX_HYDROGENS_MOVED, ion_forms
from mzseek.fragments.prediction import (
    IonEntries,
    basis_logits,
    conditions,
    entry_logits,
    ion_entries,
    ion_inputs,
    mixture,
)
from mzseek.io.skipped import Report
from mzseek.spectra import Spectrum

PEAKS = 20  # that a spectrum is expected to have, among the conditions
MAX_PEAKS, LEAST = 100, 0.005  # of a predicted spectrum; intensity relative to the highest
_SAME = 5e-4  # m/z within which ions are one peak
HIGHEST = 1000.0


@dataclass(frozen=True, eq=False)
class SimulatedSpectrum:
    """A predicted spectrum, and the formula of each peak's most probable ion.

    A formula is empty where the ion has atoms that the model does not name.
    """

    spectrum: Spectrum
    formulas: Sequence[str]


def forward_model(model: EvidenceModel) -> ChannelState:
    """State of the channel `intensities` of a model; raises `EvidenceError` where it has none."""
    for channel, state in zip(model.channels, model.states, strict=True):
        if channel.name == Intensities.name:
            return state
    named = ", ".join(channel.label for channel in model.channels)
    raise EvidenceError(
        f"the model has the channels {named}, and not {Intensities.name}, which predicts spectra; "
        f"`mzseek fit --channels {Intensities.name}` makes a run that has it"
    )


def simulate(
    state: ChannelState,
    molecules: Iterable[tuple[str, DescribedMolecule]],
    adducts: Sequence[str],
    energies: Sequence[float],
    instrument: str | None,
    report: Report,
) -> Iterator[SimulatedSpectrum]:
    """Predict a spectrum of each molecule for each adduct and collision energy.

    The precursor is not predicted, and left out.

    Parameters
    ----------
    state : ChannelState
        From `forward_model`.
    molecules : iterable of (str, DescribedMolecule)
        With their names.
    adducts : sequence of str
    energies : sequence of float
        Collision energies.
    instrument : str or None
        One of `mzseek.spectra.records.INSTRUMENTS`.
    report : callable
        Gets the name and why for each ion that a molecule cannot form or that shows no fragment.
    """
    ions = [parse_adduct(text) for text in adducts]
    for name, molecule in molecules:
        rows = describe(molecule_context(parse_molecule(molecule.smiles)))
        for adduct in ions:
            where = f"{name}, {adduct.name}"
            if bool(net_charge(molecule.smiles)) != takes_charged(adduct.name):
                report(where, Reason("the molecule does not form this ion", "bad-adduct"))
                continue
            try:
                precursor = adduct.precursor_mz(molecule.mass)
            except AdductError as error:
                report(where, Reason(str(error), "bad-adduct"))
                continue
            logits = basis_logits(state.arrays, rows, ion_inputs(adduct))
            entries = ion_entries(rows, ion_forms(adduct), precursor)
            if not len(entries.mz):
                report(where, Reason("no fragment would be seen", "no-peaks"))
                continue
            for energy in energies:
                condition = conditions(energy, precursor, instrument, PEAKS)
                mixed, _ = mixture(state.arrays, condition)
                of_entries = entry_logits(logits, mixed, entries)
                mz, heights, best = _peaks(entries, np.exp(of_entries - of_entries.max()))
                metadata = {
                    "compound_name": name,
                    "smiles": molecule.smiles,
                    "inchikey": molecule.inchikey,
                    "formula": molecule.formula,
                    "collision_energy": f"{energy:g}",
                    **({} if instrument is None else {"instrument_type": instrument}),
                    "comment": "predicted",
                }
                identifier = f"{name} {adduct.name} {energy:g}"
                yield SimulatedSpectrum(
                    Spectrum(
                        mz, heights, precursor, adduct.name, adduct.charge, identifier, metadata
                    ),
                    _formulas(rows, entries, best, adduct),
                )


def _peaks(
    entries: IonEntries, shares: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """m/z and intensities of peaks, rising, and the most probable ion of each."""
    order = np.argsort(entries.mz, kind="stable")
    mz, shares = entries.mz[order], shares[order]
    starts = np.flatnonzero(np.diff(mz, prepend=-np.inf) > _SAME)
    # The model predicts shares of square roots.
    heights = np.add.reduceat(shares, starts) ** 2
    by_share = np.lexsort((-shares, np.repeat(np.arange(len(starts)), np.diff([*starts, len(mz)]))))
    best = by_share[starts]
    peaks = np.argsort(-heights, kind="stable")[:MAX_PEAKS]
    peaks = np.sort(peaks[heights[peaks] >= LEAST * heights.max()])
    return mz[best][peaks], heights[peaks] / heights.max() * HIGHEST, order[best][peaks]


def _formulas(
    rows: FragmentRows,
    entries: IonEntries,
    ions: npt.NDArray[np.int64],
    adduct: Adduct,
) -> list[str]:
    """Formulas of ions, their charge behind."""
    counts = compositions(rows)[entries.row[ions]].copy()
    counts[:, HYDROGEN_COLUMN] += entries.output[ions] - MAX_HYDROGENS_MOVED
    symbols = {symbol for carried in ion_forms(adduct).carried for symbol in carried}
    formulas = []
    for of_ion, carried, double in zip(
        counts, entries.carried[ions], entries.double[ions], strict=True
    ):
        atoms = {symbol: int(n) for symbol, n in zip(SYMBOLS, of_ion, strict=True) if n}
        if "" in atoms or (carried and len(symbols) != 1):
            formulas.append("")
            continue
        for symbol in symbols if carried else ():
            atoms[symbol] = atoms.get(symbol, 0) + int(carried)
        hill = sorted(atoms, key=lambda s: (s != "C", s != "H", s) if "C" in atoms else (s,))
        text = "".join(f"{s}{atoms[s] if atoms[s] > 1 else ''}" for s in hill)
        sign = "+" if adduct.charge > 0 else "-"
        formulas.append(f"{text}{2 if double else ''}{sign}")
    return formulas
