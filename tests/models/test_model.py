import numpy as np
import pytest
import torch

from mzseek.core.errors import ModelError
from mzseek.datasets.batch import BatchMaker
from mzseek.datasets.slices import Slices
from mzseek.models import ENCODERS, SCORERS, ModelSpec, build
from mzseek.models.model import TorchNetwork, arrays_of, as_arrays, model_of
from mzseek.tensors import PeakLists

from .conftest import flat_spec


def small(**changes) -> ModelSpec:
    return flat_spec(**{"bins": 40, "bits": 32, "width": 16, "projected": 16} | changes)


@pytest.mark.parametrize("scorer", SCORERS)
@pytest.mark.parametrize("blocks", [0, 2, 3])
def test_equals_the_dense_model(scorer, blocks, make_batch, assert_equals_twin) -> None:
    spec = small(scorer=scorer, blocks=blocks)
    outputs = ("embedding", "scores") if scorer.startswith("emb-") else ("logits", "scores")
    assert_equals_twin(spec, make_batch(spec, [1, 5, 3]), outputs=outputs)


@pytest.mark.slow
@pytest.mark.parametrize("scorer", SCORERS)
def test_equals_the_dense_model_at_the_paper_s_size(
    scorer: str, make_batch, assert_equals_twin
) -> None:
    spec = flat_spec(scorer=scorer)
    assert_equals_twin(spec, make_batch(spec, [20] * 4, entries=50), outputs=("scores",))


@pytest.mark.slow
def test_fingerprints_equal_the_dense_model_s_at_the_paper_s_size(
    make_batch, assert_equals_twin
) -> None:
    spec = flat_spec(scorer="fp-cos")
    assert_equals_twin(spec, make_batch(spec, [1] * 4, entries=50), outputs=("logits",))


@pytest.mark.parametrize("scorer", SCORERS)
def test_fingerprints_are_predicted_where_there_is_a_head(scorer: str, make_batch) -> None:
    spec = small(scorer=scorer)
    batch = make_batch(spec, [2, 3])
    output = build(spec, seed=0)(batch.spectra)
    assert output.embedding.shape == (2, 16)
    assert output.scores is None
    if scorer.startswith("fp-"):
        assert torch.equal(output.read, torch.sigmoid(output.logits))
        assert output.read.shape == (2, 32)
    else:
        assert output.logits is None
        assert output.read is output.embedding


@pytest.mark.parametrize("scorer", SCORERS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder_goes_with_every_scorer(encoder: str, scorer: str, make_batch) -> None:
    spec = small(encoder=encoder, scorer=scorer)
    batch = make_batch(spec, [1, 4, 2])
    spectra = batch.spectra
    if ENCODERS[encoder].reads == "peaks":
        real = torch.tensor([[True] * 4, [True, False, False, False], [True, True, False, False]])
        mz = torch.rand(3, 4) * 500 * real
        spectra = PeakLists(mz, torch.rand(3, 4) * real, real, torch.tensor([90.0, 500, 1000]))
    model = build(spec, seed=0)
    output = model(spectra, batch.candidates, batch.counts)
    assert output.scores.shape == (7,)
    output.scores.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_without_gradients_the_scores_are_the_same(make_batch) -> None:
    for scorer in SCORERS:
        spec = small(scorer=scorer)
        model, batch = build(spec, seed=0).eval(), make_batch(spec, [1, 4, 2])
        arguments = batch.spectra, batch.candidates, batch.counts
        with torch.no_grad():
            without = model(*arguments).scores
        assert torch.equal(without, model(*arguments).scores.detach())


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
