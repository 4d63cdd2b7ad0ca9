"""A control that sees nothing of the spectrum."""

from dataclasses import dataclass

from mzseek.models.encoders.kind import EncoderKind
from mzseek.registry import option


@dataclass(frozen=True)
class BlindOptions:
    """Options of the control."""

    width: int = option(1024, "length of an embedding", above=0)


ENCODER = EncoderKind(
    "blind", "mzseek.models.encoders.blind.network:BlindEncoder", BlindOptions, reads="bins",
    sees_spectrum=False,
)  # fmt: skip
