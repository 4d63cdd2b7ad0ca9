"""DeepSets on peaks."""

from dataclasses import dataclass

from mzseek.models.encoders.kind import EncoderKind
from mzseek.registry import option


@dataclass(frozen=True)
class DeepSetsOptions:
    """Options of DeepSets."""

    width: int = option(1024, "length of an embedding", above=0)
    hidden: int = option(512, "width of the MLP on peaks", above=0)
    dropout: float = option(0.25, "share of entries left out in training", least=0, below=1)


ENCODER = EncoderKind(
    "deepsets", "mzseek.models.encoders.deepsets.network:DeepSets", DeepSetsOptions, reads="peaks"
)
