"""Tables of trained models.

The learning rate is chosen on validation, each metric has its own checkpoint, and a cell is the
mean over seeds.
"""

from collections.abc import Mapping
from typing import Any

from mzseek.decision.registry import UTILITIES
from mzseek.errors import ExperimentError, MzseekError
from mzseek.experiments.experiment import Column, Experiment, Row, Scale
from mzseek.experiments.kinds.kind import Cells, Kind
from mzseek.experiments.measured import CHANCE, DECODED
from mzseek.experiments.results import Cell
from mzseek.experiments.site import Site
from mzseek.experiments.sweep import chosen_runs
from mzseek.experiments.trials import Asked, Trial, asked_of
from mzseek.metrics import METRICS
from mzseek.registry import check_name

LENGTH = "length"  # the mean number of candidates that a row's models were trained on
_KNOWN = (*METRICS, LENGTH)


class RunsKind(Kind):
    """A table of trained models."""

    name = "runs"

    def check(self, experiment: Experiment) -> None:
        """See `Kind.check`."""
        check_name(METRICS, experiment.select, f"{experiment.name}: select", ExperimentError)
        for column in experiment.columns:
            where = f"{experiment.name}: metric"
            if column.metric.startswith(DECODED):
                utility = column.metric.removeprefix(DECODED)
                check_name(UTILITIES, utility, f"{where}: decoded", ExperimentError)
            else:
                check_name(_KNOWN, column.metric.removeprefix(CHANCE), where, ExperimentError)
        for row in experiment.rows:
            for column in experiment.columns:
                cell = asked_of(experiment, row, column, Scale("paper"))
                for trial in cell.trials if cell else ():
                    trial.options()  # refuses what a loss or an encoder does not have

    def asked(self, experiment: Experiment, scale: Scale) -> dict[tuple[str, str], Asked]:
        """See `Kind.asked`."""
        cells = {
            (row.key, column.key): asked_of(experiment, row, column, scale)
            for row in experiment.rows
            for column in experiment.columns
            if column.metric != LENGTH
        }
        return {place: cell for place, cell in cells.items() if cell is not None}

    def measure(
        self, experiment: Experiment, scale: Scale, site: Site | None
    ) -> tuple[Cells, Mapping[str, Any]]:
        """See `Kind.measure`."""
        assert site is not None
        cells: Cells = {row.key: {} for row in experiment.rows}
        for (row_key, column_key), asked in self.asked(experiment, scale).items():
            cells[row_key][column_key] = _cell(asked, experiment.select, site)
        for column in experiment.columns:
            if column.metric == LENGTH:
                for row in experiment.rows:
                    if not row.is_literature:
                        cells[row.key][column.key] = _length(experiment, row, column, scale, site)
        return cells, {}


def _cell(asked: Asked, select: str, site: Site) -> Cell:
    """The mean over seeds at the grid point that is best on validation.

    Empty where a run has no such number, or could not be measured: that it failed, and why, was
    told when it ended.
    """
    wanted = (asked.metric, asked.candidates, asked.fold, asked.similarity)
    try:
        best = chosen_runs(asked, select, site)
        values = [one.numbers.value(*wanted) for one in best]
    except MzseekError:
        return Cell()
    known = tuple(value for value in values if value is not None)
    if not best or len(known) < len(values):
        return Cell()
    return Cell(known, what_was_chosen(best[0].trial, asked))


def what_was_chosen(trial: Trial, asked: Asked) -> dict[str, Any]:
    """What was chosen among several."""
    chosen: dict[str, Any] = {}
    if len({point[0].lr for point in asked.grid}) > 1:
        chosen["lr"] = trial.lr
    for place, (name, value) in enumerate(trial.setup.parts):
        if len({point[0].setup.parts[place][1] for point in asked.grid}) > 1:
            chosen[name] = value
    return chosen


def _length(experiment: Experiment, row: Row, column: Column, scale: Scale, site: Site) -> Cell:
    """Mean length of the lists that a row's models are trained on, the truth included."""
    asked = asked_of(experiment, row, column, scale)
    assert asked is not None
    setup = asked.trials[0].setup
    lists = site.lists(setup.fingerprint, setup.hard).candidates(setup.candidates)
    return Cell((float(lists.sizes.mean()),))


KIND = RunsKind()
