"""Refit channels on all folds, collect reference spectra, measure the run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mzseek.annotation.confidence import MODES, Confidence, PolarityCalibration
from mzseek.bundle.bundle import MAX_PEAKS, compact_ions, compact_peaks, compact_spectrum
from mzseek.bundle.fit_confidence import merge_molecules, modes_of, usable_lists
from mzseek.chem.molecules import DescribedMolecule, describe_structure
from mzseek.core.errors import MoleculeError
from mzseek.core.ragged import Ragged
from mzseek.core.registry import FOLDS
from mzseek.datasets.prepared import Prepared
from mzseek.decision import calibration_error, prediction_sets
from mzseek.evaluation.scored import pool_lists
from mzseek.evidence.fitting import FitOptions, queries_of
from mzseek.evidence.model import EvidenceModel, precompute
from mzseek.evidence.prepared_queries import (
    queries_with_truth,
    sample_spectra,
    spectra_from,
    training_set_from,
)
from mzseek.evidence.queries import TrainingSet
from mzseek.library import Library
from mzseek.library.library import MOLECULE_SCHEMA, RECORD_COLUMNS, RECORD_SCHEMA
from mzseek.library.similarity import PeakLists, PrecursorIons, peak_lists
from mzseek.metrics import bootstrap, hit_rate
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.predictions import ListScores
from mzseek.runs.run import Run

Details = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, eq=False)
class References:
    """Reference spectra.

    Attributes
    ----------
    peaks, ions : PeakLists, PrecursorIons
        Compact.
    records : pyarrow.Table
    molecule_of : int64 array, shape (spectra,)
        Place of each one's molecule in ``molecules``.
    molecules : list of DescribedMolecule
        In standard form.
    """

    peaks: PeakLists
    ions: PrecursorIons
    records: pa.Table
    molecule_of: npt.NDArray[np.int64]
    molecules: list[DescribedMolecule]

    @property
    def keys(self) -> list[tuple[str, float]]:
        """Key and mass of each molecule."""
        return [molecule.identity for molecule in self.molecules]

    def library(self, folder: Path) -> Library:
        """The same as a library, to be searched."""
        rows = [
            {"smiles": m.smiles, "inchikey": m.key, "formula": m.formula, "mass": m.mass}
            for m in self.molecules
        ]
        molecules = pa.Table.from_pylist(rows, MOLECULE_SCHEMA)
        return Library.from_arrays(
            folder, self.peaks, self.ions, self.molecule_of, self.records, molecules
        )

    def features_by_ion(self) -> dict[str, Counter[str]]:
        """Pairs of a molecule and an ion, counted by ion, for each ion mode."""
        counts: dict[str, Counter[str]] = {mode: Counter() for mode in MODES}
        adducts = self.records["adduct"].to_pylist()
        pairs = set(zip(self.molecule_of.tolist(), adducts, self.ions.modes.tolist(), strict=True))
        for _, adduct, mode in sorted(pairs):
            if adduct:
                counts["negative" if mode < 0 else "positive"][adduct] += 1
        return counts

    @classmethod
    def of_library(cls, library: Library) -> "References":
        """All spectra of a library."""
        rows = library.molecules.to_pylist()
        for row in rows:  # the key of a bundle's molecule that InChI cannot name is its SMILES
            row["inchikey"] = "" if row["inchikey"].startswith("SMILES=") else row["inchikey"]
        return cls(
            PeakLists._make(np.array(array) for array in library.peaks),
            PrecursorIons._make(np.array(array) for array in library.ions),
            library.records,
            np.asarray(library.molecule_of, np.int64),
            [DescribedMolecule(**row) for row in rows],
        )


def references_from(
    prepared: Prepared,
    queries: npt.NDArray[np.integer],
    details: Details,
    max_peaks: int = MAX_PEAKS,
) -> References:
    """Some spectra of a prepared folder.

    Parameters
    ----------
    prepared : Prepared
    queries : int array
    details : mapping of str to mapping
        By identifier what else is known of spectra: energy, instrument, contributor, licence,
        source. What is missing stays empty.
    max_peaks : int
        Of a spectrum.
    """
    peaks, ions = peak_lists(spectra_from(prepared, queries))
    table, molecule_of = np.unique(prepared.molecule[queries], return_inverse=True)
    records = []
    for query in queries:
        known: dict[str, Any] = {
            "identifier": prepared.identifiers[int(query)],
            "adduct": prepared.adduct(int(query)) or "",
        }
        energy = float(prepared.collision_energy[query])
        known["collision_energy"] = "" if np.isnan(energy) else f"{energy:g}"
        known |= {name: v for name, v in details.get(known["identifier"], {}).items() if v}
        records.append({name: known.get(name, "") for name in RECORD_COLUMNS})
    return References(
        compact_peaks(peaks, max_peaks),
        compact_ions(ions),
        pa.Table.from_pylist(records, RECORD_SCHEMA),
        np.asarray(molecule_of, np.int64),
        [_described(prepared, int(number)) for number in table],
    )


def _described(prepared: Prepared, molecule: int) -> DescribedMolecule:
    """In standard form; as it is where that cannot be had."""
    smiles = prepared.smiles[molecule]
    try:
        return describe_structure(smiles)
    except MoleculeError:
        block = prepared.inchikey14[molecule].decode()
        mass = float(prepared.masses[molecule])
        return DescribedMolecule(smiles, prepared.formulas[molecule], mass, block)


MEASURED_ON = "test"
HITS = (1, 5, 20)
COVERAGE = 0.9


def measured(run: Run, prepared: Prepared, confidence: Confidence, setting: str) -> dict[str, Any]:
    """Hit rates, calibration and sets on the test fold, for each ion mode that it has.

    Rates are shares, each with its 95 % interval over molecules; a hit is the same molecule (first
    InChIKey block).
    """
    if not len(prepared.in_fold(MEASURED_ON)):
        return {}
    lists = usable_lists(run, prepared, MEASURED_ON, setting)
    modes = modes_of(prepared, lists.queries)
    by_mode = {}
    for mode, sign in MODES.items():
        if (modes == sign).any():
            by_mode[mode] = _measure(lists.select(modes == sign), prepared, confidence.of(sign))
    return by_mode


def _measure(lists: ListScores, prepared: Prepared, numbers: PolarityCalibration) -> dict[str, Any]:
    pooled, _ = pool_lists(lists, numbers.pooling)
    p = numbers.calibration.posterior(lists.scores, lists.counts)
    return {
        "spectra": len(lists.counts),
        "molecules": len(np.unique(lists.molecule)),
        "candidates": float(lists.counts.mean()),
        "hit_rates": hit_rates(lists, lists.scores),
        "hit_rates_together": hit_rates(pooled, pooled.scores),
        **calibration_of(lists, p, prepared, numbers),
    }


def hit_rates(lists: ListScores, scores: npt.NDArray[np.floating]) -> dict[str, list[float]]:
    """Hit rates at each k with their intervals over molecules."""
    labels = np.asarray(lists.identity) > 0
    return {
        str(k): interval_of(hit_rate(scores, lists.counts, labels, k), lists.molecule) for k in HITS
    }


def calibration_of(
    lists: ListScores,
    p: npt.NDArray[np.float64],
    prepared: Prepared,
    numbers: PolarityCalibration,
) -> dict[str, Any]:
    """Calibration error of probabilities, and coverage and size of prediction sets."""
    p, counts, truth = merge_molecules(lists, p, prepared)
    ragged = Ragged(counts)
    inside = prediction_sets(p, counts, numbers.threshold(COVERAGE)[1])
    covered = ragged.any(inside & truth).astype(np.float64)
    return {
        "calibration_error": float(calibration_error(p, counts, truth)),
        "sets": {
            "stated": COVERAGE,
            "covered": interval_of(covered, lists.molecule),
            "size": float(ragged.sum(inside.astype(np.int64)).mean()),
        },
    }


def interval_of(values: Any, molecule: npt.NDArray[np.integer]) -> list[float]:
    """Mean and 95 % interval over molecules."""
    interval = bootstrap(values, molecule)
    return [round(float(value), 6) for value in (interval.mean, interval.low, interval.high)]


def refit_channels(
    model: EvidenceModel,
    prepared: Prepared,
    options: FitOptions,
    *,
    folds: Sequence[str] = FOLDS,
    max_peaks: int = MAX_PEAKS,
    jobs: int | None = None,
    progress: Progress = silent,
) -> EvidenceModel:
    """Fit the channels of a model on these folds; the ranker and pretrained channels stay.

    Reference spectra are made compact before, so that nothing is lost when they are packed.
    ``options`` are those that the ranker was fitted with.
    """
    training_set = training_set_of(prepared, options, folds, jobs=jobs)
    precompute(model.channels, training_set.queries.molecules, progress)
    spectra = [compact_spectrum(spectrum, max_peaks) for spectrum in training_set.spectra]
    training_set = replace(training_set, spectra=spectra)
    states = [
        state if channel.pretrained else channel.fit(training_set, progress)
        for channel, state in zip(model.channels, model.states, strict=True)
    ]
    return replace(model, states=states)


def training_set_of(
    prepared: Prepared, options: FitOptions, folds: Sequence[str], *, jobs: int | None = None
) -> TrainingSet:
    """All spectra of folds, and labelled queries with as many of them as the options allow."""
    spectra = reference_spectra(prepared, folds)
    usable = queries_with_truth(prepared, spectra, options.candidates, options.identity)
    drawn = sample_spectra(prepared, usable, options.spectra_each)
    return training_set_from(prepared, spectra, queries_of(prepared, drawn, options, jobs))


def reference_spectra(prepared: Prepared, folds: Sequence[str]) -> npt.NDArray[np.int64]:
    """Spectra of folds, in the order of the folder."""
    return np.sort(np.concatenate([prepared.in_fold(fold) for fold in folds]))
