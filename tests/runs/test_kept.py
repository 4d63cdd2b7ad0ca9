import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from mzseek.core.errors import MzseekError, RunError
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.scored import Scoring
from mzseek.models.model import arrays_of
from mzseek.runs.checkpoints import digest, kept_model, model_for
from mzseek.runs.run import Run
from mzseek.training.train import train

METRIC = "tanimoto"


@pytest.fixture
def run(trained, tmp_path: Path) -> Run:
    """A run of one's own, without predictions."""
    shutil.copytree(trained("bce").folder, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "predictions")
    return Run.open(tmp_path / "run")


def take_from(other: Run, run: Run) -> None:
    """Put the checkpoints of one run into the place of another's."""
    shutil.rmtree(run.folder / "checkpoints")
    shutil.copytree(other.folder / "checkpoints", run.folder / "checkpoints")


def test_a_runs_own_model_is_read(run: Run, small: Prepared) -> None:
    network = kept_model(run, METRIC, small)
    expected = load_file(run.checkpoint(METRIC))
    found = arrays_of(network.model)
    assert found.keys() == expected.keys()
    assert all(np.array_equal(value, expected[name]) for name, value in found.items())
    assert run.facts["checkpoints"][METRIC] == digest(expected)
    assert set(run.facts["checkpoints"]) == set(run.best)
    assert model_for(run, small).width == 32


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"width": 48}, "is of another model (encoder.width 48, and "),
        ({"loss": "fp-cos", "blocks": 2}, "is of another model (encoder.blocks 2, and "),
        ({"dropout": 0.5}, "is of another model (encoder.dropout 0.5, and "),
        ({"model": "deepsets"}, "is of another model (encoder deepsets, and "),
        ({"seed": 1, "validate_every": 7}, "holds weights of step"),
        ({"seed": 1}, "holds other weights than "),
    ],
    ids=str,
)
@pytest.mark.parametrize("status", ["finished", "training"])
def test_a_checkpoint_of_another_run_is_refused_for_what_it_is(
    changes: dict, why: str, status: str, trained, run: Run, small: Prepared
) -> None:
    other = trained(**changes)
    take_from(other, run)
    run.facts["status"] = status
    for metric in run.best:  # as if it were of the same step, where the step is not the point
        run.facts["best"][metric]["step"] = other.best[metric]["step"] + ("step" in why)
    for action in (lambda: kept_model(run, METRIC, small), lambda: evaluate(run, Scoring())):
        with pytest.raises(RunError) as refused:
            action()
        said = str(refused.value)
        assert why in said
        assert ("being trained" in said) == (status == "training" and "another model" not in why)
    assert not (run.folder / "predictions").exists()


def test_a_changed_weight_is_noticed(run: Run, small: Prepared) -> None:
    for path in (run.folder / "checkpoints").iterdir():
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    with pytest.raises(RunError, match=r"holds other weights than .* it is another run's, or was"):
        kept_model(run, METRIC, small)


def test_a_first_stage_with_the_checkpoint_of_another_is_refused(
    trained, run: Run, small: Prepared, small_options, tmp_path: Path
) -> None:
    take_from(trained(seed=1), run)
    options = small_options("emb-cos", start_from=str(run.folder))
    with pytest.raises(RunError, match="is another run's, or was changed"):
        train(small, options, tmp_path / "second")
    assert not (tmp_path / "second").exists()


ABSURD = {
    "encoder.options.width": 10**9,
    "encoder.options.blocks": 10**12,
    "encoder.options.dropout": 7,
    "encoder.name": "gpt",
    "encoder": "gpt",
    "encoder.options": {"depth": 3},
    "scorer.name": "none",
    "scorer.options": {"projected": "many"},
    "scorer": None,
    "bins": 2**62,
    "bits": -1,
}


@pytest.mark.parametrize("name", ABSURD)
def test_a_description_beyond_reason_is_refused_without_room_being_made(
    name: str, run: Run, small: Prepared
) -> None:
    path = run.checkpoint(METRIC)
    with safe_open(path, "np") as file:
        metadata = file.metadata()
    described = place = json.loads(metadata["model"])
    *folders, last = name.split(".")
    for folder in folders:
        place = place[folder]
    place[last] = ABSURD[name]
    tensors = load_file(path)
    save_file(tensors, path, metadata | {"model": json.dumps(described)})
    with pytest.raises(MzseekError) as refused:
        kept_model(run, METRIC, small)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[]", "1" * 5_000, '{"width": 1}'])
@pytest.mark.parametrize("part", ["model", "facts"])
def test_damaged_descriptions_are_one_line(text: str, part: str, run: Run, small: Prepared) -> None:
    path = run.checkpoint(METRIC)
    with safe_open(path, "np") as file:
        metadata = file.metadata()
    tensors = load_file(path)
    save_file(tensors, path, metadata | {part: text})
    with pytest.raises(MzseekError) as refused:
        kept_model(run, METRIC, small)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
