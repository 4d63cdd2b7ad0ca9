"""The paper's encoder: an MLP on binned spectra."""

from dataclasses import dataclass

from mzseek.models.encoders.kind import EncoderKind
from mzseek.registry import option


@dataclass(frozen=True)
class MlpOptions:
    """Options of the MLP."""

    width: int = option(1024, "length of an embedding", above=0)
    blocks: int = option(3, "blocks; the paper's equation has 3, its published runs 2", least=0)
    dropout: float = option(0.25, "share of entries left out in training", least=0, below=1)


ENCODER = EncoderKind(
    "mlp", "mzseek.models.encoders.mlp.network:BinnedMlp", MlpOptions, reads="bins",
    takes_bins=True, repeats="blocks",
)  # fmt: skip
