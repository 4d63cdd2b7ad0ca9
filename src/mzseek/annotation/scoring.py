"""Score the candidates of features with all channels, beside a background of bundled molecules."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.annotation.candidates import Molecule, molecules_of_table
from mzseek.annotation.confidence import CHANNELS, Confidence, ListEvidence
from mzseek.annotation.features import Feature
from mzseek.annotation.query import FeatureQuery, Hypothesis, can_form, with_ion
from mzseek.bundle.molecules import BundledMolecules
from mzseek.chem.ions import net_charge, takes_charged
from mzseek.core.ragged import Ragged, pointers
from mzseek.decision import Pooling
from mzseek.evidence.model import EvidenceModel, precompute
from mzseek.evidence.queries import ExcludedAnalogs, Index, Molecules, Queries
from mzseek.fragments import explained_pairs, ion_forms, peak_table
from mzseek.spectra import Spectrum

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_FRAGMENTS = "fragments"


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of a feature's candidates, those of the first hypothesis first.

    Attributes
    ----------
    parts : float64 array, shape (candidates, channels)
        Log-odds that each channel adds, over all spectra.
    ion : float64 array, shape (candidates,)
        Log of how common the ion is, against the others that were tried; 0 where there is one.
    absolute : float64 array, shape (candidates, channels)
        The same sums, not centred on the list: comparable between lists of any length.
    explained : float64 array, shape (candidates,)
        Share of the intensity that fragments explain, the mean over spectra.
    peaks : int64 array, shape (candidates,)
        Peaks that are explained, of the spectrum in which these are most.
    rows : int64 array, shape (candidates,)
        Places of the candidates in the table of molecules.
    weight : float
        What the sums over spectra are multiples of: spectra × dependence factor.
    by_ion : tuple of float64 arrays, shape (candidates,)
        Of a feature of several ions, in the order of `Hypothesis.ions`: the log-odds that the
        spectra of each would give alone.
    """

    parts: Floats
    ion: Floats
    absolute: Floats
    explained: Floats
    peaks: Ints
    rows: Ints
    weight: float = 1.0
    by_ion: tuple[Floats, ...] = ()

    @property
    def scores(self) -> Floats:
        """Log-odds against the average candidate."""
        return np.asarray(self.parts.sum(1) + self.ion)


def score(
    queries: Sequence[FeatureQuery],
    fitted: EvidenceModel,
    confidence: Confidence,
    fingerprint: str,
    index: Index | None = None,
    excluded_analogs: Sequence[ExcludedAnalogs] | None = None,
) -> tuple[list[Scored], Molecules]:
    """Scores of the candidates of features; each must have some.

    What is said of a feature depends on no other.

    Parameters
    ----------
    queries : sequence of FeatureQuery
    fitted : EvidenceModel
    confidence : Confidence
        For how far spectra of a feature are dependent, and how common ions are.
    fingerprint : str
        Kind that the model reads of candidates.
    index : Index, optional
        What was read before of the store that all candidates are from.
    excluded_analogs : sequence of ExcludedAnalogs, optional
        For each query, molecules whose reference spectra must not serve as analogs; by default
        its candidates, those of each adduct hypothesis apart.

    Returns
    -------
    list of Scored, and the Molecules that `Scored.rows` are places in
    """
    lists, union = _laid_out(queries, fingerprint, index, excluded_analogs)
    precompute(fitted.channels, lists.molecules)
    # Queries of one spectrum lie side by side, so that all of its hypotheses can be ranked as one.
    spectra = [len(query.feature.spectra) for query in queries]
    modes = np.array([mode for query in queries for mode in spectrum_modes(query)], np.int64)
    features = fitted.features(lists, modes, union)
    parts = fitted.ranker.contributions(features, modes, union).astype(np.float64)
    absolute = fitted.ranker.contributions(features, modes, union, centred=False).astype(np.float64)
    explained, peaks = _explained(lists, fitted)
    scored, start, first = [], 0, 0
    for query, number in zip(queries, spectra, strict=True):
        size = int(union[first])
        shape = (number, size)
        rows = slice(start, start + size * number)
        factor, scales = pooling_weights(query, confidence)
        # Sorted before they are added: no order of spectra shows, to the last bit.
        sums, sums_absolute = (
            np.sort(values[rows].reshape(*shape, -1) * scales[:, None, None], axis=0).sum(0)
            * factor
            for values in (parts, absolute)
        )
        scored.append(
            Scored(
                sums,
                _ion_priors(query, confidence),
                sums_absolute,
                np.sort(explained[rows].reshape(shape), axis=0).mean(0),
                peaks[rows].reshape(shape).max(0),
                lists.candidates[rows][:size],
                float(number * factor),
                _by_ion(query, parts[rows].reshape(*shape, -1).sum(2), confidence),
            )
        )
        start, first = rows.stop, first + number
    return scored, lists.molecules


def _laid_out(
    queries: Sequence[FeatureQuery],
    fingerprint: str,
    index: Index | None,
    excluded_analogs: Sequence[ExcludedAnalogs] | None,
) -> tuple[Queries, Ints]:
    """Return lists, one a spectrum and hypothesis, and the candidates of each spectrum."""
    # Molecules that an index has read come first in the table, the others after them.
    row_of = {m.smiles: m.row for query in queries for listed in query.molecules for m in listed}
    table_order = sorted(row_of, key=lambda smiles: row_of[smiles] < 0)
    row_in_table = {smiles: at for at, smiles in enumerate(table_order)}
    members: list[int] = []
    sizes: list[int] = []
    spectra: list[Spectrum] = []
    list_of: list[int] = []
    union: list[int] = []
    for query in queries:
        list_numbers = []
        for molecules in query.molecules:
            list_numbers.append(len(sizes))
            sizes.append(len(molecules))
            members += [row_in_table[molecule.smiles] for molecule in molecules]
        for number, spectrum in enumerate(query.feature.spectra):
            for hypothesis, list_number in zip(query.hypotheses, list_numbers, strict=True):
                spectra.append(with_ion(spectrum, hypothesis.adducts[number]))
                list_of.append(list_number)
            union.append(query.n_candidates)
    indexed = None
    if index is not None:
        rows = [row for row in map(row_of.__getitem__, table_order) if row >= 0]
        indexed = np.array(rows, np.int64)
    table = Molecules(table_order, fingerprint, jobs=1, index=index, index_rows=indexed)
    lists = Queries(
        spectra,
        np.array(list_of, np.int64),
        pointers(sizes),
        np.array(members, np.int64),
        table,
    )
    if excluded_analogs is None:
        members_of = np.split(lists.members, lists.pointers[1:-1])
        excluded = [ExcludedAnalogs(table, rows) for rows in members_of]
    else:
        excluded = [
            analogs
            for analogs, query in zip(excluded_analogs, queries, strict=True)
            for _ in query.molecules
        ]
    return replace(lists, excluded_analogs=excluded), np.array(union, np.int64)


def mode_of(query: FeatureQuery) -> int:
    """Return 1 for a query of positive, −1 for one of negative mode.

    Of a feature of both it is that of the representative spectrum, whose adduct is shown.
    """
    return mode_of_ion(query.hypotheses[0].adduct)


def mode_of_ion(adduct: str) -> int:
    """Return 1 for a positive, −1 for a negative ion."""
    return -1 if adduct.endswith("-") else 1


def spectrum_modes(query: FeatureQuery) -> Ints:
    """Return 1 or −1 for each spectrum of a query, which all hypotheses agree on."""
    return np.array([mode_of_ion(adduct) for adduct in query.hypotheses[0].adducts], np.int64)


def pooling_weights(query: FeatureQuery, confidence: Confidence) -> tuple[float, Floats]:
    """Return the factor of sums over the spectra of a query, and the scale of each spectrum.

    Scores are on the scale of the calibration of `mode_of` the query: those of the other polarity
    are multiplied by the ratio of the temperatures, and the dependence of spectra is the mean over
    all of them. For spectra of one polarity the scale is 1.
    """
    modes, size = spectrum_modes(query), query.n_candidates
    numbers = {mode: confidence.of(mode) for mode in modes.tolist()}
    reference = numbers[mode_of(query)].calibration.temperature_of(size)
    scales = [reference / numbers[mode].calibration.temperature_of(size) for mode in modes.tolist()]
    if len(numbers) == 1:
        factor = numbers[mode_of(query)].pooling.factor([len(modes)])[0]
    else:
        dependence = np.mean([numbers[mode].pooling.dependence for mode in modes.tolist()])
        factor = Pooling(float(dependence)).factor([len(modes)])[0]
    return float(factor), np.array(scales)


def _by_ion(query: FeatureQuery, scores: Floats, confidence: Confidence) -> tuple[Floats, ...]:
    """Log-odds by the spectra of each ion; none for a feature of one ion."""
    ions = query.hypotheses[0].ions
    if len(ions) == 1:
        return ()
    factors = [
        confidence.of(mode_of_ion(ion)).pooling.factor([len(spectra)])[0]
        for ion, spectra in ions.items()
    ]
    return tuple(
        np.sort(scores[spectra], axis=0).sum(0) * factor
        for spectra, factor in zip(ions.values(), factors, strict=True)
    )


def _ion_priors(query: FeatureQuery, confidence: Confidence) -> Floats:
    """Log of how common each candidate's ions are; nothing where only one hypothesis was tried.

    A molecule with a permanent charge can be no other ion than the one that it is.
    """
    if len(query.tried) == 1:
        return np.zeros(query.n_candidates)
    shares = {
        tried.shown: math.prod(confidence.of(mode_of_ion(ion)).ion_prior(ion) for ion in tried.ions)
        for tried in query.tried
    }
    total = sum(shares.values())
    return np.array(
        [
            0.0
            if takes_charged(hypothesis.adduct) and net_charge(molecule.smiles)
            else np.log(shares[hypothesis.shown] / total)
            for hypothesis, molecules in zip(query.hypotheses, query.molecules, strict=True)
            for molecule in molecules
        ]
    )


def _explained(lists: Queries, fitted: EvidenceModel) -> tuple[Floats, Ints]:
    """Share of intensity, and number of peaks, that each candidate's fragments explain."""
    forms = [ion_forms(str(spectrum.adduct)) for spectrum in lists.spectra]
    peaks = peak_table(lists.spectra, forms, **peak_tolerance(fitted))
    pairs = explained_pairs(
        peaks, lists.molecules.fragments, lists.candidates, lists.counts, threads=1
    )
    rows = lists.ragged.total
    # Shares are of square roots of intensities.
    squares = peaks.shares**2
    totals = Ragged(np.diff(peaks.starts))
    sums = np.ones(len(totals))
    filled = totals.counts > 0
    sums[filled] = np.add.reduceat(squares, totals.starts[filled]) if filled.any() else 1.0
    share = squares / np.repeat(sums, totals.counts)
    explained = np.bincount(pairs.row, share[pairs.peak], minlength=rows)
    return np.asarray(explained, np.float64), np.bincount(pairs.row, minlength=rows)


def peak_tolerance(fitted: EvidenceModel) -> dict[str, Any]:
    """Tolerances of peaks, as the channel of fragments has them."""
    for channel in fitted.channels:
        if channel.name == _FRAGMENTS:
            return {"ppm": channel.options.ppm, "least": channel.options.least}
    return {}


BACKGROUND = 32  # molecules that a short list is compared with, its own candidates included


def score_with_background(
    queries: Sequence[FeatureQuery],
    nearest: Sequence[float],
    fitted: EvidenceModel,
    confidence: Confidence,
    fingerprint: str,
    store: BundledMolecules,
    *,
    index: Index | None = None,
    without: Sequence[Collection[str]] | None = None,
) -> tuple[list[tuple[Scored, ListEvidence]], Molecules]:
    """Score the candidates of queries, and bundled molecules that they are compared with.

    Background molecules are scored in lists of their own, so that they do not change the ranking.
    Both have the same analogs: a known molecule among the candidates is no analog of either. The
    background is not ranked again, which would leave the sum over it.

    Parameters
    ----------
    queries : sequence of FeatureQuery
        Each with at least one candidate.
    nearest : sequence of float
        Similarity of the nearest reference spectrum of each query.
    fitted, confidence, fingerprint, index
        As in `score`.
    store : BundledMolecules
        The bundled molecules.
    without : sequence of collections of str, optional
        For each query, InChIKeys (first block) that its background must not hold.

    Returns
    -------
    list of (Scored, ListEvidence), and the Molecules that `Scored.rows` are places in
        Scores of all candidates among themselves, and the evidence of those of the best ion
        against the background.
    """
    excluded = without if without is not None else [()] * len(queries)
    scored, molecules = score(queries, fitted, confidence, fingerprint, index)
    ions = [_best_ion(query, scores) for query, scores in zip(queries, scored, strict=True)]
    backgrounds = [
        background_of(query, store, hypothesis, without=keys)
        for query, (hypothesis, _), keys in zip(queries, ions, excluded, strict=True)
    ]
    with_background = [at for at, background in enumerate(backgrounds) if background is not None]
    compared, _ = score(
        [background for background in backgrounds if background is not None],
        fitted.first_stage, confidence, fingerprint,
        excluded_analogs=[
            ExcludedAnalogs(molecules, scored[at].rows[ions[at][1]]) for at in with_background
        ],
    )  # fmt: skip
    background_scores = dict(zip(with_background, compared, strict=True))
    labels = [channel.label for channel in fitted.channels]
    lists = [
        (
            scored[at],
            _list_evidence(
                query.feature, scored[at], ions[at][1], background_scores.get(at), labels,
                nearest[at], _count_same_mass(backgrounds[at]),
            ),
        )
        for at, query in enumerate(queries)
    ]  # fmt: skip
    return lists, molecules


def background_of(
    query: FeatureQuery,
    store: BundledMolecules,
    number: int = 0,
    *,
    without: Collection[str] = (),
) -> FeatureQuery | None:
    """Return bundled molecules to compare the scores of the candidates of one ion with.

    A list of one candidate says nothing about how well a wrong molecule would score. The
    background holds the bundled molecules of the same mass that are no candidates, so that one
    which fits better shows, and fills short lists up to `BACKGROUND` with those nearest in mass.

    Parameters
    ----------
    query : FeatureQuery
    store : BundledMolecules
    number : int
        Of the adduct hypothesis.
    without : collection of str
        InChIKeys (first block) of molecules to leave out.

    Returns
    -------
    FeatureQuery or None
        The same feature with background molecules in the place of its candidates; None where
        there are none.
    """
    if not len(store.masses):
        return None
    known = {molecule.key for listed in query.molecules for molecule in listed}.union(without)
    hypothesis = query.hypotheses[number]
    missing = max(BACKGROUND - len(query.molecules[number]), 0)
    molecules = _nearest(store, hypothesis, missing, known)
    if not molecules:
        return None
    return replace(query, hypotheses=(hypothesis,), molecules=(molecules,), found=len(molecules))


def _count_same_mass(background: FeatureQuery | None) -> int:
    """Return how many molecules of a background have the mass of the candidates."""
    if background is None:
        return 0
    [hypothesis], [molecules] = background.hypotheses, background.molecules
    return sum(abs(molecule.mass - hypothesis.mass) <= hypothesis.reach for molecule in molecules)


def _best_ion(query: FeatureQuery, scored: Scored) -> tuple[int, Ints]:
    """Return the adduct hypothesis of the best candidate, and the rows of its candidates.

    Whether the molecule is in the database is judged among the candidates of one ion: those of
    rarer ions have lower scores whatever their structure, and would flatter the best one.
    """
    hypothesis = np.repeat(
        np.arange(len(query.molecules)), [len(listed) for listed in query.molecules]
    )
    best = int(hypothesis[np.argmax(scored.absolute.sum(1) + scored.ion)])
    return best, np.flatnonzero(hypothesis == best)


def _list_evidence(
    feature: Feature,
    scored: Scored,
    rows: Ints,
    background: Scored | None,
    channels: Sequence[str],
    nearest: float,
    same_mass: int,
) -> ListEvidence:
    """Gather what the scores of a list (the `rows` of one ion) and its background say of it."""
    empty = np.zeros(0)
    contributions = scored.absolute[rows] / max(scored.weight, 1e-12)
    columns = [
        contributions[:, list(channels).index(name)]
        if name in channels
        else np.zeros(len(contributions))
        for name in CHANNELS
    ]
    return ListEvidence(
        scores=scored.absolute.sum(1)[rows],
        explained=scored.explained[rows],
        channels=np.column_stack(columns),
        background=empty if background is None else background.absolute.sum(1),
        background_explained=empty if background is None else background.explained,
        nearest=nearest,
        peaks=float(np.mean([len(spectrum) for spectrum in feature.spectra])),
        same_mass=same_mass,
    )


def _nearest(
    store: BundledMolecules, hypothesis: Hypothesis, number: int, known: set[str]
) -> list[Molecule]:
    """Return the molecules of a mass, and of the nearest masses up to a number, not the known."""
    mass, masses = hypothesis.mass, store.masses
    low, high = np.searchsorted(masses, [mass - hypothesis.reach, mass + hypothesis.reach])
    around = number + len(known) if number else 0
    rows = np.arange(max(low - around, 0), min(high + around, len(masses)))
    away = np.abs(masses[rows] - mass)
    order = np.argsort(away, kind="stable")
    by_key: dict[str, Molecule] = {}
    for molecule in molecules_of_table(store.rows(rows[order])):
        is_same_mass = abs(molecule.mass - mass) <= hypothesis.reach
        if len(by_key) >= (BACKGROUND if is_same_mass else number):
            break
        if molecule.key not in known and can_form(molecule, hypothesis):
            by_key.setdefault(molecule.key, replace(molecule, row=-1))
    return list(by_key.values())
