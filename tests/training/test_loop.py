from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from mzseek import losses
from mzseek.core.errors import LossError, RunError
from mzseek.datasets.batch import BatchMaker
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.scored import validation_means
from mzseek.losses import LOSSES
from mzseek.metrics import METRICS
from mzseek.metrics.definitions import Metric
from mzseek.models import Output
from mzseek.runs.checkpoints import best_model, load_weights
from mzseek.runs.predictions import predict_fold
from mzseek.runs.run import Run
from mzseek.tensors import deferred
from mzseek.training.loop import (
    COLLAPSED_BELOW,
    Learner,
    Objective,
    checkpoint_warning,
    collapse_warning,
    prediction_spread,
    summed_rates,
    watched_metric,
)
from mzseek.training.optimizer import ClippedAdam
from mzseek.training.options import Options
from mzseek.training.state import TrainingOrder
from mzseek.training.train import train

COUNTS = torch.tensor([3, 1, 2])
LABELS = torch.tensor([False, True, False, True, True, False])
LISTWISE = [name for name in LOSSES if LOSSES[name].kind == "listwise"]


# The objective.


@pytest.fixture
def output() -> Output:
    torch.manual_seed(0)
    return Output(torch.randn(3, 4), torch.randn(3, 8), torch.randn(6))


@pytest.fixture
def target() -> torch.Tensor:
    torch.manual_seed(1)
    return (torch.rand(3, 8) < 0.4).float()


EXPECTED = {
    "bce": lambda o, t: losses.bce(o.logits, t),
    "focal": lambda o, t: losses.focal(o.logits, t, 1.5),
    "cosine": lambda o, t: losses.cosine(o.logits, t),
    "iou": lambda o, t: losses.iou(o.logits, t),
    "combined": lambda o, t: losses.combined(o.logits, t, o.scores, COUNTS, LABELS, 0.25, 0.3),
} | {name: lambda o, t: losses.contrastive(o.scores, COUNTS, LABELS, 0.25) for name in LISTWISE}


@pytest.mark.parametrize("name", LOSSES)
def test_each_loss_gets_its_own_options(name: str, output: Output, target) -> None:
    given = {"gamma": 1.5, "temperature": 0.25, "weight": 0.3}
    kind = LOSSES[name].options
    own = {field.name: given[field.name] for field in fields(kind) if field.name in given}
    found = Objective(LOSSES[name], kind(**own))(output, target, COUNTS, LABELS)
    assert found.shape == ()
    assert torch.equal(found, EXPECTED[name](output, target))
    if name in LISTWISE:
        paired = Objective(LOSSES[name], kind(**own, pairwise=True))
        wanted = losses.pairwise(output.scores, COUNTS, LABELS, 0.25)
        assert torch.equal(paired(output, target, COUNTS, LABELS), wanted)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_need_what_they_read(name: str, output: Output, target) -> None:
    loss = LOSSES[name]
    objective = Objective(loss, loss.options())
    if loss.reads_target:
        with pytest.raises(LossError, match=f"{name} needs a model that predicts a fingerprint"):
            objective(replace(output, logits=None), target, COUNTS, LABELS)
    if loss.reads_candidates:
        for arguments in (
            (replace(output, scores=None), target, COUNTS, LABELS),
            (output, target, None, LABELS),
            (output, target, COUNTS, None),
        ):
            with pytest.raises(LossError, match=f"{name} needs candidates"):
                objective(*arguments)


# A step.


@pytest.fixture
def make(small: Prepared, small_model, small_options):
    """A learner and a batch for it."""

    def learner(loss: str = "bce", **changes) -> tuple[Learner, object]:
        options = small_options(loss, **changes)
        settings = ("mass",) if options.loss_kind.reads_candidates else ()
        queries = small.in_fold("train")
        maker = BatchMaker(small, "bins", settings, queries)
        if settings:
            queries = maker.with_lists(queries, "mass", "fingerprint")
        return Learner(small_model(loss), options), maker.make(queries[:9])

    return learner


@pytest.mark.parametrize("loss", LOSSES)
def test_a_step_gives_a_loss_with_gradients(loss: str, make) -> None:
    learner, batch = make(loss)
    assert learner.setting == ("mass" if LOSSES[loss].reads_candidates else None)
    value = learner.loss(batch)
    assert value.shape == ()
    assert value.isfinite()
    value.backward()
    for name, parameter in learner.model.named_parameters():
        if LOSSES[loss].reads_candidates or name.startswith(("encoder", "head")):
            assert parameter.grad is not None or deferred(parameter) is not None, name


@pytest.mark.parametrize("loss", ["bce", "iou", "emb-cos", "fp-mlp"])
def test_in_bfloat16_only_the_encoder_is_less_precise(loss: str, make) -> None:
    (exact, batch), (half, _) = make(loss), make(loss, precision="bfloat16")
    for learner in (exact, half):
        learner.model.eval()  # no dropout
    values = [float(learner.loss(batch).detach()) for learner in (exact, half)]
    assert values[0] != values[1]
    assert values[1] == pytest.approx(values[0], rel=0.05)
    half.learn(batch)
    assert {weight.dtype for weight in half.model.parameters()} == {torch.float32}
    assert all(weight.isfinite().all() for weight in half.model.parameters())


@pytest.mark.parametrize(
    ("warmup", "step", "share"),
    [(500, 0, 1 / 500), (500, 249, 0.5), (500, 499, 1), (500, 9999, 1), (1, 0, 1), (0, 7, 1)],
)
def test_the_learning_rate_rises_over_the_warm_up(make, warmup: int, step: int, share) -> None:
    learner, batch = make(warmup=warmup, lr=2e-4)
    learner.step = step
    learner.learn(batch)
    assert [g["lr"] for g in learner.optimizer.param_groups] == [pytest.approx(2e-4 * share)]


def test_a_step_is_counted_and_moves_every_weight_that_it_reads(make) -> None:
    learner, batch = make(warmup=0)
    learner.step = 41  # a resumed run
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    learner.model.eval()  # no dropout
    expected = float(learner.loss(batch).detach())
    assert learner.learn(batch) == expected
    assert learner.step == 42
    after = learner.model.state_dict()
    assert all((after[name] != value).any() for name, value in before.items())


def test_a_step_is_independent_of_gradients_before_it(make) -> None:
    (first, batch), (second, _) = make("emb-cos"), make("emb-cos")
    for learner in (first, second):
        learner.model.eval()
    second.loss(batch).backward()  # left behind by whoever asked for the loss
    assert [first.learn(batch) for _ in range(2)] == [second.learn(batch) for _ in range(2)]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_is_one_line(make, value: float) -> None:
    learner, batch = make()
    with torch.no_grad():
        learner.model.head.bias.fill_(value)
    learner.step = 6
    with pytest.raises(RunError, match="at step 7; try a smaller --lr") as refused:
        learner.learn(batch)
    assert "\n" not in str(refused.value)


def test_a_batch_is_moved_only_where_it_has_to(make, monkeypatch) -> None:
    learner, batch = make("emb-cos")
    read = []
    monkeypatch.setattr(learner, "loss", lambda batch: read.append(batch) or torch.tensor(0.0))
    monkeypatch.setattr(torch.Tensor, "backward", lambda self: None)
    learner.learn(batch)
    learner.model.to("meta")
    learner.learn(batch)
    assert read[0] is batch
    assert read[1].lists["mass"].counts.device.type == "meta"
    assert read[1].spectra.indices.device.type == "meta"


# Collapse.


def test_spread_is_the_deviation_over_the_length_of_the_mean() -> None:
    rows = np.random.default_rng(0).random((40, 6))
    mean = rows.mean(axis=0)
    expected = np.sqrt(((rows - mean) ** 2).sum(1).mean()) / np.linalg.norm(mean)
    assert prediction_spread(rows) == pytest.approx(expected, rel=1e-5)
    assert prediction_spread(0.01 * rows) == pytest.approx(expected, rel=1e-4)  # of any scale
    alternating = np.zeros((30, 2))
    alternating[::3] = [1.0, 0.0]
    assert prediction_spread(alternating, max_rows=10) == 0  # every third
    assert prediction_spread(alternating, max_rows=30) > 1


CONSTANT = np.full((20, 8), 0.3, np.float16)
GIVEN = {"loss": "iou", "lr": 1e-4, "warmup": 500, "bias": "zero"}
ZERO = Options.of(**GIVEN)
LONG, SHORT = 5560, 190


@pytest.mark.parametrize("step", [1, SHORT, LONG])
def test_predictions_that_differ_or_are_too_few_are_no_collapse(step: int) -> None:
    for rows in (
        np.random.default_rng(0).random((20, 8)), None, np.empty((0, 4)), np.ones((1, 4))
    ):  # fmt: skip
        assert collapse_warning(rows, ZERO, step) is None


@pytest.mark.parametrize("warmup", [0, 1, 7, 40, 500])
@pytest.mark.parametrize("step", [0, 1, 6, 7, 40, 123])
def test_learning_rates_are_summed(warmup: int, step: int) -> None:
    rates = [2e-4 * (min(1, n / warmup) if warmup else 1) for n in range(1, step + 1)]
    assert summed_rates(Options.of(lr=2e-4, warmup=warmup), step) == pytest.approx(sum(rates))


@pytest.mark.parametrize(
    ("changes", "short", "long"),
    [
        ({}, "--bias log-odds and more --epochs", "--bias log-odds"),
        ({"loss": "bce"}, "--bias log-odds and more --epochs", "--bias log-odds"),
        ({"bias": "log-odds"}, "more --epochs", "a smaller --lr"),
        ({"loss": "emb-cos"}, "more --epochs", "a smaller --lr"),
        ({"loss": "fp-cos", "start_from": "runs/a"}, "more --epochs", "a smaller --lr"),
    ],
    ids=str,
)
def test_a_collapse_is_warned_of_with_a_remedy_that_can_be_taken(changes, short, long) -> None:
    options = Options.of(**GIVEN | changes)
    for step, remedy, reason in (
        (SHORT, short, f"after 190 steps, {options.loss.name} has hardly begun to learn"),
        (LONG, long, f"{options.loss.name} has collapsed"),
    ):
        warning = str(collapse_warning(CONSTANT, options, step))
        assert warning.endswith(f". Start again with {remedy}")
        assert reason in warning
        assert ("collapsed" in warning) == (step == LONG)
        assert f"{COLLAPSED_BELOW:g}" in warning
        assert "\n" not in warning


def test_a_best_checkpoint_that_had_collapsed_is_named() -> None:
    best = {"hit_rate@1/mass": {"spread": 0.9}, "tanimoto": {"spread": COLLAPSED_BELOW / 2}}
    assert "best by tanimoto is from before" in str(checkpoint_warning(best))
    assert checkpoint_warning({"tanimoto": {"spread": 0.9}}) is None


# Validation and checkpoints.

HIT_RATES = {f"hit_rate@{k}/{setting}" for k in (1, 5, 20) for setting in ("mass", "formula")}
RANKINGS = {f"{name}/{by}" for name in HIT_RATES for by in ("tanimoto", "soft-tanimoto")}


@pytest.mark.parametrize("loss", ["bce", "fp-mlp", "emb-cos"])
def test_each_metric_has_the_weights_that_were_best_by_it(loss: str, trained) -> None:
    run: Run = trained(loss)
    expected = HIT_RATES | (RANKINGS | {"tanimoto"} if loss == "bce" else set())
    assert set(run.best) == expected
    files = {path.name for path in (run.folder / "checkpoints").iterdir()}
    assert files == {run.checkpoint(name).name for name in expected}
    rows = run.history()
    assert [row["step"] for row in rows] == [5, 10, 15, 20, 24]  # and the last step
    assert [row["epoch"] for row in rows] == [1.25, 2.5, 3.75, 5.0, 6.0]
    assert set(rows[0]) == {"step", "epoch", "loss", "spread"} | expected
    for name in expected:
        assert all(0 <= row[name] <= 1 for row in rows)
        best = max(rows, key=lambda row: row[name])  # the first of equal ones
        assert run.best[name]["step"] == best["step"]
        assert run.best[name]["value"] == pytest.approx(best[name])
        assert load_weights(run.checkpoint(name))[2] == {"step": best["step"]}


@pytest.mark.parametrize("loss", ["iou", "emb-cos"])
def test_a_checkpoint_measures_what_it_was_saved_for(loss: str, trained, small: Prepared) -> None:
    run: Run = trained(loss)
    assert len({best["step"] for best in run.best.values()}) > 1
    similarities = ("tanimoto", "soft-tanimoto") if loss == "iou" else ()
    means: dict[int, dict[str, float]] = {}
    for name, best in run.best.items():
        if best["step"] not in means:
            network = best_model(run, name, small)
            predictions = predict_fold(network, small, "val", similarities=similarities)
            means[best["step"]] = validation_means(predictions, small)
        assert means[best["step"]][name] == pytest.approx(best["value"], abs=1e-9)


def test_directions_are_the_metric_s_own(
    small: Prepared, small_options, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setitem(METRICS, "tanimoto", Metric("tanimoto", "lower", "T"))
    run = train(small, small_options("bce"), tmp_path / "run")
    values = [row["tanimoto"] for row in run.history()]
    assert run.best["tanimoto"]["value"] == min(values) < max(values)
    assert run.best["hit_rate@1/mass"]["value"] == max(r["hit_rate@1/mass"] for r in run.history())


def test_a_run_reports_its_progress(small: Prepared, small_options, tmp_path: Path) -> None:
    lines: list[str] = []
    steps: list[tuple[str, int, int]] = []
    train(
        small, small_options("emb-cos"), tmp_path / "run",
        say=lines.append, progress=lambda *stage: steps.append(stage),
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


@pytest.mark.parametrize(("loss", "patience"), [("bce", 1), ("emb-cos", 3)])
def test_patience_ends_a_run_that_no_longer_improves(
    loss: str, patience: int, small: Prepared, small_options, tmp_path: Path
) -> None:
    options = small_options(loss, lr=1e-12, validate_every=2, patience=patience)
    run = train(small, options, tmp_path / "run")
    # The first validation is the best so far, whatever it is; the others are the same.
    assert [row["step"] for row in run.history()] == [2 * n for n in range(1, patience + 2)]
    assert run.metadata["steps"] == 2 * (patience + 1)
    assert run.finished


@pytest.mark.parametrize("loss", LOSSES)
def test_patience_watches_what_the_loss_stands_for(loss: str, small_options) -> None:
    name = watched_metric(small_options(loss), "formula")
    assert name == ("hit_rate@1/formula" if LOSSES[loss].reads_candidates else "tanimoto")


@pytest.mark.slow
def test_a_collapse_is_warned_of_when_it_is_met_and_at_the_end(
    small: Prepared, small_options, tmp_path: Path
) -> None:
    lines: list[str] = []
    options = small_options("iou", epochs=20, validate_every=4)
    train(small, options, tmp_path / "run", say=lines.append)
    warnings = [index for index, line in enumerate(lines) if line.startswith("warning: ")]
    assert len(warnings) == 2
    assert warnings[-1] == len(lines) - 1
    # Not in the first epochs, in which a model may well say the same of every spectrum.
    early = next(index for index, line in enumerate(lines) if "epoch 1.0" in line)
    assert early < warnings[0] < len(lines) - 5
    run = train(small, small_options("iou"), tmp_path / "short", say=lines.append)
    assert run.history()[-1]["spread"] < COLLAPSED_BELOW
    [warning] = Run.open(run.folder).metadata["warnings"]
    assert lines[-1] == f"warning: {warning}"
    assert "iou has collapsed" in warning


def test_a_run_that_has_hardly_begun_is_warned_of_at_its_end_alone(
    small: Prepared, small_options, tmp_path: Path
) -> None:
    lines: list[str] = []
    run = train(small, small_options("iou", epochs=4), tmp_path / "run", say=lines.append)
    assert [row["step"] for row in run.history() if row["spread"] < 0.05] == [10, 15, 16]
    [warning] = run.metadata["warnings"]
    assert "after 16 steps, iou has hardly begun to learn" in warning
    assert [line for line in lines if line.startswith("warning: ")] == [f"warning: {warning}"]


@pytest.mark.slow
def test_models_that_learn_and_controls_are_not_warned_of(
    small: Prepared, small_options, trained, tmp_path: Path
) -> None:
    options = small_options("bce", epochs=40, validate_every=60, dropout=0.0)
    run = train(small, options, tmp_path / "run")
    assert run.history()[-1]["spread"] > COLLAPSED_BELOW
    assert run.metadata["warnings"] == []
    for loss in ("iou", "bce"):
        control: Run = trained(loss, model="blind")
        assert control.history()[-1]["spread"] == pytest.approx(0, abs=1e-6)
        assert control.metadata["warnings"] == []


# The loop.


@pytest.mark.parametrize("loss", ["bce", "emb-cos"])
def test_each_step_learns_from_its_batch_at_its_rate(
    loss: str, small: Prepared, small_set, small_options, tmp_path: Path, monkeypatch
) -> None:
    """With candidates where the loss reads them, and without the spectra that have none."""
    seen, learn = [], Learner.learn
    rates, step = [], ClippedAdam.step
    monkeypatch.setattr(
        Learner, "learn", lambda self, batch: seen.append(batch) or learn(self, batch)
    )
    monkeypatch.setattr(
        ClippedAdam,
        "step",
        lambda self, closure=None: rates.append(self.param_groups[0]["lr"]) or step(self, closure),
    )
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    options = small_options(loss, epochs=2, seed=3, warmup=5, lr=1e-3)
    train(small, options, tmp_path / "run")
    assert torch.equal(torch.rand(3), expected)  # the caller's random numbers
    usable = small.in_fold("train")
    if loss == "emb-cos":
        listed = small_set.lists["mass"]
        named = [small_set.smiles[small.identifiers[query]] for query in usable]
        usable = usable[[smiles in listed for smiles in named]]
    order = TrainingOrder(usable, 16, 2, 3)
    assert [batch.queries.tolist() for batch in seen] == [q.tolist() for q in order.from_step(0)]
    assert all(set(batch.lists) == ({"mass"} if loss == "emb-cos" else set()) for batch in seen)
    assert rates == pytest.approx([1e-3 * min(1, n / 5) for n in range(1, len(seen) + 1)])
