"""Channel: how well the fragments that a candidate should show agree with the spectrum.

A forward model (`mzseek.fragments.prediction`) predicts the share of every fragment ion of a
candidate. It is fitted on true molecules alone. Fitting needs torch, scoring does not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from mzseek.chem.adducts import parse_adduct
from mzseek.chem.molecules import parse_molecule
from mzseek.core.errors import require
from mzseek.core.registry import option
from mzseek.evidence.fragments import adduct_of, collision_energy, peaks_of_spectra
from mzseek.evidence.model import Channel, ChannelState, Features
from mzseek.evidence.queries import Flags, Ints, Queries, TrainingSet, content_hash
from mzseek.fragments.contexts import (
    EMBEDDINGS,
    NUMBERS,
    FragmentRows,
    MoleculeContext,
    describe,
    molecule_context,
)
from mzseek.fragments.matching import PPM, IonForms, PeakTable
from mzseek.fragments.prediction import (
    BASES,
    CONDITIONS,
    FLOOR,
    HIDDEN,
    IONS,
    MAX_PEAKS,
    MIXING,
    NOISE_PLACES,
    OUTPUTS,
    WIDTHS,
    PeaksOf,
    Weights,
    basis_logits,
    conditions,
    entry_logits,
    ion_entries,
    ion_inputs,
    log_likelihood,
    match_entries,
    mixture,
    width_of,
)
from mzseek.parallel.engine import Progress, silent
from mzseek.parallel.processes import in_batches, in_threads
from mzseek.spectra import Spectrum
from mzseek.spectra.records import instrument_kind

if TYPE_CHECKING:
    from mzseek.models.forward import ForwardBatch

Floats = npt.NDArray[np.float64]

# Wider than for explained peaks: errors have a learned spread, and far ones count little.
MIN_TOLERANCE = 0.002
_BATCH = 64
_MOLECULES = 500  # that a process reads at a time
_HIDDEN = 0.1  # share of spectra whose instrument training does not see: users' files may not say
SHAPES = {
    "embeddings": (EMBEDDINGS, HIDDEN), "width": (WIDTHS,),
    "first": (NUMBERS + IONS, HIDDEN), "first_bias": (HIDDEN,),
    "second": (HIDDEN, HIDDEN), "second_bias": (HIDDEN,),
    "last": (HIDDEN, OUTPUTS * BASES), "last_bias": (OUTPUTS * BASES,),
    "mixing": (CONDITIONS, MIXING), "mixing_bias": (MIXING,),
    "mixing_last": (MIXING, BASES - 1), "mixing_last_bias": (BASES - 1,),
    "noise": (CONDITIONS, 1), "noise_bias": (1,),
}  # fmt: skip


@dataclass(frozen=True)
class IntensityOptions:
    """Options of the intensities channel."""

    ppm: float = option(PPM, "tolerance of a peak", above=0, at_most=1000)
    least: float = option(
        MIN_TOLERANCE, "m/z that is always within the tolerance", at_least=0, at_most=1
    )
    epochs: int = option(3, "passes over the training spectra", at_least=1, at_most=100)
    per_molecule: int = option(3, "spectra of a molecule in a pass, at most", at_least=1)
    lr: float = option(3e-3, "learning rate", above=0)
    seed: int = option(0, "of the initial weights and the order of spectra", at_least=0)


class Intensities(Channel):
    """Agreement of predicted and measured fragment intensities."""

    name: ClassVar[str] = "intensities"
    options_type: ClassVar[type] = IntensityOptions
    shapes: ClassVar[Mapping[str, tuple[int, ...]]] = SHAPES
    reranks: ClassVar[bool] = True
    feature_names = ("likelihood",)

    def fit(self, training_set: TrainingSet, progress: Progress = silent) -> ChannelState:
        """Train the forward model on the spectra and their molecules; needs torch."""
        require("torch", "fitting the channel intensities")
        from mzseek.models.forward import ForwardNetwork, train_forward

        options = self.options
        examples = _Examples(training_set, options)
        network = ForwardNetwork(
            NUMBERS + IONS, EMBEDDINGS, CONDITIONS, OUTPUTS, hidden=HIDDEN, mixing=MIXING,
            bases=BASES, widths=WIDTHS, noise_places=NOISE_PLACES, floor=FLOOR, seed=options.seed,
        )  # fmt: skip
        train_forward(
            network, examples.batches, epochs=options.epochs, steps=examples.steps, lr=options.lr,
            progress=partial(progress, "forward model"),
        )  # fmt: skip
        return ChannelState(network.arrays(), {}, training_set.molecules_used)

    def features(self, state: ChannelState, queries: Queries) -> Features:
        """Log-likelihood of the spectrum under each candidate."""
        jobs, spectrum_of = queries.molecules.jobs, queries.ragged.list_index
        measured, index = _measured(queries.spectra, self.options, state.arrays)
        order = np.argsort(queries.candidates, kind="stable")
        members, first = np.unique(queries.candidates[order], return_index=True)
        rows_of = np.split(order, first[1:])
        contexts = molecule_contexts([queries.molecules.smiles[m] for m in members], jobs)
        values = np.zeros((queries.ragged.total, 1), np.float32)

        def score(number: int) -> None:
            rows = describe(contexts[number])
            bases: dict[bytes, Floats] = {}
            likelihoods: dict[int, float] = {}  # of a spectrum that has several lists
            for row in rows_of[number]:
                spectrum = index[spectrum_of[row]]
                if spectrum not in likelihoods:
                    likelihoods[spectrum] = measured[spectrum].likelihood(state.arrays, rows, bases)
                values[row] = likelihoods[spectrum]

        in_threads(score, len(members), jobs)
        return values


def molecule_contexts(smiles: Sequence[str], jobs: int | None = None) -> list[MoleculeContext]:
    """Atoms and bonds of molecules as the forward model reads them."""
    contexts: list[MoleculeContext] = []
    for _, batch in in_batches(_contexts, list(smiles), _MOLECULES, jobs):
        contexts += batch
    return contexts


def _contexts(smiles: Sequence[str]) -> list[MoleculeContext]:
    return [molecule_context(parse_molecule(text)) for text in smiles]


def _peaks_of(peaks: PeakTable, spectrum: int) -> PeaksOf:
    """The highest peaks of a spectrum; of equal ones those of lower m/z."""
    inside = np.arange(*peaks.starts[spectrum : spectrum + 2])
    if len(inside) > MAX_PEAKS:
        highest = np.argsort(-peaks.shares[inside], kind="stable")[:MAX_PEAKS]
        inside = inside[np.sort(highest)]
    shares = peaks.shares[inside]
    return PeaksOf(peaks.mz[inside], peaks.tolerances[inside], shares / shares.sum())


class _Measured(NamedTuple):
    """A spectrum as its likelihood is computed: peaks, ion, and what its conditions give."""

    peaks: PeaksOf
    forms: IonForms
    precursor_mz: float
    ion: npt.NDArray[np.float32]
    mixed: Floats
    noise: float
    width: float

    def likelihood(self, weights: Weights, rows: FragmentRows, bases: dict[bytes, Floats]) -> float:
        """Log-likelihood under a molecule; ``bases`` keeps its logits by ion."""
        if not len(self.peaks.mz):
            return 0.0
        basis = bases.get(self.ion.tobytes())
        if basis is None:
            basis = bases[self.ion.tobytes()] = basis_logits(weights, rows, self.ion)
        entries = ion_entries(rows, self.forms, self.precursor_mz)
        logits = entry_logits(basis, self.mixed, entries)
        return log_likelihood(logits, entries, self.peaks, self.noise, self.width)


def _measured(
    spectra: Sequence[Spectrum], options: IntensityOptions, weights: Weights
) -> tuple[list[_Measured], list[int]]:
    """Return distinct spectra with their conditions, and the index of each given one.

    A spectrum has several lists of candidates where several adducts are tried.
    """
    peaks = peaks_of_spectra(spectra, options.ppm, options.least)
    known: dict[tuple[object, ...], int] = {}
    measured: list[_Measured] = []
    index = []
    for number, spectrum in enumerate(spectra):
        instrument = instrument_kind(spectrum.metadata)
        key = (
            spectrum.mz.tobytes(), spectrum.intensities.tobytes(), spectrum.precursor_mz,
            spectrum.adduct, spectrum.charge, collision_energy(spectrum), instrument,
            spectrum.peak_ppm,
        )  # fmt: skip
        if key not in known:
            own_peaks = _peaks_of(peaks, number)
            known[key] = len(measured)
            measured.append(
                _Measured(
                    own_peaks,
                    peaks.forms[peaks.form_of[number]],
                    spectrum.precursor_mz,
                    ion_inputs(parse_adduct(adduct_of(spectrum))),
                    *mixture(weights, _conditions(spectrum, instrument, len(own_peaks.mz))),
                    float(weights["width"][width_of(instrument)]),
                )
            )
        index.append(known[key])
    return measured, index


def _conditions(spectrum: Spectrum, instrument: str | None, peaks: int) -> npt.NDArray[np.float32]:
    return conditions(collision_energy(spectrum), spectrum.precursor_mz, instrument, peaks)


class _Examples:
    """Training spectra, in canonical order, with the described fragments of their molecules."""

    def __init__(self, training_set: TrainingSet, options: IntensityOptions) -> None:
        self._options = options
        keys = np.array([content_hash(spectrum) for spectrum in training_set.spectra])
        inchikeys = training_set.inchikey14[training_set.molecule]
        order = np.lexsort((keys, inchikeys))
        spectra = [training_set.spectra[int(number)] for number in order]
        self._spectra = spectra
        self._instruments = [instrument_kind(spectrum.metadata) for spectrum in spectra]
        self._peaks = peaks_of_spectra(spectra, options.ppm, options.least)
        _, first, self._molecule = np.unique(
            inchikeys[order], return_index=True, return_inverse=True
        )
        smiles = [training_set.molecules.smiles[row] for row in training_set.molecule[order][first]]
        contexts = molecule_contexts(smiles)
        self._rows = [describe(context) for context in contexts]
        filled = np.flatnonzero(np.diff(self._peaks.starts) > 0)
        by_molecule = np.argsort(self._molecule[filled], kind="stable")
        counts = np.bincount(self._molecule[filled])
        self._groups = np.split(filled[by_molecule], np.cumsum(counts[counts > 0])[:-1])

    @property
    def steps(self) -> int:
        """Steps of all epochs."""
        spectra = sum(min(len(group), self._options.per_molecule) for group in self._groups)
        return self._options.epochs * -(-spectra // _BATCH)

    def batches(self, epoch: int) -> Iterator["ForwardBatch"]:
        """Batches of an epoch: some spectra of each molecule, in random order."""
        random = np.random.default_rng([self._options.seed, epoch])
        drawn = np.concatenate(
            [random.permutation(group)[: self._options.per_molecule] for group in self._groups]
        )
        random.shuffle(drawn)
        hidden = random.random(len(drawn)) < _HIDDEN
        for start in range(0, len(drawn), _BATCH):
            batch = slice(start, start + _BATCH)
            yield self._batch(drawn[batch], hidden[batch])

    def _batch(self, spectra: Ints, hidden: Flags) -> "ForwardBatch":
        from mzseek.models.forward import ForwardBatch

        columns: dict[str, list[npt.NDArray[Any]]] = {}
        rows_before = entries_before = peaks_before = 0
        for position, number in enumerate(spectra):
            rows, own_peaks = (
                self._rows[self._molecule[number]],
                _peaks_of(self._peaks, int(number)),
            )
            forms, spectrum = (
                self._peaks.forms[self._peaks.form_of[number]],
                self._spectra[int(number)],
            )
            entries = ion_entries(rows, forms, spectrum.precursor_mz)
            entry, peak, errors = match_entries(entries.mz, own_peaks.mz, own_peaks.tolerances)
            size = len(rows.masses)
            ion = np.broadcast_to(ion_inputs(parse_adduct(adduct_of(spectrum))), (size, IONS))
            instrument = None if hidden[position] else self._instruments[number]
            new = {
                "inputs": np.hstack([rows.numbers, ion]),
                "indices": rows.indices.astype(np.int64),
                "conditions": _conditions(spectrum, instrument, len(own_peaks.mz))[None],
                "width": np.array([width_of(instrument)]),
                "row_spectrum": np.full(size, position),
                "entry_row": entries.row + rows_before,
                "entry_output": entries.output,
                "entry_carried": entries.carried,
                "entry_double": entries.double,
                "match_entry": entry + entries_before,
                "match_peak": peak + peaks_before,
                "match_error": errors.astype(np.float32),
                "peak_spectrum": np.full(len(own_peaks.mz), position),
                "share": own_peaks.shares.astype(np.float32),
            }
            for name, values in new.items():
                columns.setdefault(name, []).append(values)
            rows_before += size
            entries_before += len(entries.row)
            peaks_before += len(own_peaks.mz)
        return ForwardBatch.of(**{name: np.concatenate(parts) for name, parts in columns.items()})
