"""From scores to an annotation: probabilities, prediction set, decisions, level."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.annotation.annotation import Annotation, Candidate, Reference
from mzseek.annotation.candidates import Molecule
from mzseek.annotation.confidence import ListEvidence, PolarityCalibration
from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.query import FeatureQuery, Hypothesis, error_ppm
from mzseek.annotation.references import (
    LevelEvidence,
    Neighbours,
    credited,
    is_good_match,
    level_of,
    unlisted_match,
    unlisted_matches,
    unlisted_note,
)
from mzseek.annotation.scoring import Scored
from mzseek.classes import CompoundClass
from mzseek.decision import UTILITIES, distribution, prediction_sets
from mzseek.decision.distributions import expected_of_candidates, row_keys

if TYPE_CHECKING:
    from mzseek.annotation.external_scores import Contribution
    from mzseek.annotation.prior import PriorScores

Floats = npt.NDArray[np.float64]
MATCH = "library"  # label of the contribution of reference spectra of the candidate itself
EXTERNAL = "external"  # kind of the scores of other programs
_LEAST = 1e-300
_EQUAL = 1e-9  # difference between scores that is rounding
_BY_PROBABILITY = ("3", "4")  # levels
_CREDITED = 5  # candidates whose references are looked up
MIN_REFERENCES = 20  # features of an ion, below which probabilities were not calibrated for it
PEAKS_TO_COUNT = 4  # matching peaks of a library match that says the molecule is in the database
# Log-odds of a match within the bounds of level 2a, beyond those of its similarity, which compare
# molecules of one m/z: of the queries of validation whose molecule is missing, 2 % have such a
# match; spectra of one molecule by two contributors are similar enough in 75 % of pairs.
GOOD_MATCH = math.log(4.0)


def annotate_query(
    query: FeatureQuery,
    scored: Scored,
    neighbours: Neighbours,
    numbers: PolarityCalibration,
    channels: Mapping[str, str],
    fingerprints: csr_array,
    config: AnnotateConfig,
    evidence: ListEvidence,
    prior: "PriorScores | None" = None,
    *,
    external: Sequence["Contribution"] = (),
    share: float = 0.5,
    in_library: float = 1.0,
    classify: Callable[[Floats, float | None], CompoundClass] | None = None,
) -> Annotation:
    """Annotate a feature that has candidates.

    Parameters
    ----------
    query, scored, neighbours
        The feature with its candidates, their scores, and the nearest reference spectra.
    numbers : PolarityCalibration
        By which scores become probabilities, of its ion mode.
    channels : mapping of str to str
        Kind of evidence of each channel (`Channel.kind`) by label, in the order of `Scored.parts`.
    fingerprints : CSR of 0/1, shape (candidates, bits)
    config : AnnotateConfig
    evidence : ListEvidence
        Scores of the candidates of the best ion, and of molecules that they are compared with.
    prior : PriorScores, optional
        Log-odds that no spectrum supports.
    external : sequence of Contribution
        Log-odds from scores of other programs.
    share : float
        Expected share of features whose molecule is in the database.
    in_library : float
        Share of the database's molecules with reference spectra.
    classify : callable, optional
        Returns the compound class, given the probabilities of the candidates and that of being in
        the database.
    """
    counts = np.array([query.n_candidates])
    molecules = [molecule for listed in query.molecules for molecule in listed]
    by_score = numbers.calibration.posterior(scored.scores, counts)
    match = _match_log_odds([molecule.key for molecule in molecules], neighbours, numbers)
    extra = [contribution.log_odds for contribution in external]
    extra += [] if prior is None else [prior.log_odds]
    p = _posterior(by_score, match, extra)
    coverage, threshold = numbers.threshold(config.coverage, len(query.feature.spectra))
    in_set = prediction_sets(p, counts, threshold)
    utilities = _expected_utilities(p, fingerprints)
    keys = np.array([molecule.key or molecule.smiles for molecule in molecules])
    order = _order(utilities[config.objective], p, keys)
    first, rest = order[: config.top], order[config.top :]
    # The first candidates, and whatever else is in the set.
    shown = np.concatenate([first, rest[in_set[rest]]])
    added = np.column_stack([match, *extra])
    candidates = _candidates(query, scored, neighbours, p, added, in_set, shown)
    unlisted = unlisted_match(query, neighbours)
    rivals = unlisted_matches(query, neighbours)
    # A match of few peaks says little about whether the molecule is there: it counts only against.
    has_few_peaks = [
        m.key not in neighbours.matches or neighbours.matches[m.key].peaks < PEAKS_TO_COUNT
        for m in molecules
    ]
    support = np.where(has_few_peaks, np.minimum(match, 0.0), match)
    if numbers.match is not None:
        support = support + [_good_match_log_odds(neighbours.matches.get(m.key)) for m in molecules]
        has_spectra = np.array([m.key in neighbours.similar for m in molecules])
        support = support + np.log(numbers.match.prior_ratios(has_spectra, in_library))
    ratio = float((by_score * np.exp(support)).sum())
    present = _in_database(numbers, evidence, share, ratio, rivals)
    if present is not None and unlisted is not None:
        present = min(present, 0.5)
    formulas: dict[str, float] = {}
    for molecule, probability in zip(molecules, p.tolist(), strict=True):
        formulas[molecule.formula] = formulas.get(molecule.formula, 0.0) + probability
    fitted = numbers.in_database
    # As far ahead as nine of ten true molecules are; the margin is that of the best-scored
    # candidate, which a prior may not rank first.
    is_ahead = fitted is None or evidence.margin(numbers.calibration) >= fitted.least_margin
    is_best_scored = bool(scored.scores[order[0]] >= scored.scores.max() - _EQUAL)
    grounds = LevelEvidence(
        scored=sum(
            len(listed)
            for hypothesis, listed in zip(query.hypotheses, query.molecules, strict=True)
            if hypothesis.adduct == candidates[0].adduct
        ),
        p_in_database=present,
        similar=neighbours.similar,
        unlisted=unlisted,
        matched=_matched_probability(molecules, p, neighbours),
        formulas=formulas,
        is_reached=is_ahead and is_best_scored,
        least_explained=fitted.least_explained if fitted else 0.0,
    )
    level = level_of(candidates, grounds)
    if prior is not None and level.number in _BY_PROBABILITY:
        level = replace(level, reason=f"{level.reason}; a prior is applied")
    if external and level.number in _BY_PROBABILITY:
        level = replace(level, reason=f"{level.reason}; external scores are applied")
    rank = {index: at for at, index in enumerate(first.tolist())}
    decisions = {name: int(_order(value, p, keys)[0]) for name, value in utilities.items()}
    ends = np.cumsum([len(listed) for listed in query.molecules])[:-1]
    ions = {tried.adduct: 0.0 for tried in query.tried}
    for hypothesis, probabilities in zip(query.hypotheses, np.split(p, ends), strict=True):
        ions[hypothesis.adduct] += float(probabilities.sum())
    notes = list(query.notes)
    if coverage > config.coverage:
        notes.append(f"the set is made for {coverage:.0%}, the next that was fitted")
    if not numbers.own:
        notes.append("probabilities rest on both ion modes: too few molecules of this one")
    if unlisted is not None:
        notes.append(unlisted_note(unlisted))
    if prior is not None:
        notes.append(prior.note)
    notes += uncalibrated(query.hypotheses, candidates[0].adduct, numbers)
    return Annotation(
        **_common(
            query,
            neighbours,
            channels,
            None if prior is None else prior.label,
            config,
            [contribution.label for contribution in external],
        ),
        candidates=candidates[: config.top],
        found=query.found,
        scored=query.n_candidates,
        ions=ions,
        coverage=coverage,
        set_size=int(in_set.sum()),
        choices={name: rank[index] for name, index in decisions.items() if index in rank},
        present=present,
        unlike=numbers.unlike(neighbours.nearest),
        level=level,
        notes=tuple(notes),
        unlisted=unlisted,
        expected={
            judged: {goal: float(values[index]) for goal, index in decisions.items()}
            for judged, values in utilities.items()
        },
        compound_class=None if classify is None else classify(p, present),
    )


def annotate_without_candidates(
    query: FeatureQuery,
    neighbours: Neighbours,
    channels: Mapping[str, str],
    config: AnnotateConfig,
    prior: str | None = None,
    external: Sequence[str] = (),
) -> Annotation:
    """Annotate a feature without candidates, given the labels of a prior and external scores."""
    unlisted = unlisted_match(query, neighbours)
    return Annotation(
        **_common(query, neighbours, channels, prior, config, external),
        candidates=(),
        found=0,
        scored=0,
        ions={},
        coverage=config.coverage,
        set_size=0,
        choices={},
        present=0.0,
        unlike=False,
        level=level_of((), LevelEvidence()),
        notes=(*query.notes, *([] if unlisted is None else [unlisted_note(unlisted)])),
        unlisted=unlisted,
    )


def uncalibrated(
    hypotheses: Sequence[Hypothesis], best: str, numbers: PolarityCalibration
) -> list[str]:
    """Return a note for each ion that the library has too few reference features of.

    Ions that are only tried because they are usual are noted if they are that of the `best`
    candidate. Those of the other polarity than `best` have other numbers, and are passed over.
    """
    features = 0.5 / numbers.floor - 1
    named = [
        ion
        for hypothesis in hypotheses
        if hypothesis.stated
        for ion in hypothesis.adducts
        if ion[-1] == best[-1]
    ]
    return [
        f"probabilities are not calibrated for {ion}"
        for ion in dict.fromkeys([best, *named])
        if round(numbers.ions.get(ion, 0.0) * features) < MIN_REFERENCES
    ]


def _common(
    query: FeatureQuery,
    neighbours: Neighbours,
    channels: Mapping[str, str],
    prior: str | None,
    config: AnnotateConfig,
    external: Sequence[str],
) -> dict[str, Any]:
    """Fields of an annotation that do not depend on its candidates."""
    labels = (*channels, MATCH, *external, *([] if prior is None else [prior]))
    return {
        "feature": query.feature,
        "channels": labels,
        "kinds": {
            MATCH: "match",
            **dict.fromkeys(external, EXTERNAL),
            **({} if prior is None else {prior: "prior"}),
            **channels,
        },
        "objective": config.objective,
        "nearest": neighbours.nearest,
        "matches": tuple(neighbours.matches.values()),
        "nearest_reference": next(iter(neighbours.analogs.values()), None),
        "removed": query.removed,
        "mass_mismatches": query.mass_mismatches,
    }


def _posterior(by_score: Floats, match: Floats, extra: Sequence[Floats]) -> Floats:
    """Return probabilities with library matches, external scores and a prior applied."""
    p = np.asarray(by_score * np.exp(match))
    p /= p.sum()
    if not extra:
        return p
    # Weights may be further apart than floats.
    logs = np.log(np.maximum(p, _LEAST)) + np.sum(extra, axis=0)
    weighted = np.exp(logs - logs.max())
    return np.asarray(weighted / weighted.sum())


def _match_log_odds(
    keys: Sequence[str], neighbours: Neighbours, numbers: PolarityCalibration
) -> Floats:
    """Log-odds that spectra of the candidates themselves add; 0 where the library has none."""
    if numbers.match is None:
        return np.zeros(len(keys))
    known = np.array([key in neighbours.similar for key in keys])
    return np.where(
        known, numbers.match.of([neighbours.similar.get(key, 0.0) for key in keys]), 0.0
    )


def _good_match_log_odds(match: Reference | None) -> float:
    """Log-odds that a match within the bounds of level 2a adds to those of its similarity."""
    return GOOD_MATCH if match is not None and is_good_match(match) else 0.0


def _matched_probability(molecules: Sequence[Molecule], p: Floats, neighbours: Neighbours) -> float:
    """Return the probability of all candidates that have a library match."""
    matches = [neighbours.matches.get(molecule.key) for molecule in molecules]
    return float(p[[match is not None and is_good_match(match) for match in matches]].sum())


def _in_database(
    numbers: PolarityCalibration,
    evidence: ListEvidence,
    share: float,
    ratio: float,
    rivals: Sequence[Reference],
) -> float | None:
    """Return the probability that the molecule is among the candidates; None if not fitted.

    `ratio` is how much more probable the matches of candidates are if it is. `rivals` are matching
    spectra of molecules outside the list; the best of them counts for the contrary.
    """
    if numbers.in_database is None:
        return None
    features = evidence.features(numbers.calibration)
    present = float(numbers.in_database.probability(features[None], share)[0])
    against = 0.0
    if numbers.match is not None:
        similarities = [rival.similarity for rival in rivals]
        log_odds = numbers.match.of(similarities) + [_good_match_log_odds(r) for r in rivals]
        against = max([0.0, *log_odds.tolist()])
    supported = present * ratio
    return supported / (supported + (1 - present) * math.exp(against))


def _expected_utilities(p: Floats, fingerprints: csr_array) -> dict[str, Floats]:
    """Return the expected utility of deciding for each candidate, by objective.

    Candidates of equal fingerprints are one to every objective but "hit", which tells molecules
    apart.
    """
    candidates = distribution(fingerprints, p)
    indices, indptr = (
        np.asarray(array, np.int64) for array in (fingerprints.indices, fingerprints.indptr)
    )
    keys = row_keys(indptr, indices, candidates.width)
    index = {key: at for at, key in enumerate(keys[candidates.rows].tolist())}
    rows = np.array([index[key] for key in keys.tolist()])
    return {
        objective: p if objective == "hit" else expected_of_candidates(objective, candidates)[rows]
        for objective in UTILITIES
    }


def _order(expected: Floats, p: Floats, keys: npt.NDArray[np.str_]) -> npt.NDArray[np.intp]:
    """Indices of the candidates, the best first; equal ones by probability, then by key."""
    return np.lexsort((keys, -p, -expected.round(12)))


def _candidates(
    query: FeatureQuery,
    scored: Scored,
    neighbours: Neighbours,
    p: Floats,
    added: Floats,
    in_set: npt.NDArray[np.bool_],
    order: npt.NDArray[np.intp],
) -> tuple[Candidate, ...]:
    """Return candidates at some indices; `added` has log-odds of matches and a prior in columns."""
    rows = [
        (hypothesis, molecule)
        for hypothesis, listed in zip(query.hypotheses, query.molecules, strict=True)
        for molecule in listed
    ]
    chosen = [rows[index] for index in order.tolist()]
    first = [molecule for _, molecule in chosen[:_CREDITED]]
    references = credited([m.smiles for m in first], [m.key for m in first], neighbours)
    references += [(neighbours.matches.get(m.key), None) for _, m in chosen[_CREDITED:]]
    scores = scored.scores + added.sum(1)
    return tuple(
        Candidate(
            smiles=molecule.smiles,
            key=molecule.key,
            formula=molecule.formula,
            mass=molecule.mass,
            name=molecule.name,
            adduct=hypothesis.adduct,
            error_ppm=error_ppm(query.feature, hypothesis, molecule),
            score=float(scores[index]),
            probability=float(p[index]),
            in_set=bool(in_set[index]),
            parts=tuple(float(part) for part in (*scored.parts[index], *added[index])),
            explained=float(scored.explained[index]),
            peaks_explained=int(scored.peaks[index]),
            sources=molecule.sources,
            identifiers=molecule.identifiers,
            match=match,
            analog=analog,
            adducts=hypothesis.adducts if len(hypothesis.ions) > 1 else (),
        )
        for index, (hypothesis, molecule), (match, analog) in zip(
            order.tolist(), chosen, references, strict=True
        )
    )
