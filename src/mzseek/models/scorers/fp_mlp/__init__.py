"""A network on the predicted fingerprint and the candidate's."""

from dataclasses import dataclass

from mzseek.models.scorers.kind import ScorerKind
from mzseek.registry import option


@dataclass(frozen=True)
class FpMlpOptions:
    """Options of fp-mlp."""

    dropout: float = option(0.25, "share of entries left out in training", least=0, below=1)
    hidden: int = option(0, "length of the first layer; 0: 3/8 of the bits, as published", least=0)

    def first_layer(self, bits: int) -> int:
        """Length of the first layer, for fingerprints of so many bits."""
        return self.hidden or 3 * bits // 8


SCORER = ScorerKind(
    "fp-mlp", "mzseek.models.scorers.fp_mlp.network:FpMlp", reads_fingerprint=True,
    options=FpMlpOptions, sizes=("bits",),
)  # fmt: skip
