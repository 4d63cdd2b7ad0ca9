"""Encoders E: a spectrum in, an embedding out. One folder each, and one line here.

The folder's own module has the options and the facts, and loads no torch; ``network.py`` has the
network.
"""

from mzseek.errors import ModelError
from mzseek.models.encoders import blind, deepsets, mlp, peaks_and_losses, precursor, transformer
from mzseek.models.encoders.kind import EncoderKind
from mzseek.registry import choose

ENCODERS: dict[str, EncoderKind] = {
    kind.name: kind
    for kind in (
        mlp.ENCODER,
        peaks_and_losses.ENCODER,
        transformer.ENCODER,
        deepsets.ENCODER,
        precursor.ENCODER,
        blind.ENCODER,
    )
}

__all__ = ["ENCODERS", "EncoderKind", "encoder_named"]


def encoder_named(name: str) -> EncoderKind:
    """Facts about the encoder of that name."""
    return choose(ENCODERS, name, "encoder", ModelError)
