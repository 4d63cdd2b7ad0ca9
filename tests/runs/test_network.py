from pathlib import Path

import pytest

from mzseek.core.errors import ModelError
from mzseek.models import SCORERS, build
from mzseek.models.model import TorchNetwork, arrays_of
from mzseek.runs.checkpoints import load_weights, network_of, save_weights
from mzseek.runs.predictions import predict_fold

PATH = Path("w.safetensors")


def test_weights_of_another_model_are_refused_in_one_line(small_model, small_spec) -> None:
    for other in ("emb-cos", "fp-mlp"):
        with pytest.raises(ModelError) as refused:
            network_of(small_spec("bce"), arrays_of(small_model(other)), PATH)
        said = str(refused.value)
        assert said.startswith("w.safetensors: does not fit the model it describes (it ")
        assert "\n" not in said


@pytest.mark.parametrize("scorer", SCORERS)
def test_a_loaded_network_scores_as_the_saved_one(
    scorer: str, small, small_spec, small_model, tmp_path: Path
) -> None:
    model, path = small_model(scorer), tmp_path / "w.safetensors"
    save_weights(arrays_of(model), small_spec(scorer), path, {})
    arrays, spec, _ = load_weights(path)
    one = predict_fold(TorchNetwork(model), small, "val").lists["mass"].scores
    two = predict_fold(network_of(spec, arrays, path), small, "val").lists["mass"].scores
    assert one.tolist() == two.tolist()
    fresh = predict_fold(TorchNetwork(build(small_spec(scorer), seed=5)), small, "val")
    assert one.tolist() != fresh.lists["mass"].scores.tolist()
