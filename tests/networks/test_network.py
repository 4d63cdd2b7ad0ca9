import numpy as np
import pytest
import torch

from mzseek.errors import ModelError
from mzseek.models import ENCODERS, SCORERS, ModelSpec
from mzseek.networks import Network
from mzseek.registry import Part
from mzseek.tensors import SparseRows

from .conftest import BITS, Both, as_tensors, assert_close, random_rows, random_spectra


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_every_encoder_with_every_scorer_says_what_torch_says(both, encoder, scorer) -> None:
    pair: Both = both(encoder, scorer)
    rng = np.random.default_rng(0)
    counts = [3, 0, 1, 12]
    spectra = random_spectra(rng, pair.network.reads, [9, 0, 1, 30])
    candidates = random_rows(rng, rng.integers(0, 20, sum(counts)).tolist(), BITS, ones=True)
    rows = SparseRows.from_csr(candidates, binary=True)
    with torch.inference_mode():
        wanted = pair.model(as_tensors(spectra), rows, torch.tensor(counts))
    assert pair.network.predicts_fingerprint == (wanted.logits is not None)
    read = pair.network.read(spectra)
    assert_close(read, wanted.read)
    assert_close(pair.network.scores(read, candidates, np.array(counts)), wanted.scores)


def arrays_of(pair: Both) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in pair.model.state_dict().items()}


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_every_weight_is_checked(both, encoder, scorer) -> None:
    pair: Both = both(encoder, scorer)
    arrays = arrays_of(pair)
    for name in arrays:
        without = {other: value for other, value in arrays.items() if other != name}
        with pytest.raises(ModelError, match=f"it lacks {name}"):
            Network(pair.spec, without)
        with pytest.raises(ModelError, match=f"{name} is float32 of .*, expected numbers of"):
            Network(pair.spec, arrays | {name: np.ones((2, 2, 2), np.float32)})
    with pytest.raises(ModelError, match="it holds another"):
        Network(pair.spec, arrays | {"another": np.ones(1)})


def test_a_part_that_only_torch_has_is_named_with_what_to_do(both) -> None:
    pair: Both = both()
    unknown = ModelSpec(Part("mine"), pair.spec.scorer, pair.spec.bins, pair.spec.bits)
    with pytest.raises(ModelError, match=r"^mine is applied by torch alone: pip install 'mzseek\["):
        Network(unknown, arrays_of(pair))
