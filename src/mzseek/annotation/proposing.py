"""Propose structures for a feature: edit its analogs and relatives, score the products."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mzseek.annotation.candidates import Molecule, Source
from mzseek.annotation.confidence import Confidence
from mzseek.annotation.query import FeatureQuery, Hypothesis, can_form, error_ppm
from mzseek.annotation.references import Neighbours, packed_fingerprint
from mzseek.annotation.scoring import Scored, mode_of, score
from mzseek.evidence.model import EvidenceModel
from mzseek.evidence.queries import ExcludedAnalogs, Molecules
from mzseek.proposals.generation import Derivation, differences, generate
from mzseek.proposals.proposal import FEATURES, Proposal, ProposalModel
from mzseek.similarity.packed import packed_tanimoto

Floats = npt.NDArray[np.float64]
MAX_RELATIVES = 100  # molecules of a database that are edited, of each adduct hypothesis
MAX_SCORED = 300  # products whose fragments are looked for in the spectrum
_TWO_STEP_PARENTS, _TWO_STEP_PRODUCTS = 5, 200  # analogs, and products of each
_LEAST = 1e-300
_MAX_REACH = 0.1  # Da
_LEAST_SHARE = 0.01  # of an ion that is only tried: rarer ones have no proposals


@dataclass(frozen=True)
class Parent:
    """A known molecule that is edited.

    Attributes
    ----------
    smiles, key, name : str
    mass : float
    affinity : float
        Largest product of spectral similarity of an analog and Tanimoto similarity to it.
    similarity : float
        Of its own reference spectrum, if it is an analog; else 0.
    record : str
        That spectrum.
    """

    smiles: str
    key: str
    name: str
    mass: float
    affinity: float
    similarity: float = 0.0
    record: str = ""


# A product with its best origin, its affinity, and the log rate of all derivations.
Made = tuple[Molecule, Parent, Derivation, float, float]


@dataclass(frozen=True, eq=False)
class Products:
    """Scored products of a feature.

    Attributes
    ----------
    query : FeatureQuery
        The feature with the products as its candidates.
    scored : Scored
    features : float64 array, shape (products, len(FEATURES))
    origins : sequence of (Parent, Derivation)
        The best of each product.
    unscored : tuple of str
        Keys of further products, which `MAX_SCORED` left out.
    """

    query: FeatureQuery
    scored: Scored
    features: Floats
    origins: Sequence[tuple[Parent, Derivation]]
    unscored: tuple[str, ...]


def list_features(
    features: Floats, explained: Floats, absolute: Floats, log_odds: Floats, nearest: float
) -> Floats:
    """Return the features of `mzseek.proposals.proposal.LIST_FEATURES`.

    Parameters
    ----------
    features : float64 array, shape (products, len(FEATURES))
    explained, absolute, log_odds : float64 arrays, shape (products,)
        Explained intensity, uncentred score of the channels, and log-odds of products.
    nearest : float
        Similarity of the nearest reference spectrum.
    """
    p = _softmax(log_odds)
    best = int(np.argmax(log_odds))
    values = [
        explained[best],
        features[:, FEATURES.index("affinity")].max(),
        features[best, FEATURES.index("rate")],
        nearest,
        -(p * np.log(np.maximum(p, _LEAST))).sum(),
        np.log(len(p)),
        absolute.max(),
    ]
    return np.array(values, np.float64)


def propose(
    query: FeatureQuery,
    neighbours: Neighbours,
    relatives: Source,
    fitted: EvidenceModel,
    confidence: Confidence,
    fingerprint: str,
    model: ProposalModel,
    *,
    number: int,
    missing: float,
) -> tuple[Proposal, ...]:
    """Propose structures for a feature, the most probable first.

    Parameters
    ----------
    query : FeatureQuery
        With its candidates, none of which is proposed.
    neighbours : Neighbours
        Whose analogs are edited.
    relatives : Source
        Molecules of other masses to edit.
    fitted, confidence, fingerprint
        As `mzseek.annotation.scoring.score` takes them.
    model : ProposalModel
    number : int
        Proposals, at most.
    missing : float
        Probability that no candidate is the molecule.
    """
    products = scored_products(query, neighbours, relatives, fitted, confidence, fingerprint, model)
    if products is None:
        return ()
    log_odds = model.log_odds(products.features)
    p = _softmax(log_odds)
    rows = [
        (hypothesis, molecule)
        for hypothesis, listed in zip(
            products.query.hypotheses, products.query.molecules, strict=True
        )
        for molecule in listed
    ]
    keys = np.array([molecule.key for _, molecule in rows])
    shown = np.lexsort((keys, -log_odds))[:number]
    share = float(p[shown].sum())
    of_list = list_features(
        products.features, products.scored.explained, products.scored.absolute.sum(1), log_odds,
        neighbours.nearest,
    )  # fmt: skip
    included = share * model.probability_included(of_list)
    proposals = []
    for index in shown.tolist():
        hypothesis, molecule = rows[index]
        probability = float(p[index]) / share
        proposals.append(
            _proposal(products, index, hypothesis, molecule, probability, included, missing)
        )
    return tuple(proposals)


def _proposal(
    products: Products,
    index: int,
    hypothesis: Hypothesis,
    molecule: Molecule,
    probability: float,
    included: float,
    missing: float,
) -> Proposal:
    parent, derivation = products.origins[index]
    return Proposal(
        smiles=molecule.smiles,
        key=molecule.key,
        formula=molecule.formula,
        mass=molecule.mass,
        adduct=hypothesis.adduct,
        error_ppm=error_ppm(products.query.feature, hypothesis, molecule),
        probability=probability,
        confidence=probability * included * missing,
        included=included,
        parent=parent.smiles,
        parent_key=parent.key,
        parent_name=parent.name,
        parent_record=parent.record,
        parent_similarity=parent.similarity,
        transformation="; ".join(derivation.steps),
        mass_difference=molecule.mass - parent.mass,
        score=float(products.scored.scores[index]),
        explained=float(products.scored.explained[index]),
        peaks_explained=int(products.scored.peaks[index]),
    )


def scored_products(
    query: FeatureQuery,
    neighbours: Neighbours,
    relatives: Source,
    fitted: EvidenceModel,
    confidence: Confidence,
    fingerprint: str,
    model: ProposalModel,
    *,
    hidden: Sequence[str] = (),
) -> Products | None:
    """Make and score products; None where there are none.

    `hidden` are SMILES of molecules whose reference spectra must not serve as analogs, as those of
    products never do. Other parameters are as in `propose`.
    """
    known = {molecule.key for listed in query.molecules for molecule in listed}
    made: dict[Hypothesis, list[Made]] = {}
    for hypothesis in _likely(query, confidence):
        listed = _products_of(hypothesis, neighbours, relatives, known, model)
        if listed:
            made[hypothesis] = listed
    if not made:
        return None
    made, unscored = _most_promising(made, model)
    molecules = tuple([row[0] for row in rows] for rows in made.values())
    asked = replace(query, hypotheses=tuple(made), molecules=molecules)
    smiles = [row[0].smiles for rows in made.values() for row in rows]
    table = Molecules([*smiles, *hidden], fingerprint, jobs=1)
    excluded = ExcludedAnalogs(table, np.arange(len(table)))
    [scored], _ = score(
        [asked], fitted.first_stage, confidence, fingerprint, excluded_analogs=[excluded]
    )
    rows = [row for listed in made.values() for row in listed]
    features = np.column_stack(
        [
            scored.scores,
            [affinity for *_, affinity, _ in rows],
            [rate for *_, rate in rows],
            [parent.similarity for _, parent, *_ in rows],
            [len(derivation.steps) > 1 for _, _, derivation, *_ in rows],
        ]
    ).astype(np.float64)
    origins = [(parent, derivation) for _, parent, derivation, *_ in rows]
    return Products(asked, scored, features, origins, unscored)


def _likely(query: FeatureQuery, confidence: Confidence) -> list[Hypothesis]:
    """Return the adduct hypotheses that are stated, or common among reference spectra.

    None where the mass is not accurate: too many differences would explain it.
    """
    calibration = confidence.of(mode_of(query))
    return [
        hypothesis
        for hypothesis in query.tried
        if hypothesis.reach <= _MAX_REACH
        and (hypothesis.stated or calibration.ion_prior(hypothesis.adduct) >= _LEAST_SHARE)
    ]


def _products_of(
    hypothesis: Hypothesis,
    neighbours: Neighbours,
    relatives: Source,
    known: set[str],
    model: ProposalModel,
) -> list[Made]:
    """Return the products of a hypothesis's mass that are no candidates."""
    analogs = [
        Parent(
            reference.smiles, key, reference.name, reference.mass, reference.similarity,
            reference.similarity, reference.record,
        )
        for key, reference in neighbours.analogs.items()
        if reference.similarity > 0
    ]  # fmt: skip
    parents = [*analogs, *_relatives(hypothesis, relatives, analogs)]
    smiles = [parent.smiles for parent in parents]
    mass, reach = hypothesis.mass, hypothesis.reach
    one = generate(smiles, mass, reach)
    two = generate(
        smiles[: min(len(analogs), _TWO_STEP_PARENTS)], mass, reach,
        two_step_limit=_TWO_STEP_PRODUCTS,
    )  # fmt: skip
    described = {product.molecule.key: product.molecule for product in [*two, *one]}
    derivations: dict[str, dict[Derivation, None]] = {}
    for product in [*one, *two]:
        if product.molecule.key not in known:
            of_key = derivations.setdefault(product.molecule.key, {})
            of_key.update(dict.fromkeys(product.derivations))
    keys = sorted(derivations)
    affinities = _affinities([described[key].smiles for key in keys], analogs)
    rows = []
    for key, affinity in zip(keys, affinities.tolist(), strict=True):
        molecule = described[key]
        candidate = Molecule(molecule.smiles, key, molecule.formula, molecule.mass)
        if not can_form(candidate, hypothesis):
            continue
        worth = {
            derivation: model.rate(derivation.steps) * parents[derivation.parent].affinity
            for derivation in derivations[key]
        }
        best = max(worth, key=lambda each: (worth[each], -each.parent, each.steps))
        rate = sum(model.rate(derivation.steps) for derivation in derivations[key])
        rows.append((candidate, parents[best.parent], best, affinity, float(np.log(rate))))
    return rows


def _relatives(hypothesis: Hypothesis, source: Source, analogs: Sequence[Parent]) -> list[Parent]:
    """Return molecules one transformation away in mass, those nearest to the analogs."""
    edited = {parent.key for parent in analogs}
    found: dict[str, Molecule] = {}
    for difference in dict.fromkeys(round(mass, 4) for mass in differences().masses):
        if hypothesis.mass - difference > hypothesis.reach:
            for molecule in source.within(hypothesis.mass - difference, hypothesis.reach):
                if molecule.key not in edited:
                    found.setdefault(molecule.key, molecule)
    molecules = [found[key] for key in sorted(found)]
    affinities = _affinities([molecule.smiles for molecule in molecules], analogs)
    order = np.argsort(-affinities, kind="stable")[:MAX_RELATIVES]
    return [
        Parent(
            molecules[index].smiles, molecules[index].key, molecules[index].name,
            molecules[index].mass, float(affinities[index]),
        )
        for index in order.tolist()
    ]  # fmt: skip


def _affinities(smiles: Sequence[str], analogs: Sequence[Parent]) -> Floats:
    """Largest product of spectral and structural similarity to an analog, of each molecule."""
    if not smiles or not analogs:
        return np.zeros(len(smiles))
    words = np.stack([packed_fingerprint(text) for text in smiles])
    others = np.stack([packed_fingerprint(parent.smiles) for parent in analogs])
    similarities = np.array([parent.similarity for parent in analogs])
    return np.asarray((packed_tanimoto(words, others) * similarities).max(1), np.float64)


def _most_promising(
    made: Mapping[Hypothesis, list[Made]],
    model: ProposalModel,
) -> tuple[dict[Hypothesis, list[Made]], tuple[str, ...]]:
    """Return the products to be scored, by what is known without them, and keys of the others."""
    every = sorted(
        (
            -(model.weights["affinity"] * row[3] + model.weights["rate"] * row[4]),
            row[0].key,
            number,
        )
        for number, rows in enumerate(made.values())
        for row in rows
    )
    kept = {(key, number) for _, key, number in every[:MAX_SCORED]}
    chosen = {
        hypothesis: [row for row in rows if (row[0].key, number) in kept]
        for number, (hypothesis, rows) in enumerate(made.items())
    }
    chosen = {hypothesis: rows for hypothesis, rows in chosen.items() if rows}
    return chosen, tuple(key for _, key, _ in every[MAX_SCORED:])


def _softmax(log_odds: Floats) -> Floats:
    weights = np.exp(log_odds - log_odds.max())
    return np.asarray(weights / weights.sum())
