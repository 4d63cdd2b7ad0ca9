"""The cosine of fingerprints."""

from typing import ClassVar

from torch import Tensor

from mzseek.models.scorers.base import Scorer
from mzseek.models.scorers.fp_cos import SCORER
from mzseek.models.scorers.kind import ScorerKind
from mzseek.similarity.soft import candidate_cosine
from mzseek.tensors import SparseRows


class FpCos(Scorer):
    """``cos(ŷ, c)``, in the space of fingerprints; it has no parameters."""

    kind: ClassVar[ScorerKind] = SCORER

    def forward(self, spectra: Tensor, candidates: SparseRows, counts: Tensor) -> Tensor:
        """Cosines, shape (candidates,)."""
        return candidate_cosine(spectra, candidates, counts)
