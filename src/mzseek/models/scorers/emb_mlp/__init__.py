"""A network on learned projections of the embedding and of the candidate."""

from dataclasses import dataclass

from mzseek.models.scorers.kind import ScorerKind
from mzseek.registry import option


@dataclass(frozen=True)
class EmbMlpOptions:
    """Options of emb-mlp."""

    projected: int = option(256, "dimensions of the learned space", above=0)
    dropout: float = option(0.25, "share of entries left out in training", least=0, below=1)


SCORER = ScorerKind(
    "emb-mlp", "mzseek.models.scorers.emb_mlp.network:EmbMlp", reads_fingerprint=False,
    options=EmbMlpOptions, sizes=("width", "bits"),
)  # fmt: skip
