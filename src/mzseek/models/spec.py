"""A model's make-up as plain data: what a run folder and a model file carry."""

from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

import torch

from mzseek.errors import ModelError
from mzseek.models.encoders import Encoder, encoder_named
from mzseek.models.head import FingerprintHead
from mzseek.models.model import Retriever
from mzseek.models.scorers import SCORERS, Scorer

Part = TypeVar("Part", Encoder, Scorer)


@dataclass(frozen=True)
class ModelSpec:
    """Everything that is needed to build a model, apart from its weights.

    Attributes
    ----------
    encoder, scorer : str
        Names in `ENCODERS` and `SCORERS`.
    bins, bits : int
        Lengths of a binned spectrum and of a fingerprint.
    width, projected : int
        Lengths of an embedding and of a learned projection.
    blocks : int
        Of the MLP encoder.
    dropout : float
    """

    encoder: str = "mlp"
    scorer: str = "fp-cos"
    bins: int = 10_050
    bits: int = 4096
    width: int = 1024
    projected: int = 256
    blocks: int = 3
    dropout: float = 0.25

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> "ModelSpec":
        """From plain data; unknown or missing names are refused."""
        names = [field.name for field in fields(cls)]
        if set(facts) != set(names):
            odd = ", ".join(" ".join(name.split()) for name in sorted(set(facts) ^ set(names)))
            raise ModelError(f"model description differs in {odd}, expected {', '.join(names)}")
        return cls(**facts)


def build(spec: ModelSpec, *, seed: int | None = None) -> Retriever:
    """A model with fresh weights.

    Parameters
    ----------
    spec : ModelSpec
    seed : int, optional
        Of the weights; the global random state is left as it was.

    Returns
    -------
    Retriever
    """
    if spec.scorer not in SCORERS:
        raise ModelError(
            f"scorer {spec.scorer!r} is unknown, expected one of: {', '.join(SCORERS)}"
        )
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            torch.manual_seed(seed)
        encoder = _made(encoder_named(spec.encoder), spec)
        scorer = _made(SCORERS[spec.scorer], spec)
        head = FingerprintHead(spec.width, spec.bits) if scorer.reads_fingerprint else None
        return Retriever(encoder, head, scorer)


def _made(part: type[Part], spec: ModelSpec) -> Part:
    """A part, built from the fields that it says it needs."""
    return part(**{name: getattr(spec, name) for name in part.options})
