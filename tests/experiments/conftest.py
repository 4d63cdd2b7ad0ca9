"""An experiment that takes seconds, and data to run it on."""

from pathlib import Path

import numpy as np
import pytest

from mzseek.experiments import Experiment, Scale, read_experiment
from mzseek.experiments.results import Cell, Results
from mzseek.experiments.sweep import Workspace

SMALL = """
title: Two losses
paper: tab:none
kind: runs
fold: test
protocol: {lr: [1.0e-6, 1.0e-2], seeds: 2, epochs: 20, select: hit_rate@1}
rows:
  bce: {label: "bce, 5 %", loss: bce, encoder.width: 16, encoder.blocks: 1}
  emb-cos: {loss: emb-cos, encoder.width: 16, encoder.blocks: 1, scorer.projected: 8}
  random: {loss: bce, model: random, control: true}
  old: {literature: true}
columns:
  hr: {label: HR@1, metric: hit_rate@1, candidates: mass, group: equal mass}
  formula: {label: HR@1, metric: hit_rate@1, candidates: formula, group: equal formula}
  tanimoto: {label: Tanimoto, metric: tanimoto, rows: [bce]}
  length: {label: mean list, metric: length, unit: ""}
published:
  bce: {hr: [10.0, 0.5], tanimoto: 20.0}
  old: {hr: 30.0}
claims:
  - says: bce has fingerprints.
    above: {column: tanimoto, row: bce, than: emb-cos}
  - says: One of the two is best.
    best: {column: hr, row: [bce, emb-cos]}
footnotes: ["A note."]
"""

WHOLE = Scale("paper", protocol="auto")  # the paper's warm-up is longer than these runs


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests of experiments that are really run as slow."""
    for item in items:
        if {"ran", "smoked"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


def cell_of(mean: float, sd: float | None = None, *, has_seeds: bool = True) -> Cell:
    """A cell of five seeds with this mean and deviation."""
    if sd is None:
        return Cell((mean,), has_seeds=False)
    spread = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    values = mean + sd * spread / spread.std(ddof=1)
    return Cell(tuple(values.tolist()), has_seeds=has_seeds)


def as_published(experiment: Experiment) -> Results:
    """The table as the paper prints it, in the same form."""
    cells: dict[str, dict[str, Cell]] = {}
    for row, values in experiment.published.items():
        cells[row] = {}
        for key, printed in values.items():
            if isinstance(printed, str):
                cells[row][key] = Cell(text=printed)
                continue
            unit = 100 if experiment.column(key).unit == "%" else 1
            mean, sd = printed
            cells[row][key] = cell_of(mean / unit, sd and sd / unit)
    return Results(experiment, "published", cells)


@pytest.fixture
def whole() -> Scale:
    """A scale that leaves nothing out."""
    return WHOLE


@pytest.fixture
def small_file(tmp_path: Path) -> Path:
    path = tmp_path / "two.yaml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def two(small_file: Path) -> Experiment:
    """The experiment of two losses."""
    return read_experiment(small_file)


@pytest.fixture
def site(small_set, tmp_path: Path) -> Workspace:
    """A folder for experiments on the small data set."""
    return Workspace.at(tmp_path / "made", small_set.folder.parent)


@pytest.fixture(scope="session")
def ran(small_set, tmp_path_factory: pytest.TempPathFactory):
    """The experiment of two losses, run once: the site, the experiment, what came of it."""
    from mzseek.experiments.reproduce import reproduce
    from mzseek.parallel import LocalEngine

    folder = tmp_path_factory.mktemp("ran")
    (folder / "two.yaml").write_text(SMALL)
    experiment = read_experiment(folder / "two.yaml")
    site = Workspace.at(folder / "made", small_set.folder.parent)
    [done] = reproduce([experiment], WHOLE, site, folder / "results", engine=LocalEngine(1))
    return site, experiment, done
