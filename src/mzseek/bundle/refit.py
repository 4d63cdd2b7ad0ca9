"""Fit channels once more on all folds, collect references, measure the run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mzseek.annotation.confidence import MODES, Confidence, PolarityCalibration
from mzseek.bundle.bundle import MOST_PEAKS, compact_ions, compact_peaks, compact_spectrum
from mzseek.bundle.fit_confidence import answers_of, modes_of, only, usable_lists
from mzseek.chem.molecules import DescribedMolecule, describe_structure
from mzseek.core.errors import MoleculeError
from mzseek.core.ragged import Ragged
from mzseek.core.registry import FOLDS
from mzseek.datasets.prepared import Prepared
from mzseek.decision import calibration_error, prediction_sets
from mzseek.evaluation.pooled import pool_lists
from mzseek.evidence.channel import ChannelState, precompute
from mzseek.evidence.fitting import FitOptions
from mzseek.evidence.model import EvidenceModel
from mzseek.evidence.queries import (
    TrainingSet,
    labelled_queries,
    queries_with_truth,
    sample_spectra,
    spectra_from,
    training_set_from,
)
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
        """The same, to be searched."""
        rows = [_row(molecule) for molecule in self.molecules]
        molecules = pa.Table.from_pylist(rows, MOLECULE_SCHEMA)
        return Library.from_arrays(
            folder, self.peaks, self.ions, self.molecule_of, self.records, molecules
        )

    def features_by_ion(self) -> dict[str, Counter[str]]:
        """How many pairs of a molecule and an ion there are of each ion, for each mode."""
        found: dict[str, Counter[str]] = {mode: Counter() for mode in MODES}
        adducts = self.records["adduct"].to_pylist()
        pairs = set(zip(self.molecule_of.tolist(), adducts, self.ions.modes.tolist(), strict=True))
        for _, adduct, mode in sorted(pairs):
            if adduct:
                found["negative" if mode < 0 else "positive"][adduct] += 1
        return found

    @classmethod
    def of_library(cls, library: Library) -> "References":
        """All spectra of a library."""
        rows = library.molecules.to_pylist()
        for row in rows:  # the key of a bundle's molecule that InChI cannot name is its SMILES
            row["inchikey"] = "" if row["inchikey"].startswith("SMILES=") else row["inchikey"]
        return cls(
            PeakLists._make(np.array(each) for each in library.peaks),
            PrecursorIons._make(np.array(each) for each in library.ions),
            library.records,
            np.asarray(library.molecule_of, np.int64),
            [DescribedMolecule(**row) for row in rows],
        )


def references_from(
    prepared: Prepared,
    queries: npt.NDArray[np.integer],
    details: Details,
    most_peaks: int = MOST_PEAKS,
) -> References:
    """Some spectra of a prepared folder.

    Parameters
    ----------
    prepared : Prepared
    queries : int array
    details : mapping of str to mapping
        By identifier what else is known of spectra: energy, instrument, contributor, licence,
        source. What is missing stays empty.
    most_peaks : int
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
        compact_peaks(peaks, most_peaks),
        compact_ions(ions),
        pa.Table.from_pylist(records, RECORD_SCHEMA),
        np.asarray(molecule_of, np.int64),
        [_described(prepared, int(each)) for each in table],
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


def _row(molecule: DescribedMolecule) -> dict[str, Any]:
    return {
        "smiles": molecule.smiles,
        "inchikey": molecule.key,
        "formula": molecule.formula,
        "mass": molecule.mass,
    }


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
    found = {}
    for mode, sign in MODES.items():
        own = np.flatnonzero(modes == sign)
        if len(own):
            found[mode] = _of_mode(only(lists, own), prepared, confidence.of(sign))
    return found


def _of_mode(lists: ListScores, prepared: Prepared, numbers: PolarityCalibration) -> dict[str, Any]:
    pooled, _ = pool_lists(lists, numbers.pooling)
    p, counts, truth = answers_of(lists, prepared, numbers.calibration)
    ragged = Ragged(counts)
    inside = prediction_sets(p, counts, numbers.threshold(COVERAGE)[1])
    covered = ragged.any(inside & truth).astype(np.float64)
    return {
        "spectra": len(lists.counts),
        "molecules": len(np.unique(lists.molecule)),
        "candidates": float(lists.counts.mean()),
        "hit_rates": {str(k): _rate(lists, k) for k in HITS},
        "hit_rates_together": {str(k): _rate(pooled, k) for k in HITS},
        "calibration_error": float(calibration_error(p, counts, truth)),
        "sets": {
            "stated": COVERAGE,
            "covered": interval_of(covered, lists.molecule),
            "size": float(ragged.sum(inside.astype(np.int64)).mean()),
        },
    }


def _rate(lists: ListScores, k: int) -> list[float]:
    labels = np.asarray(lists.identity) > 0
    return interval_of(hit_rate(lists.scores, lists.counts, labels, k), lists.molecule)


def interval_of(values: Any, molecule: npt.NDArray[np.integer]) -> list[float]:
    """Mean and 95 % interval over molecules."""
    found = bootstrap(values, molecule)
    return [round(float(each), 6) for each in (found.mean, found.low, found.high)]


def refit_channels(
    fitted: EvidenceModel,
    prepared: Prepared,
    options: FitOptions,
    *,
    folds: Sequence[str] = FOLDS,
    most_peaks: int = MOST_PEAKS,
    jobs: int | None = None,
    progress: Progress = silent,
) -> EvidenceModel:
    """The same ranker over channels that have learned from these folds.

    A channel that has learned elsewhere stays as it is. Reference spectra are made compact before
    they are learned from, so that nothing is lost when they are packed.

    Parameters
    ----------
    fitted : EvidenceModel
    prepared : Prepared
    options : FitOptions
        As the ranker was fitted with.
    folds : sequence of str
    most_peaks : int
        Of a reference spectrum.
    """
    training_set = training_set_of(prepared, options, folds, jobs=jobs)
    precompute(fitted.channels, training_set.queries.molecules, progress)
    training_set = replace(
        training_set, spectra=[compact_spectrum(s, most_peaks) for s in training_set.spectra]
    )
    learned: list[ChannelState] = [
        own if channel.pretrained else channel.fit(training_set, progress)
        for channel, own in zip(fitted.channels, fitted.states, strict=True)
    ]
    return EvidenceModel(fitted.channels, learned, fitted.ranker)


def training_set_of(
    prepared: Prepared, options: FitOptions, folds: Sequence[str], *, jobs: int | None = None
) -> TrainingSet:
    """What channels learn from folds: all their spectra, and questions about some of each molecule.

    Parameters
    ----------
    prepared : Prepared
    options : FitOptions
        How many spectra and candidates are drawn.
    folds : sequence of str
    jobs : int, optional
        Processes that find fragments, once somebody asks for them.
    """
    queries = reference_queries(prepared, folds)
    usable = queries_with_truth(prepared, queries, options.candidates, options.identity)
    asked = labelled_queries(
        prepared, sample_spectra(prepared, usable, options.spectra_each), options.candidates,
        identity=options.identity, max_candidates=options.most_candidates, jobs=jobs,
    )  # fmt: skip
    return training_set_from(prepared, queries, asked)


def reference_queries(prepared: Prepared, folds: Sequence[str]) -> npt.NDArray[np.int64]:
    """Spectra of folds, in the order of the folder."""
    return np.sort(np.concatenate([prepared.in_fold(fold) for fold in folds]))
