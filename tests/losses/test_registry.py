import inspect
from dataclasses import asdict as plain
from dataclasses import fields

import pytest

from mzseek.core.errors import LossError
from mzseek.core.registry import described
from mzseek.losses import LOSSES, loss_named
from mzseek.metrics import METRICS
from mzseek.models import SCORERS

TUNED = {"fp-cos": 1 / 256, "emb-cos": 1 / 64, "fp-mlp": 1 / 16, "emb-mlp": 1 / 16}
OPTIONS = {
    "bce": {}, "focal": {"gamma": 2.0}, "cosine": {}, "iou": {},
    **{name: {"temperature": value, "pairwise": False} for name, value in TUNED.items()},
    "combined": {"temperature": 1 / 256, "weight": 0.5},
}  # fmt: skip


def test_names_are_their_keys() -> None:
    assert all(name == fact.name == loss_named(name).name for name, fact in LOSSES.items())
    assert {name: plain(loss.options()) for name, loss in LOSSES.items()} == OPTIONS


@pytest.mark.parametrize("name", LOSSES)
def test_what_a_loss_reads_follows_from_its_kind(name: str) -> None:
    loss = loss_named(name)
    is_listwise = name in TUNED
    assert loss.scorer == (name if is_listwise else "fp-cos")
    assert loss.reads_target == (not is_listwise)
    assert loss.reads_candidates == (is_listwise or name == "combined")
    kind = {"bce": "bitwise", "focal": "bitwise", "combined": "mixture"}.get(name, "vectorwise")
    assert loss.kind == ("listwise" if is_listwise else kind)
    assert not loss.stalls or loss.reads_target


@pytest.mark.parametrize("name", LOSSES)
def test_facts_agree_with_the_other_rooms(name: str) -> None:
    fact = loss_named(name)
    assert fact.stands_for in METRICS
    scorer = SCORERS[fact.scorer]
    assert fact.predicts_fingerprint == scorer.reads_fingerprint
    compared = fact.reads_target or scorer.similarity is not None
    assert fact.reports_fingerprint == (fact.predicts_fingerprint and compared)


@pytest.mark.parametrize("name", LOSSES)
def test_options_are_those_of_the_function(name: str) -> None:
    loss = loss_named(name)
    read = ["logits", "target"] if loss.reads_target else []
    read += ["scores", "counts", "labels"] if loss.reads_candidates else []
    own = [field.name for field in fields(loss.options)]
    assert list(inspect.signature(loss.function).parameters) == [*read, *own]
    assert all(meaning for _, _, meaning in described(loss.options))


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(LossError, match="loss 'mse' is unknown, expected one of: bce, focal, cos"):
        loss_named("mse")
