"""Fit confidence on validation: calibration, sets, ions, nearest references, in database."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mzseek.annotation.bundle.making.cases import (
    BUNDLED,
    SIZES,
    WHOLE,
    Cases,
    ScoredQuery,
    cases_of,
    modes_of,
    only,
    scored_queries,
)
from mzseek.annotation.bundle.molecules import BoxedMolecules
from mzseek.annotation.confidence import COVERAGES, MODES, QUANTILES, Confidence, OfMode
from mzseek.annotation.in_database import InDatabase, fit_logistic
from mzseek.annotation.matching import MatchOdds, fit_match_odds
from mzseek.decision import Calibration, fit_calibration, fit_pooling, fit_set_threshold
from mzseek.decision.confidence.lists import merge_answers
from mzseek.errors import BundleError
from mzseek.evaluation.scored import Scoring, scored_lists
from mzseek.evaluation.together import groups_of, pooled_lists
from mzseek.evidence.fitted import Fitted
from mzseek.evidence.fitting.crossfit import Groups
from mzseek.evidence.fitting.swapped import groups_from
from mzseek.evidence.ranker import FEW
from mzseek.library import Library
from mzseek.prepared.reader import Prepared
from mzseek.prepared.slices import IDENTITIES
from mzseek.ragged import Ragged
from mzseek.runs.predictions import ListScores
from mzseek.runs.run import Run
from mzseek.work.progress import Progress, silent

Floats = npt.NDArray[np.float64]
SENSE = "inchikey"  # probabilities are those of molecules, not of their fingerprints
FITTED_ON = "val"
_GROUPS = 5
_BINS = 15
_SEVERAL = 20  # molecules of several spectra: with fewer, their sets are those of one
_SPACE = 1e-9
_REACHED = 0.1  # quantile of true molecules that rank first: what nine of ten of them reach
LEAST_EXPLAINED = 0.1  # share of the intensity below which nothing is explained


def fit_confidence(
    run: Run,
    fitted: Fitted,
    prepared: Prepared,
    library: Library,
    ions: Mapping[str, Counter[str]],
    setting: str,
    molecules: BoxedMolecules,
    *,
    progress: Progress = silent,
    few: int = FEW,
) -> Confidence:
    """The numbers of a fitted run, from what it says of validation, cross-fitted.

    Parameters
    ----------
    run : Run
        With predictions of val.
    fitted : Fitted
        What channels have learned from the train fold.
    prepared : Prepared
    library : Library
        The reference spectra of the train fold.
    ions : mapping of str to Counter
        Features of the library by ion, for each ion mode.
    setting : str
        Name of the candidate lists.
    molecules : BoxedMolecules
        The bundled molecules, which short lists are compared with.
    few : int
        With fewer validation molecules, an ion mode has the numbers of both.

    Raises
    ------
    BundleError
        No list of the fold holds its molecule.
    """
    lists = usable_lists(run, prepared, FITTED_ON, setting, progress)
    modes = modes_of(prepared, lists.queries)
    known = np.unique(prepared.molecule[prepared.fold >= 0])
    groups = groups_from(prepared, known, _GROUPS)
    found: dict[str, OfMode] = {}
    for mode, sign in MODES.items():
        own = len(np.unique(lists.molecule[modes == sign])) >= few
        inside = modes == sign if own else np.ones(len(modes), np.bool_)
        found[mode] = _of_mode(
            only(lists, np.flatnonzero(inside)), prepared, ions[mode], own,
            fit_match_odds(library, sign),
        )  # fmt: skip
    queries = scored_queries(
        prepared, FITTED_ON, setting, fitted, Confidence(found), library, molecules,
        progress=progress,
    )  # fmt: skip
    for mode, sign in MODES.items():
        numbers = found[mode]
        here = [query for query in queries if query.mode == sign or not numbers.own]
        cases = cases_of(here, numbers.calibration)
        found[mode] = replace(
            numbers,
            nearest=_quantiles(here),
            in_database=fit_in_database(cases, prepared, groups),
        )
    return Confidence(found)


def _quantiles(queries: Sequence[ScoredQuery]) -> dict[float, float]:
    """Quantiles of the similarity of the nearest reference spectrum, of single spectra."""
    near = [query.evidence.nearest for query in queries if query.spectra == 1]
    return {each: float(np.quantile(near, each)) for each in QUANTILES} if near else {}


def usable_lists(
    run: Run, prepared: Prepared, fold: str, setting: str, progress: Progress = silent
) -> ListScores:
    """Saved scores of a fold's lists that hold their molecule by its InChIKey.

    ``identity`` says of each candidate only whether it is that.
    """
    how = Scoring(fold=fold, candidates=setting, identity=SENSE)
    said = scored_lists(
        run, prepared, how, min(int(f["step"]) for f in run.best.values()), progress
    )
    truth = (np.asarray(said.identity) & IDENTITIES[SENSE]) > 0
    holds = np.flatnonzero(Ragged(said.counts).any(truth)) if len(said.counts) else said.counts
    if not len(holds):
        raise BundleError(f"{prepared.folder}: no {fold} list holds its molecule")
    marked = ListScores(
        said.queries,
        said.molecule,
        said.counts,
        said.candidates,
        truth.astype(np.uint8),
        said.scores,
    )
    return only(marked, holds)


def _of_mode(
    lists: ListScores,
    prepared: Prepared,
    ions: Counter[str],
    own: bool,
    match: MatchOdds | None,
) -> OfMode:
    truth = np.asarray(lists.identity) > 0
    calibration = fit_calibration(lists.scores, lists.counts, truth, lists.molecule)
    pooling = fit_pooling(lists.scores, lists.counts, truth, groups_of(lists), calibration)
    pooled, spectra = pooled_lists(lists, pooling)
    several = only(pooled, np.flatnonzero(spectra > 1))
    enough = len(several.counts) >= _SEVERAL
    total = sum(ions.values())
    return OfMode(
        calibration,
        pooling,
        thresholds_of(lists, prepared, calibration),
        thresholds_of(several, prepared, calibration) if enough else {},
        {ion: number / total for ion, number in sorted(ions.items())},
        0.5 / (total + 1),
        {},
        None,
        match,
        len(np.unique(lists.molecule)),
        own,
    )


def thresholds_of(
    lists: ListScores, prepared: Prepared, calibration: Calibration
) -> dict[float, float]:
    """For each coverage the threshold of prediction sets, fitted over molecules."""
    answers = answers_of(lists, prepared, calibration)
    return {each: fit_set_threshold(*answers, each, groups=lists.molecule) for each in COVERAGES}


def answers_of(
    lists: ListScores, prepared: Prepared, calibration: Calibration
) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Probabilities, counts and labels of distinct molecules."""
    p = calibration.posterior(lists.scores, lists.counts)
    truth = np.asarray(lists.identity) > 0
    return merge_answers(p, lists.counts, prepared.blocks[lists.candidates], truth)


def fit_in_database(cases: Cases, prepared: Prepared, groups: Groups) -> InDatabase | None:
    """Fit on all cases, and measure on molecules that a fit left out.

    None where molecules are too few, or all near-duplicates.
    """
    if not len(cases.present):
        return None
    mean = cases.features.mean(0)
    spread = cases.features.std(0)
    spread[spread < _SPACE] = 1.0
    values = (cases.features - mean) / spread
    group = groups.group[groups.places(prepared.blocks[cases.molecule])]
    weights = _once(cases.molecule)
    held = np.full(len(values), np.nan)
    for each in np.unique(group):
        inside = group == each
        if inside.all():
            return None
        at, intercept = fit_logistic(values[~inside], cases.present[~inside], weights[~inside])
        held[inside] = 1 / (1 + np.exp(-values[inside] @ at - intercept))
    at, intercept = fit_logistic(values, cases.present, weights)
    right = cases.is_right & (cases.size == WHOLE)
    if not right.any():
        right = cases.is_right
    if not right.any():
        return None
    auc = {}
    labels = {size: f"lists of {size}" for size in SIZES}
    for size, label in (labels | {WHOLE: "whole lists", BUNDLED: "bundled molecules"}).items():
        rows = cases.size == size
        if rows.any():
            auc[label] = auc_of(held[rows], cases.present[rows], weights[rows])
    return InDatabase(
        mean, spread, at, intercept,
        max(float(np.quantile(cases.explained[right], _REACHED)), LEAST_EXPLAINED),
        float(np.quantile(cases.margin[right], _REACHED)),
        auc, error_of(held, cases.present, weights), len(np.unique(cases.molecule)),
    )  # fmt: skip


def auc_of(p: Floats, labels: npt.NDArray[np.bool_], weights: Floats) -> float:
    """How often a labelled case has the higher value of two; equal ones count half.

    Examples
    --------
    >>> auc_of(np.array([0.9, 0.4, 0.4]), np.array([True, True, False]), np.ones(3))
    0.75
    """
    order = np.unique(p, return_inverse=True)[1]
    yes = np.bincount(order, weights * labels)
    no = np.bincount(order, weights * ~labels)
    below = np.cumsum(no) - no
    return float((yes * (below + no / 2)).sum() / (yes.sum() * no.sum()))


def error_of(p: Floats, labels: npt.NDArray[np.bool_], weights: Floats) -> float:
    """Expected calibration error, in bins of equal width.

    Examples
    --------
    >>> error_of(np.array([0.5, 0.5]), np.array([True, False]), np.ones(2))
    0.0
    """
    place = np.minimum((p * _BINS).astype(int), _BINS - 1)
    off = np.bincount(place, weights * (labels - p), _BINS)
    return float(np.abs(off).sum() / weights.sum())


def _once(molecule: npt.NDArray[np.integer]) -> Floats:
    """Weights by which every molecule counts once."""
    _, place, counts = np.unique(molecule, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / counts[place])
