"""Encoders, a fingerprint head, scorers, and the model they compose. They know no loss.

Registries and descriptions load no torch; the networks do, when they are first used.
"""

from typing import TYPE_CHECKING, Any

from mzseek.core.registry import load
from mzseek.models.configs import (
    BASELINES,
    ENCODERS,
    SCORERS,
    ModelSpec,
    build,
    encoder_part,
    scorer_part,
)

if TYPE_CHECKING:
    from mzseek.models.layers import FingerprintHead
    from mzseek.models.model import Output, Retriever
    from mzseek.models.scorers import Scorer

_NETWORKS = {
    "FingerprintHead": "mzseek.models.layers:FingerprintHead",
    "Output": "mzseek.models.model:Output",
    "Retriever": "mzseek.models.model:Retriever",
    "Scorer": "mzseek.models.scorers:Scorer",
}

__all__ = [
    "BASELINES",
    "ENCODERS",
    "SCORERS",
    "FingerprintHead",
    "ModelSpec",
    "Output",
    "Retriever",
    "Scorer",
    "build",
    "encoder_part",
    "scorer_part",
]


def __getattr__(name: str) -> Any:
    """Load the networks, which need torch, when they are first used."""
    if name in _NETWORKS:
        return load(_NETWORKS[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
