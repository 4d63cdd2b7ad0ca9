"""Classes of the molecules of features, from their candidates and the reference spectra."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mzseek.annotation.query import FeatureQuery, with_ion
from mzseek.annotation.references import Neighbours
from mzseek.chem.fingerprint_kinds import fingerprints
from mzseek.classes import CompoundClass
from mzseek.classes.model import MAX_CANDIDATES, ClassEvidence, ClassModel, reference_votes
from mzseek.classes.posterior import ClassReference, compound_class
from mzseek.classes.structure import KINDS, side_by_side
from mzseek.evidence.analogs import Analogs
from mzseek.evidence.model import ChannelState, EvidenceModel
from mzseek.evidence.queries import Molecules
from mzseek.formulas import RankedFormula

if TYPE_CHECKING:
    from mzseek.bundle.molecules import BundledMolecules

Floats = npt.NDArray[np.float64]
_NEAREST = 30  # bundled molecules by mass, whose formulas stand in for an unknown one
_UNKNOWN = 0.5  # probability of being in the database, where the model cannot say


@dataclass(frozen=True, eq=False)
class ClassAnnotator:
    """Estimate the compound class of features.

    Attributes
    ----------
    model : ClassModel
    store : BundledMolecules
        Whose formulas stand in for those of a feature without candidates.
    fitted : EvidenceModel
        Its channel of analogs has the regression on reference spectra.
    confidence : float
        Probability from which on a class is the answer.
    """

    model: ClassModel
    store: "BundledMolecules"
    fitted: EvidenceModel
    confidence: float
    _of_reference: dict[str, Floats] = field(default_factory=dict)

    def spectral_votes(
        self, queries: Sequence[FeatureQuery], neighbours: Sequence[Neighbours]
    ) -> list[tuple[Floats, Floats]]:
        """Return votes of the regression and of the nearest references, for each query."""
        regressed = self._regressed(queries)
        self._classify(neighbours)
        return [
            (votes, self._nearest(near)) for votes, near in zip(regressed, neighbours, strict=True)
        ]

    def of_candidates(
        self,
        query: FeatureQuery,
        neighbours: Neighbours,
        votes: tuple[Floats, Floats],
        table: Molecules,
        rows: npt.NDArray[np.int64],
        probabilities: Floats,
        p_in_database: float | None,
        ranked: Sequence[RankedFormula] = (),
    ) -> CompoundClass:
        """Estimate the class of a feature that has candidates.

        Parameters
        ----------
        query, neighbours
        votes : pair of arrays
            Of `spectral_votes`.
        table, rows
            Candidates as rows of a table of molecules.
        probabilities : float64 array, shape (candidates,)
            If the molecule is one of the candidates.
        p_in_database : float or None
        ranked : sequence of RankedFormula
            Formulas without a database. Where there are none, those of the candidates count.
        """
        molecules = [molecule for listed in query.molecules for molecule in listed]
        if ranked and not query.formula:
            formulas = _added_up((one.formula, one.probability) for one in ranked)
        else:
            listed = (one.formula for one in molecules)
            formulas = _added_up(zip(listed, probabilities.tolist(), strict=True))
        keys = np.array([molecule.key for molecule in molecules])
        first = np.lexsort((keys, -probabilities))[:MAX_CANDIDATES]
        bits = side_by_side({kind: table.fingerprints(rows[first], kind) for kind in KINDS})
        classes = self.model.of_structures(keys[first].tolist(), bits)
        share = probabilities[first] / probabilities[first].sum()
        of_candidates = np.einsum("ij,i->j", classes, share)
        evidence = ClassEvidence(
            [self.model.formulas_votes(formulas), len(first) * of_candidates, *votes],
            of_candidates,
            _UNKNOWN if p_in_database is None else p_in_database,
        )
        return self._described(evidence, neighbours)

    def without_candidates(
        self,
        query: FeatureQuery,
        neighbours: Neighbours,
        votes: tuple[Floats, Floats],
        ranked: Sequence[RankedFormula] = (),
    ) -> CompoundClass:
        """Estimate the class of a feature without candidates.

        Where no formula is known, those that need no database (`ranked`) stand in for it; without
        these, those of the bundled molecules nearest in mass.
        """
        if query.formula:
            formulas = {query.formula: 1.0}
        elif ranked:
            formulas = _added_up((one.formula, one.probability) for one in ranked)
        else:
            formulas = self._formulas_near(query)
        nobody = np.zeros(len(self.model.tree))
        evidence = ClassEvidence([self.model.formulas_votes(formulas), nobody, *votes])
        return self._described(evidence, neighbours)

    def _described(self, evidence: ClassEvidence, neighbours: Neighbours) -> CompoundClass:
        lineages = self.model.find(list(neighbours.analogs))
        references = [
            ClassReference(
                reference.record,
                reference.name,
                reference.smiles,
                reference.similarity,
                self.model.tree.named(lineage),
            )
            for reference, lineage in zip(
                neighbours.analogs.values(), lineages.tolist(), strict=True
            )
            if lineage >= 0 and self.model.tree.named(lineage) and reference.similarity > 0
        ]
        p = self.model.posterior(evidence)
        return compound_class(self.model.tree, p, self.confidence, references)

    def _formulas_near(self, query: FeatureQuery) -> dict[str, float]:
        masses = self.store.masses
        at = int(np.searchsorted(masses, query.hypotheses[0].mass))
        low = max(min(at - _NEAREST // 2, len(masses) - _NEAREST), 0)
        rows = self.store.table["formula"].slice(low, _NEAREST).to_pylist()
        return {formula: rows.count(formula) / len(rows) for formula in rows}

    def _nearest(self, neighbours: Neighbours) -> Floats:
        """Return the votes of the most similar reference spectra."""
        if not neighbours.analogs:
            return np.zeros(len(self.model.tree))
        lineages = np.array([self._of_reference[key] for key in neighbours.analogs])
        similarities = [reference.similarity for reference in neighbours.analogs.values()]
        return reference_votes(lineages, similarities)

    def _classify(self, neighbours: Sequence[Neighbours]) -> None:
        """Look up or estimate the lineages of reference molecules, of each once."""
        new = {
            key: reference.smiles
            for near in neighbours
            for key, reference in near.analogs.items()
            if key not in self._of_reference
        }
        if new:
            smiles = list(new.values())
            bits = {kind: fingerprints(smiles, kind, threads=1) for kind in KINDS}
            lineages = self.model.of_structures(list(new), side_by_side(bits))
            self._of_reference.update(zip(new, lineages, strict=True))

    def _regressed(self, queries: Sequence[FeatureQuery]) -> list[Floats]:
        """Return the votes of the regression, the mean over the spectra of each feature."""
        if self._analogs is None or not queries:
            return [np.zeros(len(self.model.tree))] * len(queries)
        channel, state, lineages = self._analogs
        spectra = [
            with_ion(spectrum, adduct)
            for query in queries
            for spectrum, adduct in zip(
                query.feature.spectra, query.hypotheses[0].adducts, strict=True
            )
        ]
        weights = channel.molecule_weights(state, spectra).astype(np.float64)
        ends = np.cumsum([len(query.feature.spectra) for query in queries])[:-1]
        votes = []
        for of_query in np.split(weights, ends, axis=1):
            # Sorted before they are added: no order of spectra shows, to the last bit.
            mean = np.sort(of_query, axis=1).sum(1) / of_query.shape[1]
            votes.append(np.einsum("m,ml->l", mean, lineages))
        return votes

    @cached_property
    def _analogs(self) -> tuple[Analogs, ChannelState, Floats] | None:
        """The channel of analogs, its state, and the lineages of its molecules."""
        for channel, state in zip(self.fitted.channels, self.fitted.states, strict=True):
            if isinstance(channel, Analogs) and set(KINDS) <= set(channel.kinds):
                bits = side_by_side({kind: channel.molecule_bits(state, kind) for kind in KINDS})
                lineages = self.model.structure.probabilities(bits)
                return channel, state, lineages
        return None


def _added_up(formulas: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return the probability of each formula, whatever the ion."""
    sums: dict[str, float] = {}
    for formula, probability in formulas:
        sums[formula] = sums.get(formula, 0.0) + probability
    return sums
