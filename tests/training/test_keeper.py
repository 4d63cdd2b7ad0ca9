from pathlib import Path

import pytest

from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.scored import validation_means
from mzseek.losses import LOSSES
from mzseek.metrics import METRICS
from mzseek.metrics.definitions import Metric
from mzseek.runs.checkpoints import kept_model, load_weights
from mzseek.runs.run import Run
from mzseek.training.loop import watched_metric
from mzseek.training.train import train

HIT_RATES = {f"hit_rate@{k}/{setting}" for k in (1, 5, 20) for setting in ("mass", "formula")}
RANKINGS = {f"{name}/{by}" for name in HIT_RATES for by in ("tanimoto", "soft-tanimoto")}


def best_in(history: list[dict[str, float]], name: str) -> tuple[int, float]:
    """The first best row, by the metric's own direction."""
    sign = 1 if METRICS[name.partition("/")[0]].better == "higher" else -1
    row = max(history, key=lambda row: sign * row[name])
    return int(row["step"]), row[name]


@pytest.mark.parametrize("loss", ["bce", "fp-mlp", "emb-cos"])
def test_each_metric_keeps_the_weights_that_were_best_by_it(loss: str, trained) -> None:
    run: Run = trained(loss)
    expected = HIT_RATES | (RANKINGS | {"tanimoto"} if loss == "bce" else set())
    assert set(run.best) == expected
    files = {path.name for path in (run.folder / "checkpoints").iterdir()}
    assert files == {run.checkpoint(name).name for name in expected}
    for name in expected:
        step, value = best_in(run.history(), name)
        assert (run.best[name]["step"], run.best[name]["value"]) == (step, pytest.approx(value))
        assert load_weights(run.checkpoint(name))[2] == {"step": step}


@pytest.mark.parametrize("loss", ["iou", "emb-cos"])
def test_a_checkpoint_measures_what_it_was_kept_for(loss: str, trained, small: Prepared) -> None:
    from mzseek.training.train import predict_fold

    run: Run = trained(loss)
    assert len({facts["step"] for facts in run.best.values()}) > 1
    similarities = ("tanimoto", "soft-tanimoto") if loss == "iou" else ()
    for name, facts in run.best.items():
        network = kept_model(run, name, small)
        said = predict_fold(network, small, "val", similarities=similarities)
        means = validation_means(said, small)
        assert means[name] == pytest.approx(facts["value"], abs=1e-9)


def test_directions_are_the_metric_s_own(
    small: Prepared, small_options, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setitem(METRICS, "tanimoto", Metric("tanimoto", "lower", "T"))
    run = train(small, small_options("bce"), tmp_path / "run")
    values = [row["tanimoto"] for row in run.history()]
    assert run.best["tanimoto"]["value"] == min(values) < max(values)
    assert run.best["hit_rate@1/mass"]["value"] == max(r["hit_rate@1/mass"] for r in run.history())


def test_history_has_a_row_a_validation(trained) -> None:
    run: Run = trained("bce")
    rows = run.history()
    assert [row["step"] for row in rows] == [5, 10, 15, 20, 24]  # and the last step
    assert [row["epoch"] for row in rows] == [1.25, 2.5, 3.75, 5.0, 6.0]
    for row in rows:
        assert set(row) == {"step", "epoch", "loss", "tanimoto", "spread"} | HIT_RATES | RANKINGS
        assert all(0 <= row[name] <= 1 for name in HIT_RATES | {"tanimoto"})


def test_a_run_tells_how_it_goes(small: Prepared, small_options, tmp_path: Path) -> None:
    lines: list[str] = []
    steps: list[tuple[str, int, int]] = []
    train(
        small, small_options("emb-cos"), tmp_path / "run",
        say=lines.append, progress=lambda *facts: steps.append(facts),
    )  # fmt: skip
    assert lines[:2] == [
        "24 steps: warm-up 5 steps, validation every 5",
        "2 of 52 training spectra have no mass list with their molecule in it: left out",
    ]
    assert [line.partition(",")[0] for line in lines[2:]] == [
        f"step {step} of 24" for step in (5, 10, 15, 20, 24)
    ]
    assert "loss " in lines[2]
    assert "HR@1 " in lines[2]
    training = [done for stage, done, total in steps if stage == "training" and total == 24]
    assert training == list(range(1, 25))


@pytest.mark.parametrize("loss", ["bce", "emb-cos"])
@pytest.mark.parametrize("patience", [1, 3])
def test_patience_ends_a_run_that_no_longer_improves(
    loss: str, patience: int, small: Prepared, small_options, tmp_path: Path
) -> None:
    options = small_options(loss, lr=1e-12, validate_every=2, patience=patience)
    run = train(small, options, tmp_path / "run")
    # The first validation is the best so far, whatever it is; the others are the same.
    assert [row["step"] for row in run.history()] == [2 * n for n in range(1, patience + 2)]
    assert run.facts["steps"] == 2 * (patience + 1)
    assert run.finished


def test_patience_begins_anew_with_each_gain(
    small: Prepared, small_options, tmp_path: Path
) -> None:
    options = small_options("bce", validate_every=2, patience=2, epochs=12)
    run = train(small, options, tmp_path / "run")
    values = [row["tanimoto"] for row in run.history()]
    best, waited = -1.0, 0
    for place, value in enumerate(values):
        best, waited = (value, 0) if value > best else (best, waited + 1)
        assert (waited == 2) == (place == len(values) - 1 and run.facts["steps"] < 48)
    assert len(values) > 3


@pytest.mark.parametrize("loss", LOSSES)
def test_patience_watches_what_the_loss_stands_for(loss: str, small_options) -> None:
    name = watched_metric(small_options(loss), "formula")
    assert name == ("hit_rate@1/formula" if LOSSES[loss].reads_candidates else "tanimoto")


def test_a_collapsed_model_is_told_and_noted(
    small: Prepared, small_options, tmp_path: Path
) -> None:
    lines: list[str] = []
    run = train(small, small_options("iou"), tmp_path / "run", say=lines.append)
    told = [line for line in lines if line.startswith("warning: ")]
    assert run.history()[-1]["spread"] < 0.05
    assert told
    assert "iou has collapsed" in told[-1]
    assert [f"warning: {warning}" for warning in Run.open(run.folder).facts["warnings"]] == [
        told[-1]
    ]
    # Not in the first epochs, in which a model may well say the same of every spectrum.
    assert lines.index(told[0]) > next(i for i, line in enumerate(lines) if "epoch 1.2" in line)


def test_a_collapse_is_told_when_it_is_met_and_at_the_end(
    small: Prepared, small_options, tmp_path: Path
) -> None:
    lines: list[str] = []
    options = small_options("iou", epochs=20, validate_every=4)
    train(small, options, tmp_path / "run", say=lines.append)
    told = [place for place, line in enumerate(lines) if line.startswith("warning: ")]
    assert len(told) == 2
    assert told[-1] == len(lines) - 1
    assert told[0] < len(lines) - 5


def test_a_run_that_has_hardly_begun_is_told_so_at_its_end_alone(
    small: Prepared, small_options, tmp_path: Path
) -> None:
    lines: list[str] = []
    run = train(small, small_options("iou", epochs=4), tmp_path / "run", say=lines.append)
    assert [row["step"] for row in run.history() if row["spread"] < 0.05] == [10, 15, 16]
    [warning] = run.facts["warnings"]
    assert "after 16 steps, iou has hardly begun to learn" in warning
    assert [line for line in lines if line.startswith("warning: ")] == [f"warning: {warning}"]


def test_a_model_that_learns_is_not_warned_of(small: Prepared, small_options, tmp_path) -> None:
    options = small_options("bce", epochs=40, validate_every=60, dropout=0.0)
    run = train(small, options, tmp_path / "run")
    assert run.history()[-1]["spread"] > 0.05
    assert run.facts["warnings"] == []


@pytest.mark.parametrize("loss", ["iou", "bce"])
def test_a_control_is_not_said_to_collapse(loss: str, trained) -> None:
    run: Run = trained(loss, model="blind")
    assert run.history()[-1]["spread"] == pytest.approx(0, abs=1e-6)
    assert run.facts["warnings"] == []
