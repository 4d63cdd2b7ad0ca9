import csv
from dataclasses import replace

import pytest

from mzseek.core.errors import ExperimentError
from mzseek.experiments import Row, experiment_named
from mzseek.experiments import kinds as runs
from mzseek.experiments.kinds import HISTORY_KIND
from mzseek.experiments.sweep import run_folder

NAMES = {"tanimoto": "tanimoto", "mass/hit_rate@20": "hit_rate@20/mass"}


def run_of(smoked, smoke, row: str):
    """The only run of a row: one learning rate, one seed."""
    site, _ = smoked
    experiment, here = experiment_named("over-time").at(smoke)
    [trial] = HISTORY_KIND.asked(experiment, here)[row, "tanimoto"].trials
    return run_folder(site, trial)


@pytest.mark.parametrize("row", ["bce", "iou", "fp-cos"])
def test_curves_and_their_best_points_are_those_of_history_csv(smoked, smoke, row: str) -> None:
    results = smoked[1]["over-time"].results
    with (run_of(smoked, smoke, row) / "history.csv").open(newline="") as file:
        history = list(csv.DictReader(file))
    assert len(history) >= 3
    [curves] = results.series[row]
    assert curves["step"] == [float(line["step"]) for line in history]
    last = float(history[-1]["step"])
    for key, name in NAMES.items():
        values = [float(line[name]) for line in history]
        assert curves[key] == values
        assert results.cell(row, key).mean == max(values)
        first = min(float(line["step"]) for line in history if float(line[name]) == max(values))
        assert results.cell(row, f"when {key}").mean == pytest.approx(first / last)


def test_its_runs_are_those_of_the_main_table(smoke) -> None:
    main, here = experiment_named("main").at(smoke)
    shared = {t.name for cell in runs.KIND.asked(main, here).values() for t in cell.trials}
    experiment, here = experiment_named("over-time").at(smoke)
    own = {t.name for cell in HISTORY_KIND.asked(experiment, here).values() for t in cell.trials}
    assert len(own) == 3
    assert own <= shared


def test_it_is_drawn(smoked) -> None:
    folder = smoked[1]["over-time"].folder
    text = (folder / "figure.svg").read_text()
    assert all(word in text for word in ("bce", "iou", "fp-cos, τ = 1/256", "HR@20, %"))
    assert (folder / "figure.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fold": "test"}, "fold is test, expected val"),
        ({"select": "speed"}, "select 'speed' is unknown"),
        ({"rows": (Row("a", "a", {"loss": "bce", "model": "random"}),)}, "random learns nothing"),
        ({"rows": (Row("a", "a", {"loss": "bce", "size": 3}),)}, "setting 'size' is unknown"),
    ],
)
def test_what_it_cannot_follow_is_refused(changes, message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        HISTORY_KIND.check(replace(experiment_named("over-time"), **changes))
