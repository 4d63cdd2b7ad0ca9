"""Encoders, a fingerprint head, scorers, and the model they compose. They know no loss."""

from mzseek.models.encoders import ENCODERS, Encoder, encoder_named
from mzseek.models.head import FingerprintHead
from mzseek.models.model import Output, Retriever
from mzseek.models.scorers import SCORERS, Scorer
from mzseek.models.spec import ModelSpec, build

__all__ = [
    "ENCODERS",
    "SCORERS",
    "Encoder",
    "FingerprintHead",
    "ModelSpec",
    "Output",
    "Retriever",
    "Scorer",
    "build",
    "encoder_named",
]
