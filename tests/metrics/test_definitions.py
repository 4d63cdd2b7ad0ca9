import pytest

from mzseek import metrics
from mzseek.core.errors import MetricError
from mzseek.metrics import METRICS, metric


def test_names_are_their_keys() -> None:
    assert all(name == fact.name for name, fact in METRICS.items())
    assert len({fact.label for fact in METRICS.values()}) == len(METRICS)


def test_directions_follow_from_the_facts() -> None:
    lower = {name for name, fact in METRICS.items() if fact.better == "lower"}
    assert lower == {"mces@1", "loss"}
    for name, fact in METRICS.items():
        assert fact.improves(0.1, best=0.2) == (name in lower)
        assert fact.improves(0.2, best=0.1) == (name not in lower)
        assert not fact.improves(0.1, best=0.1)
        assert not fact.improves(float("nan"), best=0.1)


def test_every_metric_but_the_loss_has_its_function() -> None:
    for name in METRICS:
        assert name == "loss" or hasattr(metrics, name.replace("mces@1", "mces_at_1").split("@")[0])


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(MetricError, match="'hr@1' is unknown, expected one of: hit_rate@1, hit_r"):
        metric("hr@1")
