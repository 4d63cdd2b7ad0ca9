"""Fit the confidence of a bundle on validation: calibration, sets, in-database probability."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression, minimize

from mzseek.annotation.candidates import Molecule, distinct, molecules_of_table
from mzseek.annotation.confidence import (
    COVERAGES,
    MODES,
    NAMES,
    QUANTILES,
    Confidence,
    InDatabase,
    ListEvidence,
    MatchOdds,
    PolarityCalibration,
)
from mzseek.annotation.features import IN_MEMORY, Feature
from mzseek.annotation.query import FeatureQuery, Hypothesis, can_be
from mzseek.annotation.references import library_without_precursors, without_precursor
from mzseek.annotation.scoring import mode_of, score_with_background
from mzseek.bundle.molecules import BundledMolecules
from mzseek.chem.adducts import parse_adduct
from mzseek.core.errors import BundleError
from mzseek.core.ragged import Ragged
from mzseek.datasets.layout import IDENTITY_BITS
from mzseek.datasets.prepared import Prepared
from mzseek.decision import Calibration, fit_calibration, fit_pooling, fit_set_threshold
from mzseek.decision.calibration import merge_equal
from mzseek.evaluation.scored import Scoring, molecule_groups, pool_lists, scored_lists
from mzseek.evidence.fitting import StructureGroups, structure_groups_from
from mzseek.evidence.model import EvidenceModel
from mzseek.evidence.prepared_queries import queries_with_truth, sample_spectra, spectra_from
from mzseek.evidence.ranker import MIN_MOLECULES
from mzseek.io import stable_hash
from mzseek.library import Library
from mzseek.library.library import Matches
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.predictions import ListScores
from mzseek.runs.run import Run
from mzseek.spectra import Spectrum

Floats = npt.NDArray[np.float64]
SIZES = (1, 2, 3, 5, 10, 30, 100)  # candidates that prepared lists are thinned to
WHOLE, BUNDLED = 0, -1  # in the place of a size: the whole list, the bundled molecules of the mass
SPECTRA = 3  # of a molecule, judged one alone and all together
_AT_ONCE = 16  # features of neighbouring masses, which share molecules


@dataclass(frozen=True, eq=False)
class Case:
    """A validation feature with a list that holds its molecule, or one that lacks it.

    Attributes
    ----------
    molecule : int
        Place of the true molecule in the prepared folder.
    mode : int
        1 or −1.
    spectra : int
    size : int
        Length that the list was thinned to, `WHOLE` or `BUNDLED`.
    is_present : bool
        Whether the list holds the molecule.
    is_right : bool
        Whether the best candidate is the molecule.
    evidence : ListEvidence
    """

    molecule: int
    mode: int
    spectra: int
    size: int
    is_present: bool
    is_right: bool
    evidence: ListEvidence


@dataclass(frozen=True, eq=False)
class CaseTable:
    """Features, shape (cases, len(NAMES)), and labels of cases; explained, margin of the best."""

    features: Floats
    present: npt.NDArray[np.bool_]
    is_right: npt.NDArray[np.bool_]
    size: npt.NDArray[np.int64]
    molecule: npt.NDArray[np.int64]
    explained: Floats
    margin: Floats

    @classmethod
    def of(cls, cases: Sequence[Case], calibration: Calibration) -> "CaseTable":
        """Return the features of cases under a calibration."""
        rows = [case.evidence.features(calibration) for case in cases]
        return cls(
            np.array(rows, np.float64).reshape(len(rows), len(NAMES)),
            np.array([case.is_present for case in cases], np.bool_),
            np.array([case.is_right for case in cases], np.bool_),
            np.array([case.size for case in cases], np.int64),
            np.array([case.molecule for case in cases], np.int64),
            np.array([case.evidence.explained[case.evidence.best] for case in cases], np.float64),
            np.array([case.evidence.margin(calibration) for case in cases], np.float64),
        )


def make_cases(
    prepared: Prepared,
    fold: str,
    setting: str,
    fitted: EvidenceModel,
    confidence: Confidence,
    library: Library,
    molecules: BundledMolecules,
    *,
    progress: Progress = silent,
) -> list[Case]:
    """Score lists of a fold, thinned to each length, with and without their molecule.

    Each is scored as `annotate` would, with the background that it would take. Which candidates
    are drawn depends on the molecule alone.

    Parameters
    ----------
    prepared : Prepared
    fold : str
        That channels did not learn from.
    setting : str
        Name of the candidate lists.
    fitted : EvidenceModel
    confidence : Confidence
        For how far spectra of a feature are dependent.
    library : Library
        Reference spectra that the nearest is looked up in.
    molecules : BundledMolecules
        The bundled molecules, which the background is drawn from.
    """
    queries = queries_with_truth(prepared, np.sort(prepared.in_fold(fold)), setting, "inchikey")
    groups = list(_features(prepared, sample_spectra(prepared, queries, SPECTRA)))
    groups.sort(key=lambda group: float(prepared.masses[group[0]]))
    fingerprint = str(prepared.manifest["options"]["fingerprint"])
    cases: list[Case] = []
    for start in range(0, len(groups), _AT_ONCE):
        part = groups[start : start + _AT_ONCE]
        nearest = _nearest(library, [feature for _, feature in part])
        thinned = [
            (molecule, similarity, *case)
            for (molecule, feature), similarity in zip(part, nearest, strict=True)
            for case in _thinned(prepared, molecule, feature, setting, molecules)
        ]
        scored, _ = score_with_background(
            [query for *_, query, _ in thinned], [similarity for _, similarity, *_ in thinned],
            fitted, confidence, fingerprint, molecules, without=[case[-1] for case in thinned],
        )  # fmt: skip
        for case, (_, evidence) in zip(thinned, scored, strict=True):
            molecule, _, size, is_present, query, _ = case
            is_right = query.molecules[0][evidence.best].key == _key(prepared, molecule)
            cases.append(
                Case(
                    molecule, mode_of(query), len(query.feature.spectra), size, is_present,
                    is_right, evidence,
                )
            )  # fmt: skip
        progress("lists with and without their molecule", start + len(part), len(groups))
    return cases


def _thinned(
    prepared: Prepared, molecule: int, feature: Feature, setting: str, bundled: BundledMolecules
) -> Iterator[tuple[int, bool, FeatureQuery, frozenset[str]]]:
    """Lists of a feature, of each length, with and without its molecule.

    Yields the length, whether the molecule is present, the query, and keys that its background
    must not hold. Both lists have one length, so that it tells nothing, and the background holds
    neither the molecule nor the candidate that makes room for it.
    """
    adduct = parse_adduct(str(feature.spectra[0].adduct))
    mass = adduct.neutral_mass(feature.spectra[0].precursor_mz)
    hypothesis = Hypothesis(adduct.name, (adduct.name,) * len(feature.spectra), mass, mass * 1e-5)
    stored = prepared.candidates(setting)
    number = int(stored.list_of[molecule])
    members = stored.molecules[int(stored.indptr[number]) : int(stored.indptr[number + 1])]
    truth = _molecule(prepared, molecule)
    listed = [_molecule(prepared, number) for number in map(int, members)]
    wrong = [candidate for candidate in distinct(listed) if candidate.key != truth.key]
    wrong.sort(key=lambda candidate: stable_hash(b"%d" % molecule, candidate.key.encode()))
    lists = [(size, wrong[:size]) for size in SIZES if size <= len(wrong)]
    lists.append((WHOLE, wrong))
    others = molecules_of_table(bundled.by_mass(mass, 10.0))
    lists.append((
        BUNDLED,
        [replace(candidate, row=-1) for candidate in others
         if candidate.key != truth.key and can_be(candidate, hypothesis)],
    ))  # fmt: skip
    for size, absent in lists:
        if not absent:
            continue
        without = frozenset(candidate.key for candidate in (truth, *absent))
        for is_present, candidates in ((True, [truth, *absent[:-1]]), (False, absent)):
            query = FeatureQuery(
                feature, (hypothesis,), (distinct(candidates),), (hypothesis,), len(candidates)
            )
            yield size, is_present, query, without


def _molecule(prepared: Prepared, number: int) -> Molecule:
    return Molecule(
        prepared.smiles[number], _key(prepared, number), "", float(prepared.masses[number])
    )


def _features(prepared: Prepared, queries: npt.NDArray[np.int64]) -> Iterator[tuple[int, Feature]]:
    """Features of each molecule and ion: its first spectrum alone, and all of them together."""
    groups: dict[tuple[int, str], list[int]] = {}
    for query in queries.tolist():
        adduct = prepared.adduct(query)
        if adduct:
            groups.setdefault((int(prepared.molecule[query]), adduct), []).append(query)
    for (molecule, adduct), members in groups.items():
        spectra = spectra_from(prepared, np.array(members))
        name = f"{molecule} {adduct}"
        yield molecule, Feature(name, IN_MEMORY, tuple(spectra[:1]))
        if len(spectra) > 1:
            yield molecule, Feature(name, IN_MEMORY, tuple(spectra))


def _key(prepared: Prepared, molecule: int) -> str:
    return str(prepared.inchikey14[molecule].decode())


def _nearest(library: Library, features: Sequence[Feature]) -> list[float]:
    """Similarity of the nearest reference spectrum, the highest of each feature's spectra."""
    spectra = [spectrum for feature in features for spectrum in feature.spectra]
    best = library.search(spectra, "analog", top=1)
    similarity = np.zeros(len(spectra))
    similarity[best.queries] = best.scores
    ends = np.cumsum([len(feature.spectra) for feature in features])[:-1]
    return [float(part.max()) for part in np.split(similarity, ends)]


def modes_of(prepared: Prepared, queries: npt.NDArray[np.integer]) -> npt.NDArray[np.int8]:
    """−1 for spectra of negative mode, else 1: what is not known counts as positive."""
    signs = {
        adduct: -1 if adduct and adduct.rstrip().endswith("-") else 1
        for adduct in {prepared.adduct(int(query)) for query in queries}
    }
    return np.array([signs[prepared.adduct(int(query))] for query in queries], np.int8)


IDENTITY = "inchikey"  # probabilities are those of molecules, not of their fingerprints
CALIBRATED_ON = "val"
_GROUPS = 5
_BINS = 15
_MIN_POOLED = 20  # molecules of several spectra: with fewer, their sets are those of one
_MIN_SCALE = 1e-9
_QUANTILE = 0.1  # of true molecules that rank first: nine of ten reach more
MIN_EXPLAINED = 0.1  # share of the intensity below which nothing is explained
_PPM = 20.0  # precursors of one m/z
_SIMILARITY_BINS = 10
_SAMPLE, _TOP, _MIN_PAIRS = 1_500, 100, 50
_MAX_LOG_ODDS = 5.0  # a few hundred pairs say no more


def fit_confidence(
    run: Run,
    fitted: EvidenceModel,
    prepared: Prepared,
    library: Library,
    ions: Mapping[str, Counter[str]],
    setting: str,
    molecules: BundledMolecules,
    *,
    progress: Progress = silent,
    min_molecules: int = MIN_MOLECULES,
) -> Confidence:
    """Fit the confidence of a run on its cross-fitted predictions of validation.

    Parameters
    ----------
    run : Run
        With predictions of val.
    fitted : EvidenceModel
        With channels fitted on the train fold.
    prepared : Prepared
    library : Library
        The reference spectra of the train fold.
    ions : mapping of str to Counter
        Features of the library by ion, for each ion mode.
    setting : str
        Name of the candidate lists.
    molecules : BundledMolecules
        The bundled molecules, which short lists are compared with.
    min_molecules : int
        With fewer validation molecules, an ion mode has the numbers of both.

    Raises
    ------
    BundleError
        No list of the fold holds its molecule.
    """
    lists = usable_lists(run, prepared, CALIBRATED_ON, setting, progress)
    modes = modes_of(prepared, lists.queries)
    known = np.unique(prepared.molecule[prepared.fold >= 0])
    groups = structure_groups_from(prepared, known, _GROUPS)
    by_mode: dict[str, PolarityCalibration] = {}
    for mode, sign in MODES.items():
        separate = len(np.unique(lists.molecule[modes == sign])) >= min_molecules
        inside = modes == sign if separate else np.ones(len(modes), np.bool_)
        by_mode[mode] = _calibrate(
            lists.select(inside), prepared, ions[mode], separate,
            fit_match_odds(library, sign),
        )  # fmt: skip
    cases = make_cases(
        prepared, CALIBRATED_ON, setting, fitted, Confidence(by_mode), library, molecules,
        progress=progress,
    )  # fmt: skip
    for mode, sign in MODES.items():
        numbers = by_mode[mode]
        here = [case for case in cases if case.mode == sign or not numbers.own]
        table = CaseTable.of(here, numbers.calibration)
        by_mode[mode] = replace(
            numbers,
            nearest=_quantiles(here),
            in_database=fit_in_database(table, prepared, groups),
        )
    return Confidence(by_mode)


def _quantiles(cases: Sequence[Case]) -> dict[float, float]:
    """Quantiles of the similarity of the nearest reference spectrum, of single spectra."""
    nearest = [
        case.evidence.nearest
        for case in cases
        if case.spectra == 1 and case.size == WHOLE and case.is_present
    ]
    return {level: float(np.quantile(nearest, level)) for level in QUANTILES} if nearest else {}


def usable_lists(
    run: Run, prepared: Prepared, fold: str, setting: str, progress: Progress = silent
) -> ListScores:
    """Saved scores of a fold's lists that hold their molecule by its InChIKey.

    ``identity`` says of each candidate only whether it is that.
    """
    how = Scoring(fold=fold, candidates=setting, identity=IDENTITY)
    step = min(int(best["step"]) for best in run.best.values())
    lists = scored_lists(run, prepared, how, step, progress)
    truth = (np.asarray(lists.identity) & IDENTITY_BITS[IDENTITY]) > 0
    holds = Ragged(lists.counts).any(truth)
    if not holds.any():
        raise BundleError(f"{prepared.folder}: no {fold} list holds its molecule")
    return replace(lists, identity=truth.astype(np.uint8), parts=None).select(holds)


def _calibrate(
    lists: ListScores,
    prepared: Prepared,
    ions: Counter[str],
    by_mode: bool,
    match: MatchOdds | None,
) -> PolarityCalibration:
    truth = np.asarray(lists.identity) > 0
    calibration = fit_calibration(lists.scores, lists.counts, truth, lists.molecule)
    pooling = fit_pooling(lists.scores, lists.counts, truth, molecule_groups(lists), calibration)
    pooled, spectra = pool_lists(lists, pooling)
    several = pooled.select(spectra > 1)
    enough = len(several.counts) >= _MIN_POOLED
    total = sum(ions.values())
    return PolarityCalibration(
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
        by_mode,
    )


def thresholds_of(
    lists: ListScores, prepared: Prepared, calibration: Calibration
) -> dict[float, float]:
    """For each coverage the threshold of prediction sets, fitted over molecules."""
    p = calibration.posterior(lists.scores, lists.counts)
    merged = merge_molecules(lists, p, prepared)
    return {
        coverage: fit_set_threshold(*merged, coverage, groups=lists.molecule)
        for coverage in COVERAGES
    }


def merge_molecules(
    lists: ListScores, p: Floats, prepared: Prepared
) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Probabilities, counts and labels of distinct molecules."""
    truth = np.asarray(lists.identity) > 0
    return merge_equal(p, lists.counts, prepared.inchikey14[lists.candidates], truth)


def fit_in_database(
    cases: CaseTable, prepared: Prepared, groups: StructureGroups
) -> InDatabase | None:
    """Fit on all cases, and measure on molecules that a fit left out.

    None where molecules are too few, or all near-duplicates.
    """
    if not len(cases.present):
        return None
    mean = cases.features.mean(0)
    scale = cases.features.std(0)
    scale[scale < _MIN_SCALE] = 1.0
    values = (cases.features - mean) / scale
    group = groups.groups_of(prepared.inchikey14[cases.molecule])
    weights = _once(cases.molecule)
    held = np.full(len(values), np.nan)
    for number in np.unique(group):
        inside = group == number
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
        mean, scale, at, intercept,
        max(float(np.quantile(cases.explained[right], _QUANTILE)), MIN_EXPLAINED),
        float(np.quantile(cases.margin[right], _QUANTILE)),
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
    bins = np.minimum((p * _BINS).astype(int), _BINS - 1)
    off = np.bincount(bins, weights * (labels - p), _BINS)
    return float(np.abs(off).sum() / weights.sum())


def _once(molecule: npt.NDArray[np.integer]) -> Floats:
    """Weights by which every molecule counts once."""
    _, index, counts = np.unique(molecule, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / counts[index])


def fit_logistic(
    values: Floats, labels: npt.NDArray[np.bool_], weights: Floats, l2: float = 3e-3
) -> tuple[Floats, float]:
    """Return the weights and the intercept under which the labels are most probable.

    Minimises the weighted mean of the log-loss plus ``l2 / 2 · Σ weights²``; the intercept is free.

    Examples
    --------
    >>> values = np.array([[1.0], [1.0], [0.0], [0.0]])
    >>> weights, intercept = fit_logistic(values, np.array([1, 1, 0, 1], bool), np.ones(4), 0.1)
    >>> bool(weights[0] > 0), round(intercept, 1)
    (True, 0.7)
    """
    sign = np.where(labels, 1.0, -1.0)
    share = weights / weights.sum()

    def loss(at: Floats) -> tuple[float, Floats]:
        margin = sign * (values @ at[:-1] + at[-1])
        slope = -share * sign / (1 + np.exp(margin))
        value = share @ np.logaddexp(0, -margin) + 0.5 * l2 * at[:-1] @ at[:-1]
        return float(value), np.append(values.T @ slope + l2 * at[:-1], slope.sum())

    solution = minimize(loss, np.zeros(values.shape[1] + 1), jac=True, method="L-BFGS-B")
    return np.asarray(solution.x[:-1]), float(solution.x[-1])


def fit_match_odds(library: Library, mode: int) -> MatchOdds | None:
    """Measure what similarities are worth in a library.

    Parameters
    ----------
    library : Library
        With contributors.
    mode : int
        1 for positive, −1 for negative.

    Returns
    -------
    MatchOdds or None
        None where too few molecules have spectra of two contributors.
    """
    chosen = _sample(np.flatnonzero(np.asarray(library.ions.modes) == mode))
    if not len(chosen):
        return None
    spectra = [without_precursor(_spectrum(library, int(record))) for record in chosen]
    matches = library_without_precursors(library).search(
        spectra, "cosine", _TOP, precursor_ppm=_PPM
    )
    same, others = _best_of_pairs(library, chosen, matches)
    if len(same) < _MIN_PAIRS or len(others) < _MIN_PAIRS:
        return None
    return MatchOdds(_odds(same, others), len(same), len(others), overlap_of(library, mode))


def overlap_of(library: Library, mode: int) -> float:
    """Return the share of a contributor's molecules that others have measured in an ion mode.

    Each pair of contributor and molecule counts once.
    """
    molecule = np.asarray(library.molecule_of)[np.asarray(library.ions.modes) == mode]
    whose = np.array(library.records["contributor"].to_pylist(), object)
    whose = whose[np.asarray(library.ions.modes) == mode]
    pairs = set(zip(molecule.tolist(), whose.tolist(), strict=True))
    contributors = Counter(number for number, _ in pairs)
    return sum(n for n in contributors.values() if n > 1) / max(len(pairs), 1)


def _best_of_pairs(
    library: Library, chosen: npt.NDArray[np.int64], matches: Matches
) -> tuple[Floats, Floats]:
    """BestMatches similarities of each spectrum with its own molecule, and with others of its m/z.

    Pairs without a peak in common have 0. Of its own molecule only records of other contributors
    count: those of one laboratory are more alike, and the user's is another one.
    """
    whose = np.array(library.records["contributor"].to_pylist(), object)
    molecule, precursors = np.asarray(library.molecule_of), np.asarray(library.ions.precursors)
    modes = np.asarray(library.ions.modes)
    scores = {
        (query, record): score
        for query, record, score in zip(
            matches.queries.tolist(), matches.records.tolist(), matches.scores.tolist(), strict=True
        )
    }
    order = np.argsort(precursors, kind="stable")
    width = _PPM * 1e-6 * precursors[chosen]
    low = np.searchsorted(precursors[order], precursors[chosen] - width)
    high = np.searchsorted(precursors[order], precursors[chosen] + width, side="right")
    best: tuple[dict[tuple[int, int], float], ...] = ({}, {})
    for query, record in enumerate(chosen.tolist()):
        for other in order[low[query] : high[query]].tolist():
            is_same = bool(molecule[other] == molecule[record])
            if modes[other] != modes[record] or (is_same and whose[other] == whose[record]):
                continue
            key = (query, int(molecule[other]))
            best_scores = best[0 if is_same else 1]
            best_scores[key] = max(best_scores.get(key, 0.0), scores.get((query, other), 0.0))
    same, others = (np.array(list(scores_of.values()), np.float64) for scores_of in best)
    return same, others


def _odds(same: Floats, others: Floats) -> Floats:
    """Log of the ratio of two histograms, one added to each bin, made to rise, and bounded."""
    edges = np.linspace(0, 1, _SIMILARITY_BINS + 1)
    counts = [
        np.histogram(np.minimum(similarities, 1.0), edges)[0] + 1.0
        for similarities in (same, others)
    ]
    log_odds = np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum())
    rising = isotonic_regression(log_odds, weights=counts[0] + counts[1]).x
    return np.asarray(np.clip(rising, -_MAX_LOG_ODDS, _MAX_LOG_ODDS))


def _sample(records: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """At most so many, evenly spaced."""
    step = max(len(records) // _SAMPLE, 1)
    return np.asarray(records[::step][:_SAMPLE], np.int64)


def _spectrum(library: Library, record: int) -> Spectrum:
    rows = slice(int(library.peaks.pointers[record]), int(library.peaks.pointers[record + 1]))
    return Spectrum(
        np.array(library.peaks.values[rows]), np.array(library.peaks.weights[rows]),
        float(library.ions.precursors[record]), None, int(library.ions.modes[record]) or None,
        str(record),
    )  # fmt: skip
