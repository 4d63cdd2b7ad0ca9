import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from mzseek.core import errors
from mzseek.core.errors import CacheError, RunError
from mzseek.database import build_database
from mzseek.database.sources import file_sources
from mzseek.datasets.extra_lists import add_negatives
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.scored import hit_rates
from mzseek.losses import LOSSES
from mzseek.models import ENCODERS
from mzseek.models.layers import threads_set
from mzseek.parallel import Channel, LocalEngine, engine_named
from mzseek.runs.checkpoints import best_model, load_weights
from mzseek.runs.predictions import Predictions
from mzseek.runs.run import Run
from mzseek.training.options import Options
from mzseek.training.train import predict_fold, random_fold, train, train_one, train_several

LISTWISE = [name for name in LOSSES if LOSSES[name].kind == "listwise"]


class Stop(Exception):
    """Stands for whatever ends a process."""


def stop_at(step: int) -> Callable[[str, int, int | None], None]:
    def progress(stage: str, done: int, total: int | None) -> None:
        if stage == "training" and done == step:
            raise Stop

    return progress


def contents(run: Run) -> dict[str, object]:
    """Every file of a run, by name; without what depends on time, and the order of names.

    Rankings by a similarity are no part of training: other tests may have asked for them.
    """
    return {
        str(path.relative_to(run.folder)): content(path)
        for path in sorted(run.folder.rglob("*"))
        if path.is_file() and not path.parent.name.endswith("tanimoto")
    }


def content(path: Path) -> object:
    if path.name == "run.json":
        return json.loads(path.read_text()) | {"seconds": None}
    if path.suffix == ".safetensors":
        with safe_open(path, framework="np") as file:
            names = sorted(file.keys())
            tensors = [(name, file.get_tensor(name).tobytes()) for name in names]
            return tensors, file.metadata()
    return path.read_bytes()


def assert_same(run: Run, other: Run) -> None:
    one, two = contents(run), contents(other)
    assert set(one) == set(two)
    assert [name for name in one if one[name] != two[name]] == []


def interrupted(prepared: Prepared, options: Options, out: Path, step: int) -> None:
    with pytest.raises(Stop):
        train(prepared, options, out, progress=stop_at(step))


# What a run leaves behind.


@pytest.mark.parametrize("loss", ["bce", "emb-cos"])
def test_a_run_folder_has_what_is_promised(loss: str, trained, small: Prepared) -> None:
    run = Run.open(trained(loss).folder)
    assert run.finished
    assert {path.name for path in run.folder.iterdir()} == {
        "run.json", "history.csv", "checkpoints", "predictions",
    }  # fmt: skip
    steps = {facts["step"] for facts in run.best.values()}
    assert {path.name for path in (run.folder / "predictions").iterdir()} == {
        f"step-{step}" for step in steps
    }
    for step in steps:
        for fold in ("val", "test"):
            found = Predictions.open(run.predictions(step, fold))
            assert found.queries.tolist() == small.in_fold(fold).tolist()
            assert set(found.lists) == {"mass", "formula"}
            assert (found.fingerprints is not None) == LOSSES[loss].predicts_fingerprint
    assert run.metadata["steps"] == 24
    assert run.metadata["seconds"] >= 0
    assert run.loss.options == LOSSES[loss].options()  # defaults are written out


def test_saved_predictions_are_those_of_their_checkpoint(trained, small: Prepared) -> None:
    run = trained("bce")
    for metric, facts in run.best.items():
        saved = Predictions.open(run.predictions(facts["step"], "test"))
        made = predict_fold(best_model(run, metric, small), small, "test")
        assert saved.fingerprints.tolist() == made.fingerprints.tolist()
        assert saved.lists["mass"].scores.tolist() == made.lists["mass"].scores.tolist()


# Every loss and every model.


@pytest.mark.parametrize(
    ("loss", "changes"),
    [*((name, {}) for name in LOSSES), *((n, {"pairwise": True}) for n in LISTWISE)],
)
def test_every_loss_goes_down_in_training(loss: str, changes: dict, trained) -> None:
    history = trained(loss, **changes).history()
    assert history[-1]["loss"] < history[0]["loss"]


@pytest.mark.slow
@pytest.mark.parametrize("model", ENCODERS)
def test_every_encoder_trains(model: str, trained) -> None:
    run = trained("emb-cos", model=model, epochs=3, validate_every=6)
    assert run.history()[-1]["loss"] < run.history()[0]["loss"]
    assert run.metadata["steps"] == 12


@pytest.mark.slow
def test_a_model_finds_molecules_that_it_was_trained_on(trained, small: Prepared) -> None:
    """Spectra of the small set tell their molecules' bits, which a model can learn."""
    run = trained("emb-cos", epochs=40, validate_every=200)
    network = best_model(run, "hit_rate@1/mass", small)
    rates, _ = hit_rates(predict_fold(network, small, "train").lists["mass"])
    assert rates["hit_rate@1"].mean() > 0.9


# Seeds.


@pytest.mark.parametrize("loss", ["bce", "emb-cos", "emb-mlp"])
def test_the_same_seed_gives_the_same_run_bit_by_bit(
    loss: str, trained, small: Prepared, small_options, tmp_path: Path
) -> None:
    torch.manual_seed(123)  # whatever was drawn before
    assert_same(train(small, small_options(loss), tmp_path / "run"), trained(loss))


def test_another_seed_gives_other_weights(trained) -> None:
    one, two = trained("bce"), trained("bce", seed=1)
    first, second = (load_file(run.checkpoint("tanimoto")) for run in (one, two))
    assert all((first[name] != second[name]).any() for name in first)


# Going on.


@pytest.mark.parametrize("loss", ["bce", "emb-cos"])
@pytest.mark.parametrize("step", [3, 5, 7, 24])
def test_a_run_goes_on_as_if_it_had_never_stopped(
    loss: str, step: int, trained, small: Prepared, small_options, tmp_path: Path
) -> None:
    interrupted(small, small_options(loss), tmp_path / "run", step)
    assert (tmp_path / "run" / "state").exists() == (step > 5)
    lines: list[str] = []
    run = train(small, small_options(loss), tmp_path / "run", resume=True, say=lines.append)
    reached = (step - 1) // 5 * 5
    assert (f"going on at step {reached}" in lines) == (reached > 0)
    assert_same(run, trained(loss))


def test_a_stopped_run_has_its_count_of_steps_and_seconds(
    small: Prepared, small_options, tmp_path: Path
) -> None:
    interrupted(small, small_options(), tmp_path / "run", 12)
    run = Run.open(tmp_path / "run")
    assert (run.metadata["status"], run.metadata["steps"]) == ("training", 10)
    run.metadata["seconds"] = 1000.0
    run.save()
    run = train(small, small_options(), tmp_path / "run", resume=True)
    assert run.metadata["steps"] == 24
    assert 1000 <= run.metadata["seconds"] < 1100


@pytest.mark.parametrize("where", ["predict_fold", "best_model"])
def test_a_run_stopped_while_predicting_goes_on(
    where: str, trained, small: Prepared, small_options, tmp_path: Path, monkeypatch
) -> None:
    def stop(*arguments: object, **options: object) -> None:
        raise Stop

    with monkeypatch.context() as patched:
        patched.setattr(f"mzseek.training.train.{where}", stop)
        with pytest.raises(Stop):
            train(small, small_options(), tmp_path / "run")
    assert not Run.open(tmp_path / "run").finished
    assert_same(train(small, small_options(), tmp_path / "run", resume=True), trained("bce"))


def test_a_run_that_patience_ended_stays_ended(
    small: Prepared, small_options, tmp_path: Path, monkeypatch
) -> None:
    options = small_options("bce", lr=1e-12, validate_every=2, patience=1)
    with monkeypatch.context() as patched:
        patched.setattr("mzseek.training.train.predict_fold", lambda *a, **o: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train(small, options, tmp_path / "run")
    run = train(small, options, tmp_path / "run", resume=True)
    assert [row["step"] for row in run.history()] == [2, 4]
    assert run.metadata["steps"] == 4


def test_going_on_with_a_run_that_has_ended_does_nothing(
    trained, small: Prepared, tmp_path: Path
) -> None:
    shutil.copytree(trained("bce").folder, tmp_path / "run")
    before = contents(Run.open(tmp_path / "run"))
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    lines: list[str] = []
    options = Options.of_run(trained("bce"))
    run = train(small, options, tmp_path / "run", resume=True, say=lines.append)
    assert contents(run) == before
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")} == times
    assert lines == [f"{tmp_path / 'run'} has ended already."]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lr", 1e-5), ("loss", "iou"), ("seed", 4), ("patience", 2), ("warmup", 500),
        ("validate_every", 1000), ("bias", "log-odds"),
    ],
)  # fmt: skip
def test_going_on_with_other_options_is_refused(
    name: str, value, trained, small: Prepared, small_options
) -> None:
    options = small_options(**{"loss": "bce", name: value})
    with pytest.raises(RunError, match=f"was begun with {name} .*, not {value}; resume it"):
        train(small, options, trained("bce").folder, resume=True)


def test_going_on_with_other_data_is_refused(
    trained, small: Prepared, small_options, tmp_path: Path
) -> None:
    shutil.copytree(small.folder, tmp_path / "other")
    other = Prepared.open(tmp_path / "other")
    other.manifest["key"] = "0" * 64
    with pytest.raises(RunError, match="was begun on other data"):
        train(other, small_options("bce"), trained("bce").folder, resume=True)


def test_resume_of_what_is_not_there_begins(
    small: Prepared, small_options, trained, tmp_path: Path
) -> None:
    assert_same(train(small, small_options(), tmp_path / "new", resume=True), trained("bce"))


# Real processes, really killed.

CLI = [sys.executable, "-c", "from mzseek.cli import main; main()"]


def command(loss: str, prepared: Prepared, out: Path) -> tuple[list[str], Options]:
    """A run of some seconds on the command line, and the same options in Python."""
    given = {
        "loss": loss, "epochs": 30, "lr": 3e-3, "warmup": 5, "batch_size": 16,
        "validate_every": 13, "threads": 1,
    }  # fmt: skip
    encoder = {"width": 32, "blocks": 1}
    named = (given | encoder).items()
    flags = [text for name, v in named for text in (f"--{name.replace('_', '-')}", str(v))]
    command = [*CLI, "train", str(prepared.folder), "--out", str(out), *flags]
    return command, Options.of(parts={"encoder": encoder}, **given)


def wait_for_state(process: subprocess.Popen, out: Path) -> None:
    until = time.monotonic() + 120
    while not (out / "state" / "state.json").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.005)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["bce", "emb-cos"])
def test_a_killed_run_ends_bit_by_bit_like_one_that_was_not(
    loss: str, small: Prepared, tmp_path: Path, monkeypatch
) -> None:
    arguments, options = command(loss, small, tmp_path / "killed")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_for_state(process, tmp_path / "killed")
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    run = Run.open(tmp_path / "killed")
    assert not run.finished
    assert run.metadata["steps"] < 120
    # Weights, moments and the random state of the last step are kept, to be compared.
    keep = SimpleNamespace(rmtree=lambda *arguments, **options: None)
    monkeypatch.setattr("mzseek.training.train.shutil", keep)
    resumed = train(small, options, tmp_path / "killed", resume=True)
    whole = train(small, options, tmp_path / "whole")
    assert resumed.metadata["steps"] == 120
    assert (whole.state / "state.safetensors").exists()
    assert_same(resumed, whole)


@pytest.mark.slow
def test_an_interrupted_run_says_so_and_goes_on(small: Prepared, tmp_path: Path) -> None:
    arguments, options = command("bce", small, tmp_path / "run")
    # Whoever runs the tests in the background may have had SIGINT ignored, which children inherit.
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:  # fmt: skip
        wait_for_state(process, tmp_path / "run")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert not Run.open(tmp_path / "run").finished
    assert train(small, options, tmp_path / "run", resume=True).finished


# What follows from the number of steps.

NOT_GIVEN = {"warmup": None, "validate_every": None, "bias": None}


@pytest.mark.slow
def test_what_was_not_given_follows_the_steps_and_is_written_and_told(
    small: Prepared, small_options, tmp_path: Path
) -> None:
    lines: list[str] = []
    options = small_options("bce", **NOT_GIVEN, epochs=20)
    run = train(small, options, tmp_path / "run", say=lines.append)
    assert lines[0] == ("80 steps: warm-up 8 steps, validation every 4, bias started at log-odds")
    written = json.loads((tmp_path / "run" / "run.json").read_text())["options"]
    assert {name: written[name] for name in NOT_GIVEN} == {
        "warmup": 8, "validate_every": 4, "bias": "log-odds",
    }  # fmt: skip
    assert [row["step"] for row in run.history()] == list(range(4, 81, 4))
    given = small_options("bce", warmup=8, validate_every=4, bias="log-odds", epochs=20)
    assert_same(train(small, given, tmp_path / "given"), run)


@pytest.mark.slow
def test_the_steps_are_those_of_the_spectra_that_have_lists(
    small: Prepared, small_options, tmp_path: Path
) -> None:
    """50 of the 52 training spectra have a list, which makes 25 batches of two, not 26."""
    for loss, steps in (("emb-cos", 50), ("bce", 52)):
        lines: list[str] = []
        options = small_options(loss, **NOT_GIVEN, epochs=2, batch_size=2)
        run = train(small, options, tmp_path / loss, say=lines.append)
        assert run.metadata["steps"] == steps
        assert lines[0].startswith(f"{steps} steps: warm-up 5 steps, validation every {steps // 4}")


def test_negatives_without_the_lists_that_they_are_measured_on_are_refused(
    small: Prepared, small_options, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(small.folder, tmp_path / "prepared"))
    for path in folder.glob("candidates.mass.*"):
        path.rename(path.with_name(path.name.replace(".mass.", ".hard-mass-8.")))
    manifest = folder / "manifest.json"
    mined = '"hard-mass-8": {"negatives": {"by": "mass"}, '
    written = manifest.read_text().replace('"mass": {', mined)
    manifest.write_text(written.replace("candidates.mass.", "candidates.hard-mass-8."))
    prepared = Prepared.open(folder)
    assert prepared.settings == ["formula", "hard-mass-8"]
    for loss in ("bce", "fp-cos", "emb-cos"):
        with pytest.raises(CacheError, match="has no candidates 'mass', it has: formula, hard"):
            train(prepared, small_options(loss, candidates="hard-mass-8"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


# What is refused.


@pytest.mark.parametrize("fold", ["train", "val"])
def test_a_set_without_a_fold_is_refused(
    fold: str, small: Prepared, small_options, tmp_path: Path, monkeypatch
) -> None:
    inside = Prepared.in_fold
    monkeypatch.setattr(
        Prepared, "in_fold", lambda self, name: inside(self, name)[: 0 if name == fold else None]
    )
    with pytest.raises(RunError, match=f"has no {fold} spectra"):
        train(small, small_options(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("loss", "model"), [("emb-cos", "mlp"), ("bce", "mlp"), ("bce", "random")])
def test_unknown_candidates_are_refused_before_anything_is_made(
    loss: str, model: str, small: Prepared, small_options, tmp_path: Path
) -> None:
    options = small_options(loss, model=model, candidates="hard")
    with pytest.raises(CacheError, match="has no candidates 'hard', it has: formula, mass"):
        train(small, options, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_threads_are_those_asked_for_and_then_those_before(
    small: Prepared, small_options, tmp_path: Path
) -> None:
    inside: list[int] = []
    with threads_set(2):
        run = train(
            small, small_options(epochs=1), tmp_path / "run",
            progress=lambda *facts: inside.append(torch.get_num_threads()),
        )  # fmt: skip
        assert set(inside) == {run.metadata["machine"]["threads"]} == {1}
        assert torch.get_num_threads() == 2
        interrupted(small, small_options(), tmp_path / "stopped", 3)
        assert torch.get_num_threads() == 2


# Controls.


def test_random_scores_hit_as_often_as_chance(small: Prepared) -> None:
    found, chance = [], []
    for seed in range(150):
        lists = random_fold(small, "test", seed).lists["mass"]
        rates, _ = hit_rates(lists)
        found.append(rates["hit_rate@1"])
        if not seed:
            even = hit_rates(type(lists)(**vars(lists) | {"scores": np.zeros_like(lists.scores)}))
            chance = even[0]["hit_rate@1"]
    rates = np.array(found)
    deviation = np.sqrt((chance * (1 - chance)).sum() / len(found)) / len(chance)
    assert abs(rates.mean() - chance.mean()) < 4 * deviation


def test_the_random_baseline_is_a_run_like_others(trained, small: Prepared) -> None:
    run = trained("bce", model="random")
    assert run.finished
    assert set(run.best) == {f"hit_rate@{k}/{s}" for k in (1, 5, 20) for s in ("mass", "formula")}
    saved = Predictions.open(run.predictions(0, "test"))
    again = random_fold(small, "test", 0)
    assert saved.fingerprints is None
    assert saved.lists["mass"].scores.tolist() == again.lists["mass"].scores.tolist()
    other = random_fold(small, "test", 1).lists["mass"].scores
    assert saved.lists["mass"].scores.tolist() != other.tolist()
    assert run.history()[0]["step"] == 0


@pytest.mark.parametrize("loss", ["emb-cos", "bce"])
def test_a_blind_model_scores_a_candidate_alike_whatever_the_spectrum(
    loss: str, trained, small: Prepared
) -> None:
    run = trained(loss, model="blind")
    saved = Predictions.open(run.predictions(run.best["hit_rate@1/mass"]["step"], "test"))
    scores: dict[int, list[float]] = {}
    for part in saved.lists.values():
        for candidate, score in zip(part.candidates, part.scores, strict=True):
            scores.setdefault(int(candidate), []).append(float(score))
    assert max(map(len, scores.values())) > 2
    assert all(max(each) - min(each) < 1e-6 for each in scores.values())
    assert len({round(each[0], 5) for each in scores.values()}) > 10


@pytest.mark.slow
def test_going_on_with_lists_that_were_mined_anew_is_refused(
    small: Prepared, small_options, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(small.folder, tmp_path / "prepared"))
    (tmp_path / "pool.smi").write_text("".join(f"{smiles}\n" for smiles in small.smiles))
    sources = file_sources([tmp_path / "pool.smi"])
    store = build_database(sources, tmp_path / "db", fingerprint="maccs", engine=LocalEngine(1))

    def mine(seed: int) -> Prepared:
        options = {"kind": "random", "keep": 4, "ppm": 1e5, "seed": seed}
        return add_negatives(Prepared.open(folder), store, engine=LocalEngine(1), **options)[0]

    prepared = mine(0)
    options = small_options("emb-cos", candidates="random-mass-4")
    run = train(prepared, options, tmp_path / "run")
    assert train(mine(0), options, tmp_path / "run", resume=True).identity == run.identity
    with pytest.raises(RunError, match=r"other random-mass-4 lists than .* they were drawn anew"):
        train(mine(1), options, tmp_path / "run", resume=True)
    other = train(Prepared.open(folder), options, tmp_path / "other")
    assert other.identity != run.identity


@pytest.mark.slow
@pytest.mark.parametrize("name", ["processes", "ray"])
def test_runs_in_parallel_are_what_each_would_be_alone(
    name: str, trained, small: Prepared, small_options, tmp_path: Path
) -> None:
    if name == "ray":
        pytest.importorskip("ray", reason="needs mzseek[cluster]")
    how = {"processes": 2} if name == "processes" else {"engine": engine_named(name, jobs=2)}
    options = {"bitwise": small_options("bce"), "vector, wise": small_options("iou")}
    steps: list[tuple[str, int, int]] = []
    lines: list[str] = []
    runs = train_several(
        small.folder, options, tmp_path, **how,
        progress=lambda *stage: steps.append(stage), say=lines.append,
    )  # fmt: skip
    assert set(runs) == set(options) == {path.name for path in tmp_path.iterdir()}
    assert {run for run, _, _ in steps} == set(options)
    assert {(run, 24, 24) for run in options} <= set(steps)
    assert any(line.startswith("vector, wise: warning: ") for line in lines)
    for run, alone in zip(runs.values(), (trained("bce"), trained("iou")), strict=True):
        assert run.finished
        assert run.best == alone.best
        weights = [load_weights(r.checkpoint("tanimoto"))[0] for r in (run, alone)]
        assert all((weights[0][key] == weights[1][key]).all() for key in weights[0])


class Told(Channel):
    """Keeps what a run tells."""

    is_elsewhere = False

    def __init__(self) -> None:
        self.heard: list[str] = []

    def progress(self, stage: str, done: int, total: int | None = None) -> None:
        self.heard.append(stage)

    def say(self, line: str) -> None:
        self.heard.append(line)


@pytest.mark.slow
def test_a_run_that_fails_stops_the_rest(small: Prepared, small_options, tmp_path: Path) -> None:
    wanted = {
        "long": small_options("bce", epochs=100_000),
        "wrong": small_options("bce", lr=1e36, warmup=0),
        "next": small_options("bce"),
    }
    with pytest.raises(RunError, match="try a smaller --lr"):
        train_several(small.folder, wanted, tmp_path, processes=2)
    assert not (tmp_path / "next").exists()
    assert not Run.open(tmp_path / "long").finished


@pytest.mark.parametrize("names", [("run", "x/../run"), ("run", "./run"), ("run", "link")])
def test_two_names_of_one_folder_are_refused(
    names: tuple[str, str], small: Prepared, small_options, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("run")
    wanted = dict.fromkeys(names, small_options("bce"))
    with pytest.raises(RunError, match="is the folder of two runs, 'run' and"):
        train_several(small.folder, wanted, tmp_path, processes=1)
    assert not (tmp_path / "run").exists()


def test_progress_is_told_by_the_whole_name(small: Prepared, small_options, tmp_path: Path) -> None:
    told = Told()
    for name in ("a/run", "b/run"):
        train_one((small.folder, small_options("iou", epochs=1), tmp_path / name, name), told)
    assert {line.partition(":")[0] for line in told.heard} == {"a/run", "b/run"}


@pytest.mark.parametrize("name", [n for n in dir(errors) if n.endswith("Error")])
def test_errors_come_back_from_another_process(name: str) -> None:
    kind = getattr(errors, name)
    error = (
        kind(os.devnull, "is no folder")
        if issubclass(kind, errors.InputError)
        else kind("is no folder")
    )
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is kind
    assert str(back) == str(error)
    assert vars(back) == vars(error)
