"""What is known about an encoder, without a look at torch."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mzseek.registry import load

if TYPE_CHECKING:
    from mzseek.models.encoders.base import Encoder


@dataclass(frozen=True)
class EncoderKind:
    """Facts about an encoder.

    Attributes
    ----------
    name : str
    code : str
        The class of its network, ``module:name``; torch is not loaded before it is asked for.
    options : type
        A dataclass: the options that it has. One is ``width``, the length of an embedding.
    reads : str
        ``bins`` (`SparseRows`) or ``peaks`` (`PeakLists`): what a batch must carry for it.
    sees_spectrum : bool
        False for the controls, which must do without the peaks.
    takes_bins : bool
        Is its network built for a number of bins?
    repeats : str or None
        The option that says how many layers alike it has, where there is one.
    """

    name: str
    code: str
    options: type
    reads: str
    sees_spectrum: bool = True
    takes_bins: bool = False
    repeats: str | None = None

    @property
    def network(self) -> "type[Encoder]":
        """The class of its network, built from the options by name (and ``bins``)."""
        network: type[Encoder] = load(self.code)
        return network
