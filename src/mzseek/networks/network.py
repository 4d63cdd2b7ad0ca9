"""A trained network: an encoder, perhaps a fingerprint head, and a scorer."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.errors import ModelError
from mzseek.networks.encoders import ENCODERS
from mzseek.networks.layers import Linear, sigmoid
from mzseek.networks.scorers import SCORERS
from mzseek.networks.weights import Array, Weights


class Network:
    """What `mzseek.models.Retriever` computes once trained, without torch.

    Parameters
    ----------
    spec : ModelSpec
        The model's description.
    arrays : mapping of str to array
        Its weights, under the names that its file has.

    Raises
    ------
    ModelError
        The description names an unknown part, or the weights are not those of such a model.
    """

    made_with = f"numpy {np.__version__}"

    def __init__(self, spec: Any, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        for name, registry in ((spec.encoder.name, ENCODERS), (spec.scorer.name, SCORERS)):
            if name not in registry:
                raise ModelError(f"{name} is applied by torch alone: pip install 'mzseek[train]'")
        weights, width, bits = Weights(arrays), spec.encoder.options.width, spec.bits
        self._encoder = ENCODERS[spec.encoder.name](
            weights.under("encoder"), spec.encoder.options, spec.bins
        )
        self._scorer = SCORERS[spec.scorer.name](
            weights.under("scorer"), spec.scorer.options, width, bits
        )
        reads_fingerprint = self._scorer.reads_fingerprint
        self._head = Linear(weights.under("head"), width, bits) if reads_fingerprint else None
        weights.check_all_taken()

    @property
    def reads(self) -> str:
        """``bins`` or ``peaks``: what a batch must carry for it."""
        return self._encoder.reads

    @property
    def predicts_fingerprint(self) -> bool:
        """Whether it reads a fingerprint off a spectrum, or an embedding."""
        return self._head is not None

    def read(self, spectra: Any) -> Array:
        """What the scorer reads: predicted fingerprints within [0, 1], or embeddings.

        Parameters
        ----------
        spectra : CSR matrix, shape (batch, bins), or Peaks
            As `reads` says.

        Returns
        -------
        float32 array, shape (batch, bits or width)
        """
        embedding = self._encoder(spectra)
        return embedding if self._head is None else sigmoid(self._head(embedding))

    def scores(self, read: Array, candidates: csr_array, counts: npt.NDArray[np.int64]) -> Array:
        """Scores of the candidates of each spectrum, shape (candidates,).

        Parameters
        ----------
        read : float32 array, shape (batch, bits or width)
            What `read` returned.
        candidates : CSR matrix of ones, shape (candidates, bits)
            Of all spectra, concatenated.
        counts : int array, shape (batch,)
            Candidates of each spectrum.
        """
        return self._scorer(read, candidates, counts)
