from pathlib import Path

import numpy as np
import pytest

from mzseek.errors import ModelError
from mzseek.models import SCORERS, build
from mzseek.models.applied import TorchNetwork, arrays_of
from mzseek.networks import Network
from mzseek.runs.checkpoint import load_weights, save_weights
from mzseek.runs.network import network_of
from mzseek.runs.predictions import predict_fold

PATH = Path("w.safetensors")


@pytest.fixture(params=["torch", "numpy"])
def library(request, monkeypatch) -> str:
    """With torch, and as if it were not installed."""
    if request.param == "numpy":
        monkeypatch.setattr("mzseek.runs.network.has", lambda package: False)
    return request.param


def test_torch_is_taken_where_it_is_installed(library: str, small_model, small_spec) -> None:
    network = network_of(small_spec(), arrays_of(small_model()), PATH)
    assert isinstance(network, {"torch": TorchNetwork, "numpy": Network}[library])
    assert network.made_with.startswith(f"{library} ")


def test_weights_of_another_model_are_refused_in_one_line(
    library: str, small_model, small_spec
) -> None:
    for other in ("emb-cos", "fp-mlp"):
        with pytest.raises(ModelError) as refused:
            network_of(small_spec("bce"), arrays_of(small_model(other)), PATH)
        said = str(refused.value)
        assert said.startswith("w.safetensors: does not fit the model it describes (it ")
        assert "\n" not in said


@pytest.mark.parametrize("scorer", SCORERS)
def test_a_loaded_network_says_what_the_saved_one_said(
    scorer: str, small, small_spec, small_model, tmp_path: Path
) -> None:
    model, path = small_model(scorer), tmp_path / "w.safetensors"
    save_weights(arrays_of(model), small_spec(scorer), path, {})
    arrays, spec, _ = load_weights(path)
    one = predict_fold(TorchNetwork(model), small, "val").lists["mass"].scores
    two = predict_fold(network_of(spec, arrays, path), small, "val").lists["mass"].scores
    assert one.tolist() == two.tolist()
    three = predict_fold(Network(spec, arrays), small, "val").lists["mass"].scores
    assert np.abs(three - one).max() <= 1e-5 * np.abs(one).max()
    fresh = predict_fold(TorchNetwork(build(small_spec(scorer), seed=5)), small, "val")
    assert one.tolist() != fresh.lists["mass"].scores.tolist()
