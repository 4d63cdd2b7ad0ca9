"""The cosine of learned projections of the embedding and of the candidate."""

from dataclasses import dataclass

from mzseek.models.scorers.kind import ScorerKind
from mzseek.registry import option


@dataclass(frozen=True)
class EmbCosOptions:
    """Options of emb-cos."""

    projected: int = option(256, "dimensions of the learned space", above=0)


SCORER = ScorerKind(
    "emb-cos", "mzseek.models.scorers.emb_cos.network:EmbCos", reads_fingerprint=False,
    options=EmbCosOptions, sizes=("width", "bits"),
)  # fmt: skip
