"""A network on the predicted fingerprint and the candidate's."""

from dataclasses import dataclass

from mzseek.models.scorers.kind import ScorerKind
from mzseek.registry import option


@dataclass(frozen=True)
class FpMlpOptions:
    """Options of fp-mlp."""

    dropout: float = option(0.25, "share of entries left out in training", least=0, below=1)


SCORER = ScorerKind(
    "fp-mlp", "mzseek.models.scorers.fp_mlp.network:FpMlp", reads_fingerprint=True,
    options=FpMlpOptions, sizes=("bits",),
)  # fmt: skip
