"""A transformer on peaks."""

from dataclasses import dataclass

from mzseek.errors import ModelError
from mzseek.models.encoders.kind import EncoderKind
from mzseek.registry import option


@dataclass(frozen=True)
class TransformerOptions:
    """Options of the transformer."""

    width: int = option(1024, "length of an embedding", above=0)
    tokens: int = option(256, "width inside the transformer, a multiple of heads", above=0)
    layers: int = option(3, "layers", least=1)
    heads: int = option(8, "heads of attention", above=0)
    dropout: float = option(0.25, "share of entries left out in training", least=0, below=1)

    def __post_init__(self) -> None:
        if self.heads > 0 and self.tokens % self.heads:
            raise ModelError(
                f"encoder transformer: tokens is {self.tokens}, expected a multiple of heads, "
                f"which is {self.heads}"
            )


ENCODER = EncoderKind(
    "transformer", "mzseek.models.encoders.transformer.network:PeakTransformer",
    TransformerOptions, reads="peaks", repeats="layers",
)  # fmt: skip
