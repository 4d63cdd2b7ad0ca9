import re
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.image import imread

from mzseek.core.errors import ExperimentError
from mzseek.experiments import Experiment, experiment_named
from mzseek.experiments.figures import draw
from mzseek.experiments.results import Cell, Results

from .conftest import as_published


def test_an_experiment_without_a_figure_has_none(two: Experiment, tmp_path: Path) -> None:
    assert draw(as_published(two), tmp_path) is None
    assert not list(tmp_path.glob("figure*"))


@pytest.mark.parametrize("name", ["gamma", "tau", "hard-negatives"])
def test_lines_name_every_value_and_what_is_published(name: str, tmp_path: Path) -> None:
    experiment = experiment_named(name)
    draw(as_published(experiment), tmp_path)
    text = (tmp_path / "figure.svg").read_text()
    for row in experiment.rows:
        assert f">{row.key.rpartition(' ')[2]}</text>" in text
    assert "published, on MassSpecGym" in text
    assert imread(tmp_path / "figure.png").std() > 0.01


def test_the_front_has_a_point_for_each_row_and_its_decoded_one(tmp_path: Path) -> None:
    front = experiment_named("front")
    cells = {
        row.key: {
            "mass/hit_rate@1": Cell((0.1 + 0.02 * place,)), "decoded": Cell((0.3,)),
            **({} if row.control else {"tanimoto": Cell((0.2 - 0.01 * place,))}),
        }
        for place, row in enumerate(front.rows)
    }  # fmt: skip
    draw(Results(front, "laptop", cells), tmp_path)
    text = (tmp_path / "figure.svg").read_text()
    assert all(f">{row.label}</text>" in text for row in front.rows)
    assert "posterior decoded for Tanimoto" in text


@pytest.mark.parametrize("name", ["front", "mixtures"])
def test_the_points_of_the_main_table_are_repeated_as_published(name: str, tmp_path: Path) -> None:
    draw(Results(experiment_named(name), "laptop", {}), tmp_path)
    text = (tmp_path / "figure.svg").read_text()
    written = {name for label in re.findall(">([^<]+)</text>", text) for name in label.split(", ")}
    assert {"bce", "focal", "cosine", "iou", "fp-cos"} <= written  # which have a Tanimoto
    assert "published, on MassSpecGym" in text


def test_the_same_numbers_are_the_same_file(tmp_path: Path) -> None:
    results = as_published(experiment_named("gamma"))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        draw(results, tmp_path / name)
    for file in ("figure.svg", "figure.png"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_an_unknown_figure_is_told(two: Experiment, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="kind of figure 'pie' is unknown"):
        draw(as_published(replace(two, figure={"kind": "pie"})), tmp_path)
