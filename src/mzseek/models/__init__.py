"""Encoders, a fingerprint head, scorers, and the model they compose. They know no loss.

Registries and descriptions load no torch; the networks do, when they are first used.
"""

from typing import TYPE_CHECKING

from mzseek.core.registry import lazy_names
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

# The networks, which need torch, are loaded when they are first used.
__getattr__ = lazy_names(
    "mzseek.models",
    {"layers": "FingerprintHead", "model": "Output Retriever", "scorers": "Scorer"},
)
