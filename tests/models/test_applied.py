import numpy as np
import pytest
import torch

from mzseek.core.errors import ModelError
from mzseek.datasets.batch import BatchMaker
from mzseek.datasets.slices import Slices
from mzseek.models import ENCODERS, SCORERS
from mzseek.models.model import TorchNetwork, arrays_of, as_arrays, model_of


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_arrays_in_and_out_say_what_tensors_say(
    encoder: str, scorer: str, small, small_model
) -> None:
    model = small_model(scorer, model=encoder)
    queries = small.in_fold("val")
    slices = Slices(small, ("mass",), queries)
    network = TorchNetwork(model)
    spectra = slices.bins(queries).csr() if network.reads == "bins" else slices.peaks(queries)
    lists = slices.lists(queries, "mass")
    read = network.read(spectra)
    scores = network.scores(read, lists.rows.csr(), lists.counts)
    batch = BatchMaker(small, network.reads, ("mass",), queries).make(queries)
    with torch.no_grad():
        part = batch.lists["mass"]
        wanted = model.eval()(batch.spectra, part.rows, part.counts)
    assert np.array_equal(read, wanted.read.detach().numpy())
    assert np.array_equal(scores, wanted.scores.numpy())
    assert network.predicts_fingerprint == (wanted.logits is not None)


def test_a_model_comes_back_from_its_arrays(small_model, small_spec) -> None:
    model = small_model("emb-mlp")
    arrays = arrays_of(model)
    state = torch.get_rng_state()
    found = model_of(small_spec("emb-mlp"), arrays)
    assert torch.equal(torch.get_rng_state(), state)
    assert not found.training
    assert all(np.array_equal(value, arrays[name]) for name, value in arrays_of(found).items())
    for name, value in found.state_dict().items():  # its own, not the arrays
        value.fill_(7)
        assert not (arrays[name] == 7).any()


def test_other_weights_are_refused_as_without_torch(small_model, small_spec) -> None:
    arrays = arrays_of(small_model())
    name = "head.bias"
    bad = {
        "it lacks head.bias": {key: value for key, value in arrays.items() if key != name},
        "it holds more": arrays | {"more": np.ones(1, np.float32)},
        "head.bias is int64 of": arrays | {name: arrays[name].astype(np.int64)},
        "head.bias is float32 of (3,), expected numbers of": arrays
        | {name: np.ones(3, np.float32)},
    }
    for message, weights in bad.items():
        with pytest.raises(ModelError) as refused:
            model_of(small_spec(), weights)
        assert str(refused.value).startswith(message)


def test_tensors_that_are_views_become_whole_arrays() -> None:
    found = as_arrays({"x": torch.arange(6.0).reshape(2, 3).T})
    assert found["x"].flags["C_CONTIGUOUS"]
    assert found["x"].tolist() == [[0, 3], [1, 4], [2, 5]]
