import pytest

from mzseek.errors import ExperimentError
from mzseek.experiments import experiment_named, names
from mzseek.experiments.registry import KINDS, kind_named


def test_kinds_are_known_by_name() -> None:
    assert all(kind_named(name).name == name for name in KINDS)
    assert {experiment_named(name).kind for name in names()} <= set(KINDS)
    with pytest.raises(ExperimentError, match="kind of experiment 'run' is unknown, expected one"):
        kind_named("run")
