"""How validation went over training, and when each metric was best."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mzseek.errors import ExperimentError
from mzseek.experiments.experiment import Column, Experiment, Row, Scale
from mzseek.experiments.kinds.kind import Cells, Kind
from mzseek.experiments.results import Cell
from mzseek.experiments.site import Site
from mzseek.experiments.sweep import Chosen, chosen_runs
from mzseek.experiments.trials import Asked, asked_of
from mzseek.metrics import METRICS
from mzseek.registry import check_name

WHEN = "when "  # before the name of a metric: the share of steps after which it was best


class HistoryKind(Kind):
    """Validation over the steps of trained models; a cell is the mean over seeds.

    A column is a metric at its best on validation, or, after the word ``when``, the share of the
    run's steps after which it was so.
    """

    name = "history"

    def check(self, experiment: Experiment) -> None:
        """See `Kind.check`."""
        check_name(METRICS, experiment.select, f"{experiment.name}: select", ExperimentError)
        if experiment.fold != "val":
            raise ExperimentError(f"{experiment.name}: fold is {experiment.fold}, expected val")
        for column in experiment.columns:
            metric = column.metric.removeprefix(WHEN)
            check_name(METRICS, metric, f"{experiment.name}: metric", ExperimentError)
        for cell in self.asked(experiment, Scale("paper")).values():
            for trial in cell.trials:
                trial.options()  # refuses what a loss or an encoder does not have
                if trial.setup.model == "random":
                    raise ExperimentError(f"{experiment.name}: random learns nothing over time")

    def asked(self, experiment: Experiment, scale: Scale) -> dict[tuple[str, str], Asked]:
        """See `Kind.asked`."""
        cells = {
            (row.key, column.key): _asked(experiment, row, column, scale)
            for row in experiment.rows
            for column in experiment.columns
        }
        return {place: cell for place, cell in cells.items() if cell is not None}

    def measure(
        self, experiment: Experiment, scale: Scale, site: Site | None
    ) -> tuple[Cells, Mapping[str, Any]]:
        """See `Kind.measure`; beside the cells, each seed's metrics at each validation."""
        assert site is not None
        cells: Cells = {row.key: {} for row in experiment.rows}
        drawn: dict[str, list[dict[str, list[float]]]] = {row.key: [] for row in experiment.rows}
        for (row, key), asked in self.asked(experiment, scale).items():
            column, best = experiment.column(key), chosen_runs(asked, experiment.select, site)
            cells[row][key] = Cell(tuple(_value(one, column, asked) for one in best))
            drawn[row] = drawn[row] or [{"step": _steps(one)} for one in best]
            if not column.metric.startswith(WHEN):
                for curves, one in zip(drawn[row], best, strict=True):
                    name = _name(one, asked)
                    curves[key] = [validation[name] for validation in one.run.history()]
        return cells, drawn


def _asked(experiment: Experiment, row: Row, column: Column, scale: Scale) -> Asked | None:
    plain = replace(column, metric=column.metric.removeprefix(WHEN))
    return asked_of(experiment, row, plain, scale)


def _name(one: Chosen, asked: Asked) -> str:
    """A metric's name in a run, where those of lists name them."""
    listed = f"{asked.metric}/{asked.candidates}"
    return listed if listed in one.run.best else asked.metric


def _value(one: Chosen, column: Column, asked: Asked) -> float:
    best = one.run.best[_name(one, asked)]
    if not column.metric.startswith(WHEN):
        return float(best["value"])
    return float(best["step"]) / float(one.run.facts["steps"])


def _steps(one: Chosen) -> list[float]:
    return [validation["step"] for validation in one.run.history()]


KIND = HistoryKind()
