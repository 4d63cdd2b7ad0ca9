import inspect
from dataclasses import asdict as plain
from dataclasses import fields

import pytest

from mzseek.core.errors import LossError
from mzseek.losses import LOSSES, loss_named
from mzseek.metrics import METRICS
from mzseek.models import SCORERS

TUNED = {"fp-cos": 1 / 256, "emb-cos": 1 / 64, "fp-mlp": 1 / 16, "emb-mlp": 1 / 16}
BITWISE_AND_VECTORWISE = {"bce", "focal", "cosine", "iou"}


def test_names_are_their_keys() -> None:
    assert all(name == fact.name == loss_named(name).name for name, fact in LOSSES.items())
    assert set(LOSSES) == BITWISE_AND_VECTORWISE | set(TUNED) | {"combined"}


@pytest.mark.parametrize("name", TUNED)
def test_listwise_losses_have_the_paper_s_temperature(name: str) -> None:
    fact = loss_named(name)
    assert plain(fact.options()) == {"temperature": TUNED[name], "pairwise": False}
    assert (fact.kind, fact.scorer) == ("listwise", name)
    assert (fact.reads_target, fact.reads_candidates) == (False, True)


@pytest.mark.parametrize("name", sorted(BITWISE_AND_VECTORWISE))
def test_losses_on_fingerprints_read_no_candidates(name: str) -> None:
    fact = loss_named(name)
    assert plain(fact.options()) == ({"gamma": 2.0} if name == "focal" else {})
    assert (fact.scorer, fact.predicts_fingerprint) == ("fp-cos", True)
    assert (fact.reads_target, fact.reads_candidates) == (True, False)


def test_the_mixture_reads_both() -> None:
    fact = loss_named("combined")
    assert (fact.kind, fact.scorer) == ("mixture", "fp-cos")
    assert fact.reads_target
    assert fact.reads_candidates
    assert plain(fact.options()) == {"temperature": 1 / 256, "weight": 0.5}


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


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(LossError, match="loss 'mse' is unknown, expected one of: bce, focal, cos"):
        loss_named("mse")
