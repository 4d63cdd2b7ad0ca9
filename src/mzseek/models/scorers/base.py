"""What the network of a scorer is."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from mzseek.models.scorers.kind import ScorerKind
from mzseek.tensors import SparseRows


class Scorer(nn.Module, ABC):
    """Scores the candidates of each spectrum.

    Attributes
    ----------
    kind : ScorerKind
        What is known about it, such as what it reads.
    """

    kind: ClassVar[ScorerKind]

    @abstractmethod
    def forward(self, spectra: Tensor, candidates: SparseRows, counts: Tensor) -> Tensor:
        """Scores, shape (candidates,).

        Parameters
        ----------
        spectra : tensor, shape (batch, bits or width)
            Predicted fingerprints within [0, 1], or embeddings.
        candidates : SparseRows of ones, shape (candidates, bits)
            Of all spectra, concatenated.
        counts : int tensor, shape (batch,)
            Candidates of each spectrum.
        """
