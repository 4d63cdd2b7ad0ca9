"""Experiments of several kinds, run once on the small data set at the smallest scale."""

from dataclasses import replace

import pytest

from mzseek.experiments import Scale, experiment_named, scale_named
from mzseek.experiments.reproduce import Reproduced, reproduce
from mzseek.experiments.sweep import Site
from mzseek.parallel import LocalEngine

NAMES = ("sigma", "over-time", "regret")


@pytest.fixture(scope="session")
def smoke() -> Scale:
    """The smallest scale, with enough epochs for a few validations."""
    return replace(scale_named("smoke"), epochs=3, listwise_epochs=3, most_lists=20)


@pytest.fixture(scope="session")
def smoked(
    small_set, smoke: Scale, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Site, dict[str, Reproduced]]:
    """Where they were run, and what came of each."""
    folder = tmp_path_factory.mktemp("smoked")
    site = Site.at(folder / "made", small_set.folder.parent)
    experiments = [experiment_named(name) for name in NAMES]
    done = reproduce(experiments, smoke, site, folder / "results", engine=LocalEngine(1))
    return site, dict(zip(NAMES, done, strict=True))
