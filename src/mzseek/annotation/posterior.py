"""From scores to an annotation: probabilities, a set, a decision for each objective, and doubts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.annotation.annotation import Annotation, Candidate, Level, Reference
from mzseek.annotation.confidence import ListEvidence, PolarityCalibration
from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.hypotheses import uncalibrated
from mzseek.annotation.prior import PriorScores
from mzseek.annotation.query import FeatureQuery, error_ppm
from mzseek.annotation.references import (
    LevelEvidence,
    Neighbours,
    credited,
    level_of,
    unlisted_match,
    unlisted_note,
)
from mzseek.annotation.scoring import Scored
from mzseek.decision import UTILITIES, distribution, prediction_sets
from mzseek.decision.distributions import expected_of_candidates, row_keys

Floats = npt.NDArray[np.float64]
# What a channel rests on: the spectrum itself, other spectra, or neither. Others are evidence.
MATCH = "library"  # spectra of the candidate itself
KINDS = {MATCH: "match", "analogs": "analogy", "substructures": "analogy", "regression": "analogy",
         "prior": "prior", "weights": "prior"}  # fmt: skip
_LEAST = 1e-300
_EQUAL = 1e-9  # difference between scores that is rounding
_BY_PROBABILITY = ("3", "4")  # levels
_CREDITED = 5  # candidates whose references are looked up
PEAKS_TO_COUNT = 4  # matching peaks of a library match that says the molecule is in the database


def annotate_query(
    query: FeatureQuery,
    scored: Scored,
    near: Neighbours,
    numbers: PolarityCalibration,
    channels: Sequence[str],
    fingerprints: csr_array,
    config: AnnotateConfig,
    evidence: ListEvidence,
    prior: PriorScores | None = None,
    *,
    share: float = 0.5,
) -> Annotation:
    """Annotate a feature that has candidates.

    Parameters
    ----------
    query, scored, near
        The feature, the scores of its candidates, and the reference spectra near to it.
    numbers : PolarityCalibration
        By which scores become probabilities, of its ion mode.
    channels : sequence of str
        Labels, in the order of `Scored.parts`.
    fingerprints : CSR of 0/1, shape (candidates, bits)
    config : AnnotateConfig
    evidence : ListEvidence
        Scores of the candidates of the best ion, and of molecules that they are compared with.
    prior : PriorScores, optional
        Log-odds that no spectrum supports.
    share : float
        Expected share of features whose molecule is in the database.
    """
    counts = np.array([query.kept])
    alone = numbers.calibration.posterior(scored.scores, counts)
    added = _added(query, near, numbers, prior)
    p = _posterior(alone, added[:, 0], prior)
    spectra = len(query.feature.spectra)
    coverage, threshold = numbers.threshold(config.coverage, spectra)
    in_set = prediction_sets(p, counts, threshold)
    worths = _worths(p, fingerprints)
    keys = np.array([m.key or m.smiles for own in query.molecules for m in own])
    order = _order(worths[config.objective], p, keys)
    made = _candidates(query, scored, near, p, added, in_set, _told(order, in_set, config.top))
    unlisted = unlisted_match(query, near)
    present = _present(
        numbers, evidence, share, _match_ratio(query, alone, near, numbers), unlisted
    )
    choices = _choices(worths, p, keys, order[: config.top].tolist())
    matches = tuple(near.matches.values())
    labels = labels_of(channels, None if prior is None else prior.label)
    grounds = LevelEvidence(
        scored=query.kept,
        p_in_database=present,
        similar=near.similar,
        unlisted=unlisted,
        formulas=_formula_probabilities(query, p),
        # The margin is that of the best-scored candidate, which a prior may not rank first.
        is_reached=_is_reached(numbers, evidence)
        and bool(scored.scores[order[0]] >= scored.scores.max() - _EQUAL),
        least_explained=numbers.in_database.least_explained if numbers.in_database else 0.0,
    )
    level = level_of(made, grounds)
    notes = [*query.notes, *_notes(numbers, coverage, config)]
    notes += [] if unlisted is None else [unlisted_note(unlisted)]
    return Annotation(
        feature=query.feature,
        candidates=made[: config.top],
        found=query.found,
        scored=query.kept,
        channels=labels,
        kinds=kinds_of(labels),
        ions=_ions(query, p),
        coverage=coverage,
        set_size=int(in_set.sum()),
        objective=config.objective,
        choices=choices,
        present=present,
        nearest=near.nearest,
        unlike=numbers.unlike(near.nearest),
        matches=matches,
        level=level if prior is None else _with_caution(level),
        notes=(
            *notes,
            *([prior.note] if prior else []),
            *uncalibrated(query.readings, made[0].adduct, numbers.ions, numbers.floor),
        ),
        removed=query.removed,
        unlisted=unlisted,
        mass_mismatches=query.mass_mismatches,
    )


def labels_of(channels: Sequence[str], prior: str | None) -> tuple[str, ...]:
    """What scores are made of: channels, library matches, and a prior that is counted in."""
    return (*channels, MATCH, *([] if prior is None else [prior]))


def _posterior(alone: Floats, match: Floats, prior: PriorScores | None) -> Floats:
    """Return probabilities with library matches and a prior applied."""
    p = np.asarray(alone * np.exp(match))
    p /= p.sum()
    if prior is None:
        return p
    logs = np.log(np.maximum(p, _LEAST)) + prior.nats  # weights may be further apart than floats
    together = np.exp(logs - logs.max())
    return np.asarray(together / together.sum())


def _match_ratio(
    query: FeatureQuery, alone: Floats, near: Neighbours, numbers: PolarityCalibration
) -> float:
    """Return how much more probable the library similarities are if the molecule is a candidate.

    A match of fewer than `PEAKS_TO_COUNT` peaks says little about whether the molecule is there at
    all: it counts only against it.
    """
    log_odds = _match_nats(query, near, numbers)
    keys = [molecule.key for own in query.molecules for molecule in own]
    few = [key not in near.matches or near.matches[key].peaks < PEAKS_TO_COUNT for key in keys]
    return float((alone * np.exp(np.where(few, np.minimum(log_odds, 0.0), log_odds))).sum())


def _with_caution(level: Level) -> Level:
    """The level; one that rests on probabilities says that these have a prior in them."""
    if level.number not in _BY_PROBABILITY:
        return level
    return replace(level, reason=f"{level.reason}; a prior is counted in")


def _added(
    query: FeatureQuery, near: Neighbours, numbers: PolarityCalibration, prior: PriorScores | None
) -> Floats:
    """What is added to scores, in columns: library matches, and a prior if there is one."""
    match = _match_nats(query, near, numbers)
    return np.column_stack([match] if prior is None else [match, prior.nats])


def _match_nats(query: FeatureQuery, near: Neighbours, numbers: PolarityCalibration) -> Floats:
    """What spectra of the candidates themselves add; nothing where the library has none."""
    keys = [molecule.key for own in query.molecules for molecule in own]
    if numbers.match is None:
        return np.zeros(len(keys))
    known = np.array([key in near.similar for key in keys])
    return np.where(known, numbers.match.of([near.similar.get(key, 0.0) for key in keys]), 0.0)


def _present(
    numbers: PolarityCalibration,
    evidence: ListEvidence,
    share: float,
    ratio: float,
    unlisted: Reference | None,
) -> float | None:
    """Return the probability that the molecule is among the candidates; None if not fitted.

    `ratio` is how much more probable the similarities of library spectra are if it is. A match of
    a molecule outside the list counts for the contrary: then it is at most one half.
    """
    if numbers.in_database is None:
        return None
    features = evidence.features(numbers.calibration)
    present = float(numbers.in_database.probability(features[None], share)[0])
    present = present * ratio / (present * ratio + 1 - present)
    if unlisted is None:
        return present
    odds = 0.0 if numbers.match is None else float(numbers.match.of(unlisted.similarity))
    return min(present / (present + (1 - present) * math.exp(max(odds, 0.0))), 0.5)


def _is_reached(numbers: PolarityCalibration, evidence: ListEvidence) -> bool:
    """Return whether the best candidate is as far ahead as nine of ten true molecules are."""
    if numbers.in_database is None:
        return True
    return evidence.margin(numbers.calibration) >= numbers.in_database.least_margin


def _formula_probabilities(query: FeatureQuery, p: Floats) -> dict[str, float]:
    """Return the posterior probability of each formula among the candidates."""
    found: dict[str, float] = {}
    molecules = (molecule for own in query.molecules for molecule in own)
    for molecule, probability in zip(molecules, p.tolist(), strict=True):
        found[molecule.formula] = found.get(molecule.formula, 0.0) + probability
    return found


def _notes(numbers: PolarityCalibration, coverage: float, config: AnnotateConfig) -> list[str]:
    notes = []
    if coverage > config.coverage:
        notes.append(f"the set is made for {coverage:.0%}, the next that was fitted")
    if not numbers.own:
        notes.append("probabilities rest on both ion modes: too few molecules of this one")
    return notes


def annotate_without_candidates(
    query: FeatureQuery,
    near: Neighbours,
    channels: Sequence[str],
    config: AnnotateConfig,
    prior: str | None = None,
) -> Annotation:
    """What is said about a feature that no molecule was found for; `prior` is its label."""
    matches = tuple(near.matches.values())
    labels = labels_of(channels, prior)
    unlisted = unlisted_match(query, near)
    return Annotation(
        feature=query.feature,
        candidates=(),
        found=0,
        scored=0,
        channels=labels,
        kinds=kinds_of(labels),
        ions={},
        coverage=config.coverage,
        set_size=0,
        objective=config.objective,
        choices={},
        present=0.0,
        nearest=near.nearest,
        unlike=False,
        matches=matches,
        level=level_of((), LevelEvidence()),
        notes=(*query.notes, *([] if unlisted is None else [unlisted_note(unlisted)])),
        removed=query.removed,
        unlisted=unlisted,
        mass_mismatches=query.mass_mismatches,
    )


def kinds_of(channels: Sequence[str]) -> dict[str, str]:
    """Of each channel whether it is evidence, analogy or prior."""
    return {channel: KINDS.get(channel, "evidence") for channel in channels}


def _worths(p: Floats, fingerprints: csr_array) -> dict[str, Floats]:
    """Expected utility of deciding for each candidate, by objective.

    Candidates of equal fingerprints are one to every objective but the first, which tells molecules
    apart.
    """
    candidates = distribution(fingerprints, p)
    indices, indptr = (
        np.asarray(each, np.int64) for each in (fingerprints.indices, fingerprints.indptr)
    )
    keys = row_keys(indptr, indices, candidates.width)
    place = {key: at for at, key in enumerate(keys[candidates.rows].tolist())}
    place_of = np.array([place[key] for key in keys.tolist()])
    return {
        objective: p
        if objective == "hit"
        else expected_of_candidates(objective, candidates)[place_of]
        for objective in UTILITIES
    }


def _order(worth: Floats, p: Floats, keys: npt.NDArray[np.str_]) -> npt.NDArray[np.intp]:
    """Places of the candidates, the best first; equal ones by probability, then by key."""
    return np.lexsort((keys, -p, -worth.round(12)))


def _told(
    order: npt.NDArray[np.intp], in_set: npt.NDArray[np.bool_], top: int
) -> npt.NDArray[np.intp]:
    """The first candidates, and whatever else is in the set."""
    return np.concatenate([order[:top], order[top:][in_set[order[top:]]]])


def _candidates(
    query: FeatureQuery,
    scored: Scored,
    near: Neighbours,
    p: Floats,
    added: Floats,
    in_set: npt.NDArray[np.bool_],
    order: npt.NDArray[np.intp],
) -> tuple[Candidate, ...]:
    """Candidates at some places, the best first.

    `added` is what matches and a prior add to scores, in columns.
    """
    rows = [
        (reading, molecule)
        for reading, own in zip(query.readings, query.molecules, strict=True)
        for molecule in own
    ]
    first = [rows[place][1] for place in order[:_CREDITED]]
    references = credited([m.smiles for m in first], [m.key for m in first], near)
    references += [(near.matches.get(rows[place][1].key), None) for place in order[_CREDITED:]]
    scores = scored.scores + added.sum(1)
    made = []
    for place, (match, analog) in zip(order.tolist(), references, strict=True):
        reading, molecule = rows[place]
        made.append(
            Candidate(
                smiles=molecule.smiles,
                key=molecule.key,
                formula=molecule.formula,
                mass=molecule.mass,
                name=molecule.name,
                adduct=reading.adduct,
                error_ppm=error_ppm(query.feature, reading, molecule),
                score=float(scores[place]),
                probability=float(p[place]),
                in_set=bool(in_set[place]),
                parts=tuple(float(part) for part in (*scored.parts[place], *added[place])),
                explained=float(scored.explained[place]),
                peaks_explained=int(scored.peaks[place]),
                sources=molecule.sources,
                identifiers=molecule.identifiers,
                match=match,
                analog=analog,
            )
        )
    return tuple(made)


def _choices(
    worths: Mapping[str, Floats], p: Floats, keys: npt.NDArray[np.str_], shown: list[int]
) -> dict[str, int]:
    """For each objective the place of its decision among the candidates that are shown."""
    found = {}
    for objective, worth in worths.items():
        first = int(_order(worth, p, keys)[0])
        if first in shown:
            found[objective] = shown.index(first)
    return found


def _ions(query: FeatureQuery, p: Floats) -> dict[str, float]:
    """Probability of each ion that was tried."""
    found = dict.fromkeys(query.tried, 0.0)
    start = 0
    for reading, own in zip(query.readings, query.molecules, strict=True):
        found[reading.adduct] += float(p[start : start + len(own)].sum())
        start += len(own)
    return found
