"""The same weights in torch's model and in numpy's network, and batches of all shapes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.sparse import csr_array

from mzseek.models import ModelSpec, build
from mzseek.networks import Network
from mzseek.tensors import PeakLists, SparseRows

BINS, BITS = 97, 64
# So that parts differ in every size that they could mix up.
ENCODER_OPTIONS: dict[str, dict[str, Any]] = {
    "mlp": {"width": 24, "blocks": 2},
    "blind": {"width": 24},
    "peaks-and-losses": {"width": 24, "blocks": 2, "bin_width": 7.0, "precursor_bin": 50.0},
    "precursor": {"width": 24},
    "deepsets": {"width": 24, "hidden": 20},
    "transformer": {"width": 24, "tokens": 16, "layers": 2, "heads": 4},
}
SCORER_OPTIONS: dict[str, dict[str, Any]] = {
    "fp-cos": {},
    "emb-cos": {"projected": 16},
    "fp-mlp": {},
    "emb-mlp": {"projected": 16},
}


@dataclass(frozen=True)
class Peaks:
    """Peak lists as arrays."""

    mz: npt.NDArray[np.float32]
    intensities: npt.NDArray[np.float32]
    real: npt.NDArray[np.bool_]
    precursor_mz: npt.NDArray[np.float32]


def random_rows(rng: np.random.Generator, sizes: list[int], width: int, ones: bool) -> csr_array:
    """Sparse rows with so many entries each."""
    columns = [np.sort(rng.choice(width, size, replace=False)) for size in sizes]
    indices = np.concatenate([np.empty(0, np.int32), *columns]).astype(np.int32)
    values = np.ones(len(indices)) if ones else rng.random(len(indices)) * 3
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return csr_array((values.astype(np.float32), indices, indptr), shape=(len(sizes), width))


def random_peaks(rng: np.random.Generator, sizes: list[int]) -> Peaks:
    """Peaks of spectra with so many each, padded to the longest."""
    real = np.arange(max(1, *sizes))[None] < np.array(sizes)[:, None]
    mz = rng.uniform(50, 900, real.shape) * real
    intensities = rng.uniform(0.01, 1, real.shape) * real
    return Peaks(
        mz.astype(np.float32),
        intensities.astype(np.float32),
        real,
        rng.uniform(100, 1200, len(sizes)).astype(np.float32),
    )


def random_spectra(rng: np.random.Generator, reads: str, sizes: list[int]) -> Any:
    """Spectra as an encoder reads them."""
    if reads == "bins":
        return random_rows(rng, sizes, BINS, ones=False)
    return random_peaks(rng, sizes)


def as_tensors(spectra: Any) -> SparseRows | PeakLists:
    """The same for torch."""
    if isinstance(spectra, csr_array):
        return SparseRows.from_csr(spectra)
    return PeakLists(*(torch.from_numpy(array) for array in vars(spectra).values()))


@dataclass(frozen=True)
class Both:
    """One model twice."""

    spec: ModelSpec
    model: Any
    network: Network


@pytest.fixture
def both() -> Callable[..., Both]:
    """A model with weights from a wide distribution, by torch and by numpy."""

    def make(encoder: str = "blind", scorer: str = "fp-cos", seed: int = 0, **options: Any) -> Both:
        spec = ModelSpec.of(
            encoder, scorer, BINS, BITS,
            encoder=ENCODER_OPTIONS[encoder] | options, scorer=SCORER_OPTIONS[scorer],
        )  # fmt: skip
        model = build(spec, seed=seed).eval()
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for each in model.parameters():  # norms and biases, too, which begin as ones and zeros
                each.add_(torch.randn(each.shape, generator=generator) * 0.2)
        arrays = {name: value.numpy() for name, value in model.state_dict().items()}
        return Both(spec, model, Network(spec, arrays))

    return make


def assert_close(got: npt.NDArray[Any], wanted: torch.Tensor) -> None:
    """Equal to 1e-5 of the largest entry, and of the same type and shape."""
    expected = wanted.detach().numpy()
    assert got.dtype == expected.dtype == np.float32
    assert got.shape == expected.shape
    scale = np.abs(expected).max(initial=1e-3)
    assert np.abs(got - expected).max(initial=0.0) <= 1e-5 * scale


@pytest.fixture
def assert_encodes_alike(both: Callable[..., Both]) -> Callable[..., None]:
    """An encoder reads the same off spectra of these sizes as torch's does."""

    def check(encoder: str, sizes: list[int], seed: int = 0, **options: Any) -> None:
        pair = both(encoder, "emb-cos", seed, **options)
        rng = np.random.default_rng(seed)
        spectra = random_spectra(rng, pair.network.reads, sizes)
        with torch.inference_mode():
            wanted = pair.model(as_tensors(spectra)).read
        assert_close(pair.network.read(spectra), wanted)

    return check


@pytest.fixture
def assert_scores_alike(both: Callable[..., Both]) -> Callable[..., None]:
    """A scorer scores lists of these lengths as torch's does."""

    def check(scorer: str, counts: list[int], seed: int = 0) -> None:
        pair = both("blind", scorer, seed)
        rng = np.random.default_rng(seed)
        width = BITS if pair.network.predicts_fingerprint else pair.spec.width
        read = rng.random((len(counts), width), dtype=np.float32)
        sizes = rng.integers(0, 20, sum(counts)).tolist()  # some candidates have no bit
        candidates = random_rows(rng, sizes, BITS, ones=True)
        with torch.inference_mode():
            wanted = pair.model.scorer(
                torch.from_numpy(read),
                SparseRows.from_csr(candidates, binary=True),
                torch.tensor(counts),
            )
        assert_close(pair.network.scores(read, candidates, np.array(counts)), wanted)

    return check
