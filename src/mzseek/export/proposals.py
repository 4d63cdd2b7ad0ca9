"""proposals.tsv: structures that are no candidates, made of known molecules."""

from collections.abc import Callable
from typing import Any

from mzseek.annotation.annotation import Annotation
from mzseek.export.tables import cells, line
from mzseek.export.writer import Writer
from mzseek.proposals.proposal import Proposal

PROPOSALS = "proposals.tsv"
# Values of a proposal by column; the feature and the rank come first.
COLUMNS: dict[str, Callable[[Proposal], Any]] = {
    "smiles": lambda p: p.smiles,
    "InChIkey2D": lambda p: p.key,
    "molecularFormula": lambda p: p.formula,
    "adduct": lambda p: p.adduct,
    "probability": lambda p: p.probability,
    "includedProbability": lambda p: p.included,
    "confidence": lambda p: p.confidence,
    "mass": lambda p: p.mass,
    "errorPpm": lambda p: p.error_ppm,
    "parent": lambda p: p.parent,
    "parentInChIkey2D": lambda p: p.parent_key,
    "parentName": lambda p: p.parent_name,
    "parentRecord": lambda p: p.parent_record or None,
    "parentSimilarity": lambda p: p.parent_similarity if p.parent_record else None,
    "transformation": lambda p: p.transformation,
    "massDifference": lambda p: p.mass_difference,
    "score": lambda p: p.score,
    "explainedIntensity": lambda p: p.explained,
    "explainedPeaks": lambda p: p.peaks_explained,
}


def proposal_values(proposal: Proposal, rank: int) -> dict[str, Any]:
    """Return values of a proposal under the names of ``proposals.tsv``; None for none."""
    return {"rank": rank, **{name: value(proposal) for name, value in COLUMNS.items()}}


class Proposals(Writer):
    """Write ``proposals.tsv``: one row a proposal."""

    def write(self, annotation: Annotation) -> None:
        """Add a row for each proposal."""
        self._begin()
        for rank, proposal in enumerate(annotation.proposals, 1):
            values = {"feature": annotation.feature.name, **proposal_values(proposal, rank)}
            self.spool.write(line(cells(values).values()))

    def finish(self) -> list[str]:
        """Complete the file: without proposals it is a header."""
        self._begin()
        return super().finish()

    def _begin(self) -> None:
        if self.spool.is_empty:
            self.spool.write(line(["feature", "rank", *COLUMNS]))
