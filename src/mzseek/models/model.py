"""The model: encoder, fingerprint head and scorer, trained or applied."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn

from mzseek.core.errors import ModelError
from mzseek.models.configs import ModelSpec, build
from mzseek.models.encoders import Encoder, SpectrumInput
from mzseek.models.layers import FingerprintHead
from mzseek.models.scorers import Scorer
from mzseek.tensors import PeakLists, SparseRows


@dataclass(frozen=True)
class Output:
    """Output of a model for a batch.

    Attributes
    ----------
    embedding : tensor, shape (batch, width)
    logits : tensor, shape (batch, bits), or None
        Of the predicted fingerprint, where the model predicts one.
    scores : tensor, shape (candidates,), or None
        Where candidates were given.
    """

    embedding: Tensor
    logits: Tensor | None
    scores: Tensor | None

    @property
    def read(self) -> Tensor:
        """What a scorer reads: the predicted fingerprint, or the embedding where there is none."""
        return self.embedding if self.logits is None else torch.sigmoid(self.logits)


class Retriever(nn.Module):
    """Scores candidates for spectra; models on learned projections have no head."""

    def __init__(self, encoder: Encoder, head: FingerprintHead | None, scorer: Scorer) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.scorer = scorer

    def forward(
        self,
        spectra: SpectrumInput,
        candidates: SparseRows | None = None,
        counts: Tensor | None = None,
        precision: torch.dtype = torch.float32,
    ) -> Output:
        """Embeddings, logits if there is a head, scores if there are candidates.

        In another ``precision``, the encoder's products are made in it; head and scores, which
        small temperatures divide, stay in float32.
        """
        if precision == torch.float32:
            embedding = self.encoder(spectra)
        else:
            with torch.autocast(next(self.parameters()).device.type, precision):
                embedding = self.encoder(spectra).float()
        logits = None if self.head is None else self.head(embedding)
        output = Output(embedding, logits, None)
        if candidates is None or counts is None:
            return output
        return replace(output, scores=self.scorer(output.read, candidates, counts))


Arrays = dict[str, npt.NDArray[Any]]
Floats = npt.NDArray[np.float32]


class TorchNetwork:
    """A model, on a device, that is applied and not trained: no dropout, no gradients.

    A model that is in training is left in training.
    """

    made_with = f"torch {torch.__version__}"

    def __init__(self, model: Retriever, device: torch.device | str = "cpu") -> None:
        self.model = model
        self.device = device

    @property
    def reads(self) -> str:
        """``bins`` or ``peaks``: what a batch must carry for it."""
        return self.model.encoder.kind.reads

    @property
    def predicts_fingerprint(self) -> bool:
        """Whether it reads a fingerprint off a spectrum, or an embedding."""
        return self.model.head is not None

    def read(self, spectra: Any) -> Floats:
        """Return what the scorer reads: predicted fingerprints within [0, 1], or embeddings.

        ``spectra`` are a CSR matrix, shape (batch, bins), or arrays of peaks, as `reads` says; the
        result has the shape (batch, bits or width).
        """
        if self.reads == "bins":
            batch: SparseRows | PeakLists = SparseRows.from_csr(spectra)
        else:
            batch = PeakLists(
                torch.from_numpy(spectra.mz),
                torch.from_numpy(spectra.intensities),
                torch.from_numpy(spectra.real),
                torch.from_numpy(spectra.precursor_mz),
            )
        with _inference(self.model):
            return _array(self.model(batch.to(self.device)).read)

    def scores(self, read: Floats, candidates: csr_array, counts: npt.NDArray[np.int64]) -> Floats:
        """Score the candidates of each spectrum, shape (candidates,).

        Parameters
        ----------
        read : float32 array, shape (batch, bits or width)
            What `read` returned.
        candidates : CSR matrix of ones, shape (candidates, bits)
            Of all spectra, concatenated.
        counts : int64 array, shape (batch,)
            Candidates of each spectrum.
        """
        rows = SparseRows.from_csr(candidates, binary=True).to(self.device)
        lengths = torch.from_numpy(counts).to(self.device)
        with _inference(self.model):
            return _array(self.model.scorer(torch.from_numpy(read).to(self.device), rows, lengths))


@contextmanager
def _inference(model: Retriever) -> Iterator[None]:
    was_training = model.training
    if was_training:
        model.eval()
    with torch.inference_mode():
        yield
    if was_training:
        model.train()


def _array(tensor: Tensor) -> Floats:
    result: Floats = tensor.float().cpu().numpy()
    return result


def arrays_of(model: Retriever) -> Arrays:
    """Return all weights of a model by name, as arrays."""
    return as_arrays(model.state_dict())


def as_arrays(tensors: Mapping[str, Tensor]) -> Arrays:
    """Return tensors as arrays, which share their memory where that is possible."""
    return {name: value.detach().cpu().contiguous().numpy() for name, value in tensors.items()}


def model_of(spec: ModelSpec, arrays: Mapping[str, npt.NDArray[Any]]) -> Retriever:
    """Load weights into a model in evaluation mode; ModelError if they are of another model."""
    _check_shapes(spec, arrays)
    model = build(spec, seed=0)  # leaves the random state as it was
    model.load_state_dict({name: torch.from_numpy(value) for name, value in arrays.items()})
    return model.eval()


def _check_shapes(spec: ModelSpec, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Refuse weights of other shapes than described, before memory is allocated for these."""
    if spec.repeats > len(arrays):
        raise ModelError(f"{spec.repeats:,} {spec.encoder_kind.repeats}")
    try:
        with torch.device("meta"):
            expected = build(spec).state_dict()
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"its description cannot be read: {reason}") from error
    for name in {**expected, **arrays}:
        if name not in expected or name not in arrays:
            raise ModelError(f"it {'lacks' if name in expected else 'holds'} {name}")
        array, shape = arrays[name], tuple(expected[name].shape)
        if array.shape != shape or array.dtype.kind != "f":
            raise ModelError(
                f"{name} is {array.dtype} of {array.shape}, expected numbers of {shape}"
            )
