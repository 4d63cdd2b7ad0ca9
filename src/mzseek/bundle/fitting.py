"""What a bundle ships beside confidence: references, refitted channels, a prior, performance."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.optimize import minimize

from mzseek.annotation.confidence import MODES, Confidence, PolarityCalibration
from mzseek.bundle.bundle import (
    MAX_PEAKS,
    BundledPrior,
    compact_ions,
    compact_peaks,
    compact_spectrum,
)
from mzseek.bundle.fit_confidence import CALIBRATED_ON, merge_molecules, modes_of, usable_lists
from mzseek.chem.molecules import DescribedMolecule, describe_structure
from mzseek.core.errors import MoleculeError
from mzseek.core.ragged import Ragged
from mzseek.core.registry import FOLDS
from mzseek.datasets.prepared import Prepared
from mzseek.decision import calibration_error, posterior, prediction_sets
from mzseek.evaluation.scored import pool_lists
from mzseek.evidence.fitting import (
    FITTED_ON,
    CrossFittedChannel,
    FitOptions,
    queries_of,
    structure_groups_from,
    with_corrupted,
)
from mzseek.evidence.model import EvidenceModel, precompute
from mzseek.evidence.prepared_queries import (
    queries_from,
    queries_with_truth,
    sample_spectra,
    spectra_from,
    training_set_from,
)
from mzseek.evidence.prior import Prior
from mzseek.evidence.queries import Queries, TrainingSet
from mzseek.evidence.ranker import truth_slope
from mzseek.library import Library
from mzseek.library.library import MOLECULE_SCHEMA, RECORD_COLUMNS, RECORD_SCHEMA
from mzseek.library.similarity import PeakLists, PrecursorIons, peak_lists
from mzseek.metrics import bootstrap, hit_rate
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.predictions import ListScores
from mzseek.runs.run import Run

Details = Mapping[str, Mapping[str, str]]
Floats = npt.NDArray[np.float64]


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
    max_peaks: int = MAX_PEAKS,
    jobs: int | None = None,
    progress: Progress = silent,
) -> EvidenceModel:
    """Fit the channels of a model on all folds; the ranker and pretrained channels stay.

    Reference spectra are made compact before, so that nothing is lost when they are packed.
    ``options`` are those that the ranker was fitted with.
    """
    training_set = training_set_of(prepared, options, FOLDS, jobs=jobs)
    queries = training_set.queries
    precompute(model.channels, queries.molecules, progress)
    if options.augment:
        one_pool = np.zeros(len(queries), np.int64)
        queries = with_corrupted(queries, one_pool, options.augment)
    spectra = [compact_spectrum(spectrum, max_peaks) for spectrum in training_set.spectra]
    training_set = replace(training_set, spectra=spectra, queries=queries)
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


_MAX_WEIGHT = 10.0  # where few and clear lists set no bound
_MIN_PROBABILITY = 1e-300


def fit_prior(
    run: Run,
    prepared: Prepared,
    confidence: Confidence,
    options: FitOptions,
    folds: Sequence[str],
    *,
    jobs: int | None = None,
    progress: Progress = silent,
) -> tuple[BundledPrior, dict[str, Any]] | None:
    """Fit a prior on the train fold, and its weights on predictions of validation, cross-fitted.

    Parameters
    ----------
    run : Run
    prepared : Prepared
    confidence : Confidence
        With the calibration of scores.
    options : FitOptions
        That the ranker was fitted with.
    folds : sequence of str
        That the prior in the bundle is fitted on, once its weights are fitted.

    Returns
    -------
    BundledPrior and dict, or None
        The prior, and by ion mode of the test fold hit rates, calibration error and sets with it;
        None where the ranker has the prior among its channels: it must not count twice.
    """
    description = run.description.fitted
    if description is not None and any(part["name"] == Prior.name for part in description.channels):
        return None
    channel = Prior()
    known = np.concatenate([prepared.in_fold(part) for part in (FITTED_ON, CALIBRATED_ON)])
    groups = structure_groups_from(prepared, np.unique(prepared.molecule[known]), options.groups)
    crossfitted = CrossFittedChannel(
        channel, training_set_of(prepared, options, [FITTED_ON], jobs=jobs), groups
    )
    progress("prior", 1, 3)
    lists = usable_lists(run, prepared, CALIBRATED_ON, options.candidates)
    odds = crossfitted.features(_queries(prepared, lists, options))[:, 0]
    weights = _weights(lists, odds, modes_of(prepared, lists.queries), confidence)
    progress("prior", 2, 3)
    fitted = BundledPrior(channel, crossfitted.state, weights)
    performance = _measured(run, prepared, confidence, fitted, options)
    if tuple(folds) != (FITTED_ON,):
        training_set = training_set_of(prepared, options, folds, jobs=jobs)
        fitted = replace(fitted, state=channel.fit(training_set))
    progress("prior", 3, 3)
    return fitted, performance


def fit_weight(
    log_p: npt.ArrayLike,
    odds: npt.ArrayLike,
    counts: npt.ArrayLike,
    truth: npt.NDArray[np.bool_],
    molecule: npt.NDArray[np.integer],
) -> float:
    """Fit the weight of a prior's log-odds: truths most probable, every molecule counting once.

    Parameters
    ----------
    log_p : array, shape (candidates of all lists,)
        Calibrated log-probabilities without the prior.
    odds : array, shape (candidates of all lists,)
        Of lists that the prior was not fitted on.
    counts : int array, shape (lists,)
    truth : bool array, shape (candidates of all lists,)
    molecule : int array, shape (lists,)

    Returns
    -------
    float
        0 or more.

    Examples
    --------
    >>> truth = np.array([1, 0] * 3 + [0, 1], bool)  # the first of two in 3 of 4 lists
    >>> round(fit_weight(np.zeros(8), [1.0, 0.0] * 4, [2] * 4, truth, np.arange(4)), 3)  # log 3
    1.099
    """
    start, values = np.asarray(log_p, np.float64), np.asarray(odds, np.float64)
    lists = Ragged(np.asarray(counts, np.int64))
    _, index, number = np.unique(molecule, return_inverse=True, return_counts=True)
    share = 1.0 / number[index]
    share /= share.sum()

    def loss(at: Floats) -> tuple[float, Floats]:
        slope, log_truth = truth_slope(start + at[0] * values, lists, truth)
        return float(-share @ log_truth), np.array(
            [(lists.repeat_per_list(share) * slope) @ values]
        )

    options = {"ftol": 1e-12, "gtol": 1e-8}
    solution = minimize(
        loss, np.zeros(1), jac=True, method="L-BFGS-B", bounds=[(0, _MAX_WEIGHT)], options=options
    )
    return float(solution.x[0])


def _weights(
    lists: ListScores,
    odds: npt.NDArray[np.floating],
    modes: npt.NDArray[np.int8],
    confidence: Confidence,
) -> dict[str, float]:
    """A weight for each ion mode; one that has too few molecules of its own has that of both."""
    weights = {}
    for mode, sign in MODES.items():
        numbers = confidence.of(sign)
        inside = modes == sign if numbers.own else np.ones(len(modes), np.bool_)
        selected = lists.select(inside)
        log_odds = _centred(odds[np.repeat(inside, lists.counts)], selected.counts)
        truth = np.asarray(selected.identity) > 0
        weights[mode] = fit_weight(
            _log_p(selected, numbers),
            log_odds,
            selected.counts,
            truth,
            selected.molecule,
        )
    return weights


def _measured(
    run: Run, prepared: Prepared, confidence: Confidence, prior: BundledPrior, options: FitOptions
) -> dict[str, Any]:
    """Performance on the test fold with the prior applied, for each ion mode."""
    if not len(prepared.in_fold(MEASURED_ON)):
        return {}
    lists = usable_lists(run, prepared, MEASURED_ON, options.candidates)
    odds = prior.channel.features(prior.state, _queries(prepared, lists, options))[:, 0]
    modes = modes_of(prepared, lists.queries)
    by_mode = {}
    for mode, sign in MODES.items():
        inside = modes == sign
        if inside.any():
            selected, numbers = lists.select(inside), confidence.of(sign)
            log_odds = _centred(odds[np.repeat(inside, lists.counts)], selected.counts)
            values = _log_p(selected, numbers) + prior.weights[mode] * log_odds
            p = posterior(values, selected.counts)
            by_mode[mode] = {
                "hit_rates": hit_rates(selected, values),
                **calibration_of(selected, p, prepared, numbers),
            }
    return by_mode


def _queries(prepared: Prepared, lists: ListScores, options: FitOptions) -> Queries:
    """The same spectra and candidates, in the same order, as queries."""
    queries = queries_from(prepared, lists.queries, options.candidates)[0]
    return replace(queries, inchikey14=prepared.inchikey14[lists.molecule])


def _log_p(lists: ListScores, numbers: PolarityCalibration) -> Floats:
    p = numbers.calibration.posterior(lists.scores, lists.counts)
    return np.log(np.maximum(p, _MIN_PROBABILITY))


def _centred(values: npt.NDArray[np.floating], counts: npt.NDArray[np.integer]) -> Floats:
    """Values less the mean of their list."""
    lists, double = Ragged(np.asarray(counts, np.int64)), np.asarray(values, np.float64)
    return np.asarray(double - lists.repeat_per_list(lists.sum(double) / lists.counts))
