"""A control that sees the precursor and no peak."""

from dataclasses import dataclass

from mzseek.models.encoders.kind import EncoderKind
from mzseek.registry import option


@dataclass(frozen=True)
class PrecursorOptions:
    """Options of the MLP on precursors."""

    width: int = option(1024, "length of an embedding", above=0)
    dropout: float = option(0.25, "share of entries left out in training", least=0, below=1)


ENCODER = EncoderKind(
    "precursor", "mzseek.models.encoders.precursor.network:PrecursorMlp", PrecursorOptions,
    reads="peaks", sees_spectrum=False,
)  # fmt: skip
