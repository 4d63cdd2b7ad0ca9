"""The paper's MLP, fed with more: peaks and neutral losses in bins."""

from dataclasses import dataclass

from mzseek.models.encoders.kind import EncoderKind
from mzseek.registry import option

INTENSITIES = ("sqrt", "log", "linear")


@dataclass(frozen=True)
class PeaksAndLossesOptions:
    """Options of the MLP on peaks and losses."""

    width: int = option(1024, "length of an embedding", above=0)
    blocks: int = option(3, "blocks, as the mlp has them", least=0)
    dropout: float = option(0.25, "share of entries left out in training", least=0, below=1)
    bin_width: float = option(0.1, "width of a bin of m/z", least=0.001)
    highest: float = option(1000.0, "m/z from which on all is in the last bin", above=0, most=1e5)
    intensities: str = option("sqrt", "what is read of an intensity", among=INTENSITIES)
    precursor_bin: float = option(
        0.0, "width of bins of the precursor m/z; 0 leaves it out", least=0
    )
    peak_dropout: float = option(0.2, "share of peaks left out in training", least=0, below=1)


ENCODER = EncoderKind(
    "peaks-and-losses", "mzseek.models.encoders.peaks_and_losses.network:PeaksAndLosses",
    PeaksAndLossesOptions, reads="peaks", repeats="blocks",
)  # fmt: skip
