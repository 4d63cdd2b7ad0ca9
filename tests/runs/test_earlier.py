"""Runs of the first format: `format-1` holds one that had ended, and one that was interrupted.

They were made on the small set by the version before parts had options of their own; `weights` has
the checkpoints of both, by step.
"""

import json
import shutil
from pathlib import Path

import pytest

from mzseek.errors import RunError
from mzseek.evaluation.evaluate import evaluate
from mzseek.models import ModelSpec
from mzseek.prepared import Prepared
from mzseek.runs.earlier import FORMAT, as_now
from mzseek.runs.kept import kept_model
from mzseek.runs.run import Run
from mzseek.training.plan.options import Options
from mzseek.training.train import train

KEPT = Path(__file__).parent / "format-1"
ASKED = Options.of(
    "combined",
    parts={
        "encoder": {"width": 2, "blocks": 1, "dropout": 0.125},
        "loss": {"weight": 0.25, "temperature": 0.125},
    },
    epochs=4, batch_size=16, lr=1e-2, warmup=5, validate_every=8, bias="zero", threads=1, seed=11,
)  # fmt: skip


def expected() -> dict:
    return json.loads((KEPT / "expected.json").read_text())


def taken_up(name: str, small: Prepared, folder: Path) -> Run:
    """A copy of a kept run, as if its data were the small set as it is prepared now."""
    shutil.copytree(KEPT / name, folder)
    facts = json.loads((folder / "run.json").read_text())
    facts["data"] |= {"folder": str(small.folder), "key": small.manifest["key"]}
    (folder / "run.json").write_text(json.dumps(facts))
    (folder / "checkpoints").mkdir()
    run = Run.open(folder)
    for metric, best in run.best.items():
        shutil.copy(KEPT / "weights" / f"step-{best['step']}.safetensors", run.checkpoint(metric))
    state = folder / "state" / "state.json"
    if state.exists():  # it names its run by the key of the data
        facts = json.loads(state.read_text())
        state.write_text(json.dumps(facts | {"run": run.identity}))
    return run


def test_it_opens_and_says_what_it_is() -> None:
    run = Run.open(KEPT / "finished")
    assert run.facts["format_version"] == FORMAT
    assert Options.of_run(run) == ASKED
    assert (run.loss, run.encoder, run.scorer) == (ASKED.loss, ASKED.encoder, ASKED.scorer)
    assert (run.candidates, run.seed, run.finished) == ("mass", 11, True)


def test_its_identity_is_what_it_was() -> None:
    """Predictions and states carry it: with another they would not be taken for the run's own."""
    assert Run.open(KEPT / "finished").identity == expected()["identity"]


def test_it_evaluates_to_the_same_numbers(small: Prepared, tmp_path: Path) -> None:
    run = taken_up("finished", small, tmp_path / "run")
    found = evaluate(run).to_dict()
    assert {name: found[name] for name in expected()["evaluation"]} == pytest.approx(
        expected()["evaluation"], abs=1e-5
    )
    assert run.model == ModelSpec(ASKED.encoder, ASKED.scorer, 1005, 167)
    kept_model(run, "tanimoto", small)  # its weights are its own


def test_it_goes_on_to_the_same_end(small: Prepared, tmp_path: Path) -> None:
    taken_up("begun", small, tmp_path / "run")
    whole = Run.open(KEPT / "finished")
    run = train(small, ASKED, tmp_path / "run", resume=True)
    assert run.finished
    assert run.facts["format_version"] == FORMAT  # what began in one format ends in it
    for then, now in zip(whole.history(), run.history(), strict=True):
        assert now == pytest.approx(then, abs=1e-4)


def test_other_options_are_refused(small: Prepared, tmp_path: Path) -> None:
    taken_up("begun", small, tmp_path / "run")
    parts = {"encoder": {"width": 2, "blocks": 1, "dropout": 0.125}}
    with pytest.raises(RunError, match=r"was begun with loss\.temperature 0\.125, not 0\.0039"):
        train(small, Options.of("combined", parts=parts), tmp_path / "run", resume=True)


def test_without_a_checkpoint_the_sizes_of_its_model_are_not_known(tmp_path: Path) -> None:
    shutil.copytree(KEPT / "begun", tmp_path / "run")
    run = Run.open(tmp_path / "run")
    run.facts["best"] = {}
    with pytest.raises(RunError, match="has no checkpoint yet"):
        _ = run.model


def test_numbers_that_do_not_apply_are_left_out() -> None:
    found = as_now({"loss": "bce", "model": "deepsets", "gamma": 2.0, "blocks": 3}, "run.json")
    assert found["loss"] == {"name": "bce", "options": {}}
    assert found["model"]["encoder"] == {"name": "deepsets", "options": {}}
    assert found["options"] == {"candidates": "mass", "seed": 0}
