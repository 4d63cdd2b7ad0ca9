"""Encoders E: a spectrum in, an embedding out. One file each, and one line here."""

from mzseek.errors import ModelError
from mzseek.models.encoders.base import Encoder
from mzseek.models.encoders.blind import BlindEncoder
from mzseek.models.encoders.deepsets import DeepSets
from mzseek.models.encoders.mlp import BinnedMlp
from mzseek.models.encoders.precursor import PrecursorMlp
from mzseek.models.encoders.transformer import PeakTransformer

ENCODERS: dict[str, type[Encoder]] = {
    "mlp": BinnedMlp,
    "transformer": PeakTransformer,
    "deepsets": DeepSets,
    "precursor": PrecursorMlp,
    "blind": BlindEncoder,
}

__all__ = [
    "ENCODERS",
    "BinnedMlp",
    "BlindEncoder",
    "DeepSets",
    "Encoder",
    "PeakTransformer",
    "PrecursorMlp",
    "encoder_named",
]


def encoder_named(name: str) -> type[Encoder]:
    """The encoder class of that name."""
    if name not in ENCODERS:
        raise ModelError(f"encoder {name!r} is unknown, expected one of: {', '.join(ENCODERS)}")
    return ENCODERS[name]
