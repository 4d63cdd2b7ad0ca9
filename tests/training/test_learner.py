import pytest
import torch

from mzseek.errors import RunError
from mzseek.losses import LOSSES
from mzseek.prepared import Prepared
from mzseek.prepared.batch import BatchMaker
from mzseek.tensors import deferred
from mzseek.training.learner import Learner


@pytest.fixture
def make(small: Prepared, small_model, small_options):
    """A learner and a batch for it."""

    def learner(loss: str = "bce", **changes) -> tuple[Learner, object]:
        options = small_options(loss, **changes).resolved()
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
    value = learner.training_step(batch, 0)
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
    learner.first_step = step
    learner.on_train_batch_start(batch, 0)
    assert [g["lr"] for g in learner.optimizer.param_groups] == [pytest.approx(2e-4 * share)]


def test_steps_before_a_resumption_count(make) -> None:
    learner, _ = make()
    assert learner.step == 0
    learner.first_step = 41
    assert learner.step == 41


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_is_one_line(make, value: float) -> None:
    learner, batch = make()
    with torch.no_grad():
        learner.model.head.bias.fill_(value)
    learner.first_step = 6
    with pytest.raises(RunError, match="at step 7; try a smaller --lr") as refused:
        learner.training_step(batch, 0)
    assert "\n" not in str(refused.value)


def test_clip_and_learning_rate_are_those_of_the_options(make) -> None:
    learner, _ = make(clip=0.25, lr=5e-4)
    assert learner.configure_optimizers() is learner.optimizer
    assert (learner.optimizer.clip, learner.optimizer.defaults["lr"]) == (0.25, 5e-4)


@pytest.mark.parametrize("loss", ["focal", "fp-cos", "combined"])
def test_options_of_the_loss_reach_it(loss: str, make) -> None:
    changes = {
        "focal": {"gamma": 0.5}, "fp-cos": {"temperature": 4.0}, "combined": {"weight": 0.9}
    }[loss]  # fmt: skip
    (one, batch), (two, _) = make(loss), make(loss, **changes)
    for learner in (one, two):
        learner.model.eval()
    assert one.training_step(batch, 0) != two.training_step(batch, 0)


def test_lightning_s_own_checkpoints_are_refused(make) -> None:
    learner, _ = make()
    with pytest.raises(RunError, match="writes its own checkpoints"):
        learner.on_save_checkpoint({})


def test_a_batch_is_moved_only_where_it_has_to(make) -> None:
    learner, batch = make("emb-cos")
    assert learner.transfer_batch_to_device(batch, torch.device("cpu"), 0) is batch
    moved = learner.transfer_batch_to_device(batch, torch.device("meta"), 0)
    assert moved.lists["mass"].counts.device.type == "meta"
    assert moved.spectra.indices.device.type == "meta"
