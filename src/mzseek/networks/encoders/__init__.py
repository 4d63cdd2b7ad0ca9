"""Encoders by numpy and scipy: one file for each of `mzseek.models.encoders`, and one line here."""

from mzseek.networks.encoders.base import Encoder, Peaks
from mzseek.networks.encoders.blind import BlindEncoder
from mzseek.networks.encoders.deepsets import DeepSets
from mzseek.networks.encoders.mlp import BinnedMlp
from mzseek.networks.encoders.peaks_and_losses import PeaksAndLosses
from mzseek.networks.encoders.precursor import PrecursorMlp
from mzseek.networks.encoders.transformer import PeakTransformer

ENCODERS: dict[str, type[Encoder]] = {
    "mlp": BinnedMlp,
    "peaks-and-losses": PeaksAndLosses,
    "transformer": PeakTransformer,
    "deepsets": DeepSets,
    "precursor": PrecursorMlp,
    "blind": BlindEncoder,
}

__all__ = ["ENCODERS", "Encoder", "Peaks"]
