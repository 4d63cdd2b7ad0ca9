"""Regret and its bounds over a fold, under the calibrated posteriors of trained models."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from mzseek.decision.registry import BAND_SIMILARITIES
from mzseek.errors import ExperimentError
from mzseek.evaluation.regrets import FoldRegrets, regrets_of
from mzseek.evaluation.scored import Scoring
from mzseek.experiments.experiment import Experiment, Row, Scale
from mzseek.experiments.kinds.kind import Cells, Kind
from mzseek.experiments.measured import keep_values, kept_values
from mzseek.experiments.results import Cell
from mzseek.experiments.site import Site
from mzseek.experiments.sweep import Chosen, chosen_runs, measured_file
from mzseek.experiments.trials import Asked, asked_of
from mzseek.registry import check_name
from mzseek.work import Progress

JUDGED_BY = "judged_by"  # a row's similarity
METRICS = (
    "similarity_lost", "similarity_bound", "hit_lost", "hit_bound", "agreed", "guaranteed",
    "exceeded", "growth",
)  # fmt: skip
_ASKED = "hit_rate@1"  # measured of these runs by other tables, too
_PARTS = 10


class RegretKind(Kind):
    """What decisions within the candidates lose, and the most that they can lose.

    A row is a model and the similarity that it is ``judged_by``. Columns are means over lists, but
    for ``exceeded``, the number of lists in which a theorem does not hold, and ``growth``, the rank
    correlation of the width of the band with what HR@1's decision loses.
    """

    name = "regret"

    def check(self, experiment: Experiment) -> None:
        """See `Kind.check`."""
        for column in experiment.columns:
            check_name(METRICS, column.metric, f"{experiment.name}: metric", ExperimentError)
        for row in experiment.rows:
            where = f"{experiment.name}: {row.key}: {JUDGED_BY}"
            check_name(BAND_SIMILARITIES, row.settings.get(JUDGED_BY), where, ExperimentError)
            for trial in _asked(experiment, row, Scale("paper")).trials:
                trial.options()  # refuses what a loss or an encoder does not have

    def asked(self, experiment: Experiment, scale: Scale) -> dict[tuple[str, str], Asked]:
        """See `Kind.asked`; a row has its runs for all columns together."""
        return {
            (row.key, experiment.columns[0].key): _asked(experiment, row, scale)
            for row in experiment.rows
        }

    def measure(
        self, experiment: Experiment, scale: Scale, site: Site | None
    ) -> tuple[Cells, Mapping[str, Any]]:
        """See `Kind.measure`; beside the cells, regrets and bounds by the width of the band."""
        assert site is not None
        cells: Cells = {}
        drawn: dict[str, Any] = {}
        for row in experiment.rows:
            asked = _asked(experiment, row, scale)
            best = chosen_runs(asked, experiment.select, site)
            name = row.settings[JUDGED_BY]
            found = [_numbers(one, asked, site)[name] for one in best]
            cells[row.key] = {
                column.key: _cell([each["means"][column.metric] for each in found])
                for column in experiment.columns
            }
            drawn[row.key] = [each["by_width"] for each in found]
        return cells, drawn


def _cell(values: list[float | None]) -> Cell:
    known = tuple(value for value in values if value is not None)
    return Cell(known) if len(known) == len(values) else Cell()


def _asked(experiment: Experiment, row: Row, scale: Scale) -> Asked:
    own = {name: value for name, value in row.settings.items() if name != JUDGED_BY}
    column = replace(experiment.columns[0], metric=_ASKED)
    found = asked_of(experiment, replace(row, settings=own), column, scale)
    if found is None:
        raise ExperimentError(f"{experiment.name}: {row.key}: has no run")
    return replace(found, keeps_models=True)  # their posteriors are looked at once all have ended


def _numbers(one: Chosen, asked: Asked, site: Site) -> dict[str, Any]:
    """A run's numbers by similarity, kept beside its other ones: they take minutes."""
    file = measured_file(site, one.trial)
    file = file.with_name(f"{file.stem}.regret-{asked.candidates}-{asked.fold}.json")
    values = kept_values(file, one.run)
    if values is None:
        values = _measured(one, asked, site.progress)
        keep_values(file, one.run, values)
    return values


def _measured(one: Chosen, asked: Asked, progress: Progress) -> dict[str, Any]:
    how = Scoring(asked.fold, asked.candidates)
    found = regrets_of(one.run, how, progress=progress)
    return {
        name: {"means": means_of(each), "by_width": by_width(each)} for name, each in found.items()
    }


def means_of(found: FoldRegrets) -> dict[str, float | None]:
    """Means over lists, the number of those in which a theorem fails, and the growth with width.

    None for a growth where nothing, or the same everywhere, is lost.
    """
    told: dict[str, float | None] = {
        name: float(getattr(found, name).mean()) for name in METRICS[:6]
    }
    usable = np.isfinite(found.width)
    width, lost = found.width[usable], found.similarity_lost[usable]
    grows = len(np.unique(width)) > 1 and len(np.unique(lost)) > 1
    growth = float(spearmanr(width, lost).statistic) if grows else None
    return told | {"exceeded": float(found.exceeded.sum()), "growth": growth}


def by_width(found: FoldRegrets) -> dict[str, list[float]]:
    """Means of lists of about the same width: a tenth of all lists each, the narrowest first."""
    order = np.argsort(found.width, kind="stable")
    order = order[np.isfinite(found.width[order])]
    parts = [part for part in np.array_split(order, _PARTS) if len(part)]
    return {
        name: [float(getattr(found, name)[part].mean()) for part in parts]
        for name in ("width", *METRICS[:4])
    }


KIND = RegretKind()
