"""Encoders, a fingerprint head, scorers, and the model they compose. They know no loss.

What is known about parts, and a model's description, load no torch; the networks do, when they are
first asked for.
"""

from typing import TYPE_CHECKING, Any

from mzseek.models.encoders import ENCODERS, EncoderKind, encoder_named
from mzseek.models.scorers import SCORERS, ScorerKind, scorer_named
from mzseek.models.spec import BASELINES, ModelSpec, build, encoder_part, scorer_part
from mzseek.registry import load

if TYPE_CHECKING:
    from mzseek.models.encoders.base import Encoder
    from mzseek.models.head import FingerprintHead
    from mzseek.models.model import Output, Retriever
    from mzseek.models.scorers.base import Scorer

_NETWORKS = {
    "Encoder": "mzseek.models.encoders.base:Encoder",
    "FingerprintHead": "mzseek.models.head:FingerprintHead",
    "Output": "mzseek.models.model:Output",
    "Retriever": "mzseek.models.model:Retriever",
    "Scorer": "mzseek.models.scorers.base:Scorer",
}

__all__ = [
    "BASELINES",
    "ENCODERS",
    "SCORERS",
    "Encoder",
    "EncoderKind",
    "FingerprintHead",
    "ModelSpec",
    "Output",
    "Retriever",
    "Scorer",
    "ScorerKind",
    "build",
    "encoder_named",
    "encoder_part",
    "scorer_named",
    "scorer_part",
]


def __getattr__(name: str) -> Any:
    """The networks, which load torch."""
    if name in _NETWORKS:
        return load(_NETWORKS[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
