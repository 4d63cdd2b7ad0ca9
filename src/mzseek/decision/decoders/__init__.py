"""Bayes decoders over all fingerprints, one file a utility.

Each takes a checked `mzseek.decision.distributions.Distribution` and returns the set bits of the
decision as a 0/1 array, its expected utility, and an upper bound of what any decision can reach,
which is the same number where the decoder is exact.
"""

from collections.abc import Callable

from mzseek.decision.decoders.bits import decode_bits
from mzseek.decision.decoders.cosine import decode_cosine
from mzseek.decision.decoders.f1 import decode_f1
from mzseek.decision.decoders.hit import decode_hit
from mzseek.decision.decoders.result import Decoded
from mzseek.decision.decoders.tanimoto import decode_tanimoto
from mzseek.decision.distributions import Distribution

DECODERS: dict[str, Callable[[Distribution], Decoded]] = {
    "hit": decode_hit,
    "bits": decode_bits,
    "tanimoto": decode_tanimoto,
    "cosine": decode_cosine,
    "f1": decode_f1,
}

__all__ = [
    "DECODERS",
    "Decoded",
    "decode_bits",
    "decode_cosine",
    "decode_f1",
    "decode_hit",
    "decode_tanimoto",
]
