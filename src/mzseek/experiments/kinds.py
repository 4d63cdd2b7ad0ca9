"""Kinds of experiment: what each trains, and how its cells are measured."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from mzseek.chem.fingerprinting import fingerprint_kind
from mzseek.core.errors import ExperimentError
from mzseek.core.registry import check_name, choose
from mzseek.datasets.bands import set_bands
from mzseek.decision import bayes_decision, worst_case
from mzseek.decision.utilities import BAND_SIMILARITIES, UTILITIES
from mzseek.evaluation.regrets import FoldRegrets, regrets_of
from mzseek.evaluation.scored import Scoring
from mzseek.experiments.experiment import Column, Experiment, Row, Scale
from mzseek.experiments.results import (
    DECODED,
    RANDOM_PREFIX,
    Cell,
    read_values_file,
    write_values_file,
)
from mzseek.experiments.sweep import (
    USUAL_LISTS,
    CellPlan,
    FinishedTrial,
    Trial,
    Workspace,
    best_trials,
    measured_file,
    plan_cell,
)
from mzseek.metrics import METRICS

Cells = dict[str, dict[str, Cell]]


class Kind(ABC):
    """A kind of experiment; ``needs_data`` unless nothing is learned or measured."""

    name: str
    needs_data = True

    @abstractmethod
    def check(self, experiment: Experiment) -> None:
        """Raise `ExperimentError` for an experiment that this kind cannot run."""

    def plan(self, experiment: Experiment, scale: Scale) -> dict[tuple[str, str], CellPlan]:
        """Plan the trials of each cell, by row and column; none where nothing is trained."""
        return {}

    @abstractmethod
    def measure(
        self, experiment: Experiment, scale: Scale, site: Workspace | None
    ) -> tuple[Cells, Mapping[str, Any]]:
        """Measure the cells, once all trials have ended, and what is drawn beside them."""


APART, TWINS = "apart", "twins"  # shares of lists with σ_min = 0, and with σ_max = 1
BANDS_METRICS = ("low", "high", "width", APART, TWINS)
_SETTINGS = ("fingerprint", "similarity")
_BINS = 50


class BandsKind(Kind):
    """Medians of σ_min, σ_max and their difference over all lists, the truth against the others.

    A row has a ``fingerprint`` (morgan2 unless it says so) and a ``similarity`` (Tanimoto).
    """

    name = "bands"

    def check(self, experiment: Experiment) -> None:
        """See `Kind.check`."""
        for column in experiment.columns:
            check_name(BANDS_METRICS, column.metric, f"{experiment.name}: metric", ExperimentError)
        lists = {column.candidates or USUAL_LISTS for column in experiment.columns}
        if len(lists) > 1:
            raise ExperimentError(f"{experiment.name}: candidates differ from column to column")
        for row in experiment.rows:
            for name in row.settings:
                check_name(_SETTINGS, name, f"{experiment.name}: {row.key}", ExperimentError)
            fingerprint_kind(_fingerprint(row))
            where = f"{experiment.name}: {row.key}: similarity"
            check_name(BAND_SIMILARITIES, _similarity(row), where, ExperimentError)

    def measure(
        self, experiment: Experiment, scale: Scale, site: Workspace | None
    ) -> tuple[Cells, Mapping[str, Any]]:
        """See `Kind.measure`; beside the cells, how σ_min, σ_max and the width are distributed."""
        assert site is not None
        lists = experiment.columns[0].candidates or USUAL_LISTS
        cells: Cells = {}
        drawn: dict[str, Any] = {"edges": np.linspace(0, 1, _BINS + 1).tolist()}
        for row in experiment.rows:
            bands = set_bands(
                site.prepared(_fingerprint(row)), lists,
                fold=None if experiment.fold == "all" else experiment.fold,
                similarity=_similarity(row), max_lists=scale.most_lists, progress=site.progress,
            )  # fmt: skip
            low, high = bands.low[bands.usable], bands.high[bands.usable]
            shares = {APART: float(np.mean(low == 0)), TWINS: float(np.mean(high == 1))}
            numbers = bands.medians() | shares
            cells[row.key] = {c.key: Cell((numbers[c.metric],)) for c in experiment.columns}
            # Lists in each bin: a figure needs no more.
            drawn[row.key] = {
                name: np.histogram(values, bins=_BINS, range=(0, 1))[0].tolist()
                for name, values in (("low", low), ("high", high), ("width", high - low))
            }
        return cells, drawn


def _fingerprint(row: Row) -> str:
    return str(row.settings.get("fingerprint", "morgan2"))


def _similarity(row: Row) -> str:
    return str(row.settings.get("similarity", "tanimoto"))


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
        for cell in self.plan(experiment, Scale("paper")).values():
            for trial in cell.trials:
                trial.options()  # refuses what a loss or an encoder does not have
                if trial.config.model == "random":
                    raise ExperimentError(f"{experiment.name}: random learns nothing over time")

    def plan(self, experiment: Experiment, scale: Scale) -> dict[tuple[str, str], CellPlan]:
        """See `Kind.plan`."""
        cells = {
            (row.key, column.key): _plan_history(experiment, row, column, scale)
            for row in experiment.rows
            for column in experiment.columns
        }
        return {key: cell for key, cell in cells.items() if cell is not None}

    def measure(
        self, experiment: Experiment, scale: Scale, site: Workspace | None
    ) -> tuple[Cells, Mapping[str, Any]]:
        """See `Kind.measure`; beside the cells, each seed's metrics at each validation."""
        assert site is not None
        cells: Cells = {row.key: {} for row in experiment.rows}
        drawn: dict[str, list[dict[str, list[float]]]] = {row.key: [] for row in experiment.rows}
        for (row, key), plan in self.plan(experiment, scale).items():
            column, best = experiment.column(key), best_trials(plan, experiment.select, site)
            cells[row][key] = Cell(tuple(_value(trial, column, plan) for trial in best))
            drawn[row] = drawn[row] or [
                {"step": [validation["step"] for validation in trial.run.history()]}
                for trial in best
            ]
            if not column.metric.startswith(WHEN):
                for curves, trial in zip(drawn[row], best, strict=True):
                    name = _name(trial, plan)
                    curves[key] = [validation[name] for validation in trial.run.history()]
        return cells, drawn


def _plan_history(
    experiment: Experiment, row: Row, column: Column, scale: Scale
) -> CellPlan | None:
    plain = replace(column, metric=column.metric.removeprefix(WHEN))
    return plan_cell(experiment, row, plain, scale)


def _name(trial: FinishedTrial, plan: CellPlan) -> str:
    """Return a metric's name in a run, where those of lists name them."""
    listed = f"{plan.metric}/{plan.candidates}"
    return listed if listed in trial.run.best else plan.metric


def _value(trial: FinishedTrial, column: Column, plan: CellPlan) -> float:
    best = trial.run.best[_name(trial, plan)]
    if not column.metric.startswith(WHEN):
        return float(best["value"])
    return float(best["step"]) / float(trial.run.metadata["steps"])


JUDGED_BY = "judged_by"  # a row's similarity
REGRET_METRICS = (
    "similarity_lost", "similarity_bound", "hit_lost", "hit_bound", "agreed", "guaranteed",
    "exceeded", "growth",
)  # fmt: skip
_REGRET_METRIC = "hit_rate@1"  # measured of these runs by other tables, too
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
            check_name(REGRET_METRICS, column.metric, f"{experiment.name}: metric", ExperimentError)
        for row in experiment.rows:
            where = f"{experiment.name}: {row.key}: {JUDGED_BY}"
            check_name(BAND_SIMILARITIES, row.settings.get(JUDGED_BY), where, ExperimentError)
            for trial in _plan_regret(experiment, row, Scale("paper")).trials:
                trial.options()  # refuses what a loss or an encoder does not have

    def plan(self, experiment: Experiment, scale: Scale) -> dict[tuple[str, str], CellPlan]:
        """See `Kind.plan`; a row has its runs for all columns together."""
        return {
            (row.key, experiment.columns[0].key): _plan_regret(experiment, row, scale)
            for row in experiment.rows
        }

    def measure(
        self, experiment: Experiment, scale: Scale, site: Workspace | None
    ) -> tuple[Cells, Mapping[str, Any]]:
        """See `Kind.measure`; beside the cells, regrets and bounds by the width of the band."""
        assert site is not None
        cells: Cells = {}
        drawn: dict[str, Any] = {}
        for row in experiment.rows:
            plan = _plan_regret(experiment, row, scale)
            best = best_trials(plan, experiment.select, site)
            judge = row.settings[JUDGED_BY]
            regrets = [_regrets(trial, plan, site)[judge] for trial in best]
            cells[row.key] = {
                column.key: _cell([of_seed["means"][column.metric] for of_seed in regrets])
                for column in experiment.columns
            }
            drawn[row.key] = [of_seed["by_width"] for of_seed in regrets]
        return cells, drawn


def _cell(values: list[float | None], chosen: Mapping[str, Any] | None = None) -> Cell:
    """Return a cell of one value a seed; empty where one is missing."""
    known = tuple(value for value in values if value is not None)
    return Cell(known, chosen or {}) if len(known) == len(values) else Cell()


def _plan_regret(experiment: Experiment, row: Row, scale: Scale) -> CellPlan:
    settings = {name: value for name, value in row.settings.items() if name != JUDGED_BY}
    column = replace(experiment.columns[0], metric=_REGRET_METRIC)
    plan = plan_cell(experiment, replace(row, settings=settings), column, scale)
    if plan is None:
        raise ExperimentError(f"{experiment.name}: {row.key}: has no run")
    return replace(plan, keeps_models=True)  # their posteriors are looked at once all have ended


def _regrets(trial: FinishedTrial, plan: CellPlan, site: Workspace) -> dict[str, Any]:
    """Return a run's regrets by similarity, kept beside its other numbers: they take minutes."""
    file = measured_file(site, trial.trial)
    file = file.with_name(f"{file.stem}.regret-{plan.candidates}-{plan.fold}.json")
    values = read_values_file(file, trial.run)
    if values is None:
        scoring = Scoring(plan.fold, plan.candidates)
        regrets = regrets_of(trial.run, scoring, progress=site.progress)
        values = {
            name: {"means": means_of(fold), "by_width": by_width(fold)}
            for name, fold in regrets.items()
        }
        write_values_file(file, trial.run, values)
    return values


def means_of(regrets: FoldRegrets) -> dict[str, float | None]:
    """Means over lists, the number of those in which a theorem fails, and the growth with width.

    None for a growth where nothing, or the same everywhere, is lost.
    """
    means: dict[str, float | None] = {
        name: float(getattr(regrets, name).mean()) for name in REGRET_METRICS[:6]
    }
    usable = np.isfinite(regrets.width)
    width, lost = regrets.width[usable], regrets.similarity_lost[usable]
    grows = len(np.unique(width)) > 1 and len(np.unique(lost)) > 1
    growth = float(spearmanr(width, lost).statistic) if grows else None
    return means | {"exceeded": float(regrets.exceeded.sum()), "growth": growth}


def by_width(regrets: FoldRegrets) -> dict[str, list[float]]:
    """Means of lists of about the same width: a tenth of all lists each, the narrowest first."""
    order = np.argsort(regrets.width, kind="stable")
    order = order[np.isfinite(regrets.width[order])]
    parts = [part for part in np.array_split(order, _PARTS) if len(part)]
    return {
        name: [float(getattr(regrets, name)[part].mean()) for part in parts]
        for name in ("width", *REGRET_METRICS[:4])
    }


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
                check_name(
                    _KNOWN, column.metric.removeprefix(RANDOM_PREFIX), where, ExperimentError
                )
        for row in experiment.rows:
            for column in experiment.columns:
                cell = plan_cell(experiment, row, column, Scale("paper"))
                for trial in cell.trials if cell else ():
                    trial.options()  # refuses what a loss or an encoder does not have

    def plan(self, experiment: Experiment, scale: Scale) -> dict[tuple[str, str], CellPlan]:
        """See `Kind.plan`."""
        cells = {
            (row.key, column.key): plan_cell(experiment, row, column, scale)
            for row in experiment.rows
            for column in experiment.columns
            if column.metric != LENGTH
        }
        return {key: cell for key, cell in cells.items() if cell is not None}

    def measure(
        self, experiment: Experiment, scale: Scale, site: Workspace | None
    ) -> tuple[Cells, Mapping[str, Any]]:
        """See `Kind.measure`."""
        assert site is not None
        cells: Cells = {row.key: {} for row in experiment.rows}
        for (row_key, column_key), plan in self.plan(experiment, scale).items():
            cells[row_key][column_key] = _cell_runs(plan, experiment.select, site)
        for column in experiment.columns:
            if column.metric == LENGTH:
                for row in experiment.rows:
                    if not row.literature:
                        cells[row.key][column.key] = _length(experiment, row, column, scale, site)
        return cells, {}


def _cell_runs(plan: CellPlan, select: str, site: Workspace) -> Cell:
    """Return the mean over seeds at the grid point that is best on validation.

    Empty where a run has no such number, or could not be measured, which was reported when it
    ended.
    """
    try:
        best = best_trials(plan, select, site)
        values = [trial.numbers.value(*plan.measure) for trial in best]
    except Exception:
        return Cell()
    return _cell(values, chosen_values(best[0].trial, plan)) if best else Cell()


def chosen_values(trial: Trial, plan: CellPlan) -> dict[str, Any]:
    """Return what was chosen among several: learning rate, options."""
    chosen: dict[str, Any] = {}
    if len({point[0].lr for point in plan.grid}) > 1:
        chosen["lr"] = trial.lr
    for index, (name, value) in enumerate(trial.config.parts):
        if len({point[0].config.parts[index][1] for point in plan.grid}) > 1:
            chosen[name] = value
    return chosen


def _length(
    experiment: Experiment, row: Row, column: Column, scale: Scale, site: Workspace
) -> Cell:
    """Return the mean length of the lists that a row's models are trained on, truth included."""
    plan = plan_cell(experiment, row, column, scale)
    assert plan is not None
    config = plan.trials[0].config
    lists = site.lists(config.fingerprint, config.hard).candidates(config.candidates)
    return Cell((float(lists.sizes.mean()),))


DECISION, EXPECTED, REGRET = "decision", "expected", "regret"
THEORY_METRICS = (DECISION, EXPECTED, REGRET)
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
            check_name(THEORY_METRICS, column.metric, f"{where}: metric", ExperimentError)
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
        self, experiment: Experiment, scale: Scale, site: Workspace | None
    ) -> tuple[Cells, Mapping[str, Any]]:
        """See `Kind.measure`."""
        cells: Cells = {
            row.key: {
                column.key: _cell_theory(experiment, row, column) for column in experiment.columns
            }
            for row in experiment.rows
        }
        return cells, {}


def _cell_theory(experiment: Experiment, row: Row, column: Column) -> Cell:
    if column.metric == REGRET:
        case, epsilon = row.settings, float(experiment.given["epsilon"])
        regrets = _worst(case["judged_by"], case["decoded_for"], column.settings["m"], epsilon)
        return Cell((regrets[case["value"]],))
    outcomes = experiment.given["outcomes"]
    bits = np.array([[int(bit) for bit in outcome] for outcome in outcomes])
    decided = bayes_decision(row.key, bits, list(outcomes.values()), within="all")
    if column.metric == EXPECTED:
        return Cell((decided.expected_utility,))
    return Cell(text="".join(map(str, decided.bits)))


@cache  # a case of 4,096 bits takes seconds, and is both measured and proved
def _worst(judged_by: str, decoded_for: str, m: int, epsilon: float) -> dict[str, float]:
    case = worst_case(judged_by, decoded_for, m, epsilon)
    return {MEASURED: case.regret, PROVED: case.limit}


KINDS: dict[str, Kind] = {
    kind.name: kind() for kind in (RunsKind, BandsKind, TheoryKind, HistoryKind, RegretKind)
}


def kind_named(name: str) -> Kind:
    """The kind of that name."""
    return choose(KINDS, name, "kind of experiment", ExperimentError)
