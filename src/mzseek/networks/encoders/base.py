"""What an encoder is here: built from weights and sizes, called with spectra."""

from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from mzseek.networks.weights import Array, Weights


class Peaks(Protocol):
    """The peaks of a batch of spectra, padded to the longest.

    Attributes
    ----------
    mz, intensities : float32 array, shape (batch, peaks)
    real : bool array, shape (batch, peaks)
        False where a shorter list is padded.
    precursor_mz : float32 array, shape (batch,)
    """

    @property
    def mz(self) -> Array: ...  # noqa: D102
    @property
    def intensities(self) -> Array: ...  # noqa: D102
    @property
    def real(self) -> npt.NDArray[np.bool_]: ...  # noqa: D102
    @property
    def precursor_mz(self) -> Array: ...  # noqa: D102


class Encoder(Protocol):
    """Reads a batch of spectra, gives embeddings.

    Attributes
    ----------
    reads : str
        ``bins`` (a CSR matrix) or ``peaks`` (`Peaks`).
    """

    reads: ClassVar[str]

    def __init__(self, weights: Weights, options: Any, bins: int) -> None: ...

    def __call__(self, spectra: Any) -> Array:
        """Embeddings, shape (batch, width)."""
