"""The network of a run: by torch where it is installed, else by numpy and scipy."""

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.errors import ModelError
from mzseek.extras import has
from mzseek.models import ModelSpec
from mzseek.networks import Network
from mzseek.runs.checkpoint import Arrays

Floats = npt.NDArray[np.float32]


class Applied(Protocol):
    """A trained network, whatever computes it: `mzseek.networks.Network` says what each does."""

    @property
    def made_with(self) -> str:
        """What computes it, for the record."""

    @property
    def reads(self) -> str:
        """``bins`` or ``peaks``."""

    @property
    def predicts_fingerprint(self) -> bool:
        """Whether it reads a fingerprint off a spectrum, or an embedding."""

    def read(self, spectra: Any) -> Floats:
        """What the scorer reads: predicted fingerprints, or embeddings."""

    def scores(self, read: Floats, candidates: csr_array, counts: npt.NDArray[np.int64]) -> Floats:
        """Scores of the candidates of each spectrum."""


def network_of(spec: ModelSpec, arrays: Arrays, path: Path) -> Applied:
    """A network of weights and their description; ``path`` is where they are from.

    Raises
    ------
    ModelError
        The weights are not those of such a model.
    """
    try:
        if has("torch"):
            from mzseek.models.applied import TorchNetwork, model_of
            from mzseek.models.device import device

            return TorchNetwork(model_of(spec, arrays).to(device()), device())
        return Network(spec, arrays)
    except ModelError as error:
        raise ModelError(f"{path}: does not fit the model it describes ({error})") from error
