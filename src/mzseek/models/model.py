"""The model: an encoder, perhaps a fingerprint head, and a scorer."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from mzseek.models.encoders.base import Encoder, SpectrumInput
from mzseek.models.head import FingerprintHead
from mzseek.models.scorers.base import Scorer
from mzseek.tensors import SparseRows


@dataclass(frozen=True)
class Output:
    """What a model says about a batch.

    Attributes
    ----------
    embedding : tensor, shape (batch, width)
    logits : tensor, shape (batch, bits), or None
        Of the predicted fingerprint, where the model predicts one.
    scores : tensor, shape (candidates,), or None
        Where candidates were given.
    """

    embedding: Tensor
    logits: Tensor | None
    scores: Tensor | None

    @property
    def prediction(self) -> Tensor | None:
        """The predicted fingerprint, within [0, 1]."""
        return None if self.logits is None else torch.sigmoid(self.logits)

    @property
    def read(self) -> Tensor:
        """What a scorer reads: the predicted fingerprint, or the embedding where there is none."""
        return self.embedding if self.logits is None else torch.sigmoid(self.logits)


class Retriever(nn.Module):
    """Scores candidates for spectra.

    Parameters
    ----------
    encoder : Encoder
    head : FingerprintHead or None
        The models on learned projections have none.
    scorer : Scorer
    """

    def __init__(self, encoder: Encoder, head: FingerprintHead | None, scorer: Scorer) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.scorer = scorer

    def forward(
        self,
        spectra: SpectrumInput,
        candidates: SparseRows | None = None,
        counts: Tensor | None = None,
    ) -> Output:
        """Embeddings, logits if there is a head, scores if there are candidates."""
        embedding = self.encoder(spectra)
        logits = None if self.head is None else self.head(embedding)
        output = Output(embedding, logits, None)
        if candidates is None or counts is None:
            return output
        return replace(output, scores=self.scorer(output.read, candidates, counts))
