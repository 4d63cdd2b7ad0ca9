from dataclasses import fields

import pytest
import torch

from mzseek import losses
from mzseek.core.errors import LossError
from mzseek.losses import LOSSES
from mzseek.models import Output
from mzseek.training.loop import Objective

COUNTS = torch.tensor([3, 1, 2])
LABELS = torch.tensor([False, True, False, True, True, False])


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
} | {
    name: lambda o, t: losses.contrastive(o.scores, COUNTS, LABELS, 0.25)
    for name in ("fp-cos", "emb-cos", "fp-mlp", "emb-mlp")
}


@pytest.mark.parametrize("name", LOSSES)
def test_each_loss_gets_its_own_options(name: str, output: Output, target) -> None:
    given = {"gamma": 1.5, "temperature": 0.25, "weight": 0.3}
    kind = LOSSES[name].options
    own = {field.name: given[field.name] for field in fields(kind) if field.name in given}
    objective = Objective(LOSSES[name], kind(**own))
    found = objective(output, target, COUNTS, LABELS)
    assert found.shape == ()
    assert torch.equal(found, EXPECTED[name](output, target))


@pytest.mark.parametrize("name", [name for name in LOSSES if LOSSES[name].kind == "listwise"])
def test_listwise_losses_have_a_pairwise_form(name: str, output: Output, target) -> None:
    options = LOSSES[name].options(temperature=0.25, pairwise=True)
    found = Objective(LOSSES[name], options)(output, target, COUNTS, LABELS)
    assert torch.equal(found, losses.pairwise(output.scores, COUNTS, LABELS, 0.25))


@pytest.mark.parametrize("name", [name for name in LOSSES if LOSSES[name].reads_target])
def test_losses_on_fingerprints_need_one(name: str, output: Output, target) -> None:
    without = Output(output.embedding, None, output.scores)
    with pytest.raises(LossError, match=f"{name} needs a model that predicts a fingerprint"):
        Objective(LOSSES[name], LOSSES[name].options())(without, target, COUNTS, LABELS)


@pytest.mark.parametrize("missing", ["scores", "counts", "labels"])
@pytest.mark.parametrize("name", [name for name in LOSSES if LOSSES[name].reads_candidates])
def test_losses_on_lists_need_candidates(name: str, missing: str, output: Output, target) -> None:
    given = Output(output.embedding, output.logits, None if missing == "scores" else output.scores)
    counts = None if missing == "counts" else COUNTS
    labels = None if missing == "labels" else LABELS
    with pytest.raises(LossError, match=f"{name} needs candidates"):
        Objective(LOSSES[name], LOSSES[name].options())(given, target, counts, labels)
