import pytest
import torch

from mzseek.core.errors import RunError
from mzseek.datasets.batch import BatchMaker
from mzseek.datasets.prepared import Prepared
from mzseek.losses import LOSSES
from mzseek.tensors import deferred
from mzseek.training.loop import Learner


@pytest.fixture
def make(small: Prepared, small_model, small_options):
    """A learner and a batch for it."""

    def learner(loss: str = "bce", **changes) -> tuple[Learner, object]:
        options = small_options(loss, **changes)
        model = small_model(loss)
        settings = ("mass",) if options.facts.reads_candidates else ()
        queries = small.in_fold("train")
        maker = BatchMaker(small, "bins", settings, queries)
        if settings:
            queries = maker.with_lists(queries, "mass", "fingerprint")
        return Learner(model, options), maker.make(queries[:9])

    return learner


@pytest.mark.parametrize("loss", LOSSES)
def test_a_step_gives_a_loss_with_gradients(loss: str, make) -> None:
    learner, batch = make(loss)
    value = learner.loss(batch)
    assert value.shape == ()
    assert value.isfinite()
    value.backward()
    for name, parameter in learner.model.named_parameters():
        if LOSSES[loss].reads_candidates or name.startswith(("encoder", "head")):
            given = parameter.grad is not None or deferred(parameter) is not None
            assert given, name


@pytest.mark.parametrize("loss", LOSSES)
def test_lists_are_read_by_the_losses_that_need_them(loss: str, make) -> None:
    learner, batch = make(loss)
    assert learner.setting == ("mass" if LOSSES[loss].reads_candidates else None)
    assert set(batch.lists) == ({"mass"} if learner.setting else set())


@pytest.mark.parametrize(
    ("warmup", "step", "share"),
    [(500, 0, 1 / 500), (500, 249, 0.5), (500, 499, 1), (500, 500, 1), (500, 9999, 1),
     (1, 0, 1), (0, 0, 1), (0, 7, 1)],
)  # fmt: skip
def test_the_learning_rate_rises_over_the_warm_up(make, warmup: int, step: int, share) -> None:
    learner, batch = make(warmup=warmup, lr=2e-4)
    learner.step = step
    learner.learn(batch)
    assert [g["lr"] for g in learner.optimizer.param_groups] == [pytest.approx(2e-4 * share)]


def test_a_step_is_counted_and_moves_every_weight_that_it_reads(make) -> None:
    learner, batch = make(warmup=0)
    learner.step = 41  # a run that goes on
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    learner.model.eval()  # no dropout
    expected = float(learner.loss(batch).detach())
    assert learner.learn(batch) == expected
    assert learner.step == 42
    after = learner.model.state_dict()
    assert all((after[name] != value).any() for name, value in before.items())


def test_a_step_knows_nothing_of_gradients_before_it(make) -> None:
    (one, batch), (two, _) = make("emb-cos"), make("emb-cos")
    for learner in (one, two):
        learner.model.eval()
    two.loss(batch).backward()  # left behind by whoever asked for the loss
    assert [learner.learn(batch) for learner in (one, one)] == [
        learner.learn(batch) for learner in (two, two)
    ]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_is_one_line(make, value: float) -> None:
    learner, batch = make()
    with torch.no_grad():
        learner.model.head.bias.fill_(value)
    learner.step = 6
    with pytest.raises(RunError, match="at step 7; try a smaller --lr") as refused:
        learner.learn(batch)
    assert "\n" not in str(refused.value)


def test_clip_and_learning_rate_are_those_of_the_options(make) -> None:
    learner, _ = make(clip=0.25, lr=5e-4)
    assert (learner.optimizer.clip, learner.optimizer.defaults["lr"]) == (0.25, 5e-4)


@pytest.mark.parametrize("loss", ["focal", "fp-cos", "combined"])
def test_options_of_the_loss_reach_it(loss: str, make) -> None:
    changes = {
        "focal": {"gamma": 0.5}, "fp-cos": {"temperature": 4.0}, "combined": {"weight": 0.9}
    }[loss]  # fmt: skip
    (one, batch), (two, _) = make(loss), make(loss, **changes)
    for learner in (one, two):
        learner.model.eval()
    assert one.loss(batch) != two.loss(batch)


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
