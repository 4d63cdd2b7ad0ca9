"""What the paper proves or computes without data: its example, and its worst cases by m."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from mzseek.decision import Decision, bayes_decision, worst_case
from mzseek.decision.registry import UTILITIES
from mzseek.errors import ExperimentError
from mzseek.experiments.experiment import Column, Experiment, Row, Scale
from mzseek.experiments.kinds.kind import Cells, Kind
from mzseek.experiments.results import Cell
from mzseek.experiments.site import Site
from mzseek.registry import check_name

DECISION, EXPECTED, REGRET = "decision", "expected", "regret"
METRICS = (DECISION, EXPECTED, REGRET)
MEASURED, PROVED = "measured", "proved"


class TheoryKind(Kind):
    """Numbers that follow from definitions.

    Columns ``decision`` and ``expected`` are the Bayes decision, over all fingerprints, for the
    utility that a row is named after, under the distribution given as ``outcomes``. Columns
    ``regret`` have a number of bits, ``m``; their rows say what a worst case is ``judged_by`` and
    ``decoded_for``, and whether its regret is to be ``measured`` or is what the paper has
    ``proved``; how far distributions are from a tie is given as ``epsilon``.
    """

    name = "theory"
    needs_data = False

    def check(self, experiment: Experiment) -> None:
        """See `Kind.check`."""
        for column in experiment.columns:
            where = f"{experiment.name}: {column.key}"
            check_name(METRICS, column.metric, f"{where}: metric", ExperimentError)
            needed = ("epsilon" if column.metric == REGRET else "outcomes", experiment.given)
            more = [("m", column.settings)] if column.metric == REGRET else []
            for name, settings in (needed, *more):
                if name not in settings:
                    raise ExperimentError(f"{where}: {name} is missing")
        for row in experiment.rows:
            where = f"{experiment.name}: {row.key}"
            if any(column.metric != REGRET for column in experiment.columns):
                check_name(UTILITIES, row.key, f"{where}: utility", ExperimentError)
                continue
            check_name((MEASURED, PROVED), row.settings.get("value"), where, ExperimentError)
            for name in ("judged_by", "decoded_for"):
                check_name(UTILITIES, row.settings.get(name), f"{where}: {name}", ExperimentError)

    def measure(
        self, experiment: Experiment, scale: Scale, site: Site | None
    ) -> tuple[Cells, Mapping[str, Any]]:
        """See `Kind.measure`."""
        cells: Cells = {
            row.key: {column.key: _cell(experiment, row, column) for column in experiment.columns}
            for row in experiment.rows
        }
        return cells, {}


def _cell(experiment: Experiment, row: Row, column: Column) -> Cell:
    if column.metric == REGRET:
        said, epsilon = row.settings, float(experiment.given["epsilon"])
        found = _worst(said["judged_by"], said["decoded_for"], column.settings["m"], epsilon)
        return Cell((found[said["value"]],))
    decided = _decided(row.key, experiment.given["outcomes"])
    if column.metric == EXPECTED:
        return Cell((decided.expected_utility,))
    return Cell(text="".join(map(str, decided.bits)))


@cache  # a case of 4,096 bits takes seconds, and is both measured and proved
def _worst(judged_by: str, decoded_for: str, m: int, epsilon: float) -> dict[str, float]:
    case = worst_case(judged_by, decoded_for, m, epsilon)
    return {MEASURED: case.regret, PROVED: case.limit}


def _decided(utility: str, outcomes: Mapping[str, float]) -> Decision:
    bits = np.array([[int(bit) for bit in outcome] for outcome in outcomes])
    return bayes_decision(utility, bits, list(outcomes.values()), within="all")


KIND = TheoryKind()
