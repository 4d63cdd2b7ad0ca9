"""Kinds of experiment: what each trains, and how its cells are measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
    RESAMPLES,
    Cell,
    read_values_file,
    write_values_file,
)
from mzseek.experiments.sweep import (
    JUDGED_BY,
    USUAL_LISTS,
    CellPlan,
    FinishedTrial,
    Workspace,
    best_trials,
    measured_file,
    plan_cell,
    reason_of,
)
from mzseek.metrics import METRICS

Cells = dict[str, dict[str, Cell]]
Measurement = tuple[Cells, dict[str, Any]]  # cells by row and column, and what is drawn beside them
Plans = dict[tuple[str, str], CellPlan]


@dataclass(frozen=True)
class Kind:
    """A kind of experiment.

    Attributes
    ----------
    check : callable of Experiment
        Raises `ExperimentError` for what this kind cannot run.
    measured : callable of (Experiment, Scale, Workspace or None, dict)
        Measures all cells, once all trials have ended. Of cells that fail, the reason goes into the
        dict, and the others are measured.
    trained_metric : callable of str, optional
        The metric by which a column's models are measured when they have been trained; None for
        columns without a run. Left out where nothing is trained.
    keeps_models : bool
        Whether models are needed once all have ended.
    needs_data : bool
    """

    check: Callable[[Experiment], None]
    measured: Callable[[Experiment, Scale, Workspace | None, dict[str, str]], Measurement]
    trained_metric: Callable[[str], str | None] = lambda _: None
    keeps_models: bool = False
    needs_data: bool = True

    def plan(self, experiment: Experiment, scale: Scale) -> Plans:
        """Plan the trials of each cell, by row and column; none where nothing is trained."""
        return {
            (row.key, column.key): plan
            for row in experiment.rows
            for column in experiment.columns
            if (metric := self.trained_metric(column.metric)) is not None
            and (plan := plan_cell(experiment, row, column, scale, metric, self.keeps_models))
        }

    def measure(
        self,
        experiment: Experiment,
        scale: Scale,
        site: Workspace | None,
        failed: dict[str, str] | None = None,
    ) -> Measurement:
        """Measure the cells; ``failed`` gets what could not be measured, and why."""
        return self.measured(experiment, scale, site, {} if failed is None else failed)


def _checks_trials(experiment: Experiment) -> Plans:
    """Refuse what a loss or an encoder does not have, and an unknown metric to choose by."""
    check_name(METRICS, experiment.select, f"{experiment.name}: select", ExperimentError)
    plans = kind_named(experiment.kind).plan(experiment, Scale("paper"))
    for plan in plans.values():
        for trial in plan.trials:
            trial.options()
    return plans


def _check_metrics(experiment: Experiment, known: Any, prefix: str = "") -> None:
    for column in experiment.columns:
        metric = column.metric.removeprefix(prefix)
        check_name(known, metric, f"{experiment.name}: metric", ExperimentError)


def _guarded(
    name: str, plan: CellPlan, failed: dict[str, str], measure: Callable[[], Any], empty: Any
) -> Any:
    """Measure something; where that fails, note why unless one of its trials has been noted."""
    try:
        return measure()
    except Exception as error:
        if not any(trial.name in failed for trial in plan.trials):
            failed[name] = reason_of(error)
        return empty


# Medians of σ_min, σ_max and their difference over all lists, the truth against the others. A row
# has a ``fingerprint`` (morgan2 unless it says so) and a ``similarity`` (Tanimoto).
APART, TWINS = "apart", "twins"  # shares of lists with σ_min = 0, and with σ_max = 1
BANDS_METRICS = ("low", "high", "width", APART, TWINS)
_BINS = 50


def _check_bands(experiment: Experiment) -> None:
    _check_metrics(experiment, BANDS_METRICS)
    if len({column.candidates or USUAL_LISTS for column in experiment.columns}) > 1:
        raise ExperimentError(f"{experiment.name}: candidates differ from column to column")
    for row in experiment.rows:
        where = f"{experiment.name}: {row.key}"
        for name in row.settings:
            check_name(("fingerprint", "similarity"), name, where, ExperimentError)
        fingerprint_kind(_band_settings(row)["fingerprint"])
        similarity = _band_settings(row)["similarity"]
        check_name(BAND_SIMILARITIES, similarity, f"{where}: similarity", ExperimentError)


def _band_settings(row: Row) -> dict[str, str]:
    return {"fingerprint": "morgan2", "similarity": "tanimoto", **row.settings}


def _measure_bands(
    experiment: Experiment, scale: Scale, site: Workspace | None, failed: dict[str, str]
) -> Measurement:
    """Measure the bands; draw how σ_min, σ_max and the width are distributed."""
    assert site is not None
    cells: Cells = {}
    drawn: dict[str, Any] = {"edges": np.linspace(0, 1, _BINS + 1).tolist()}
    for row in experiment.rows:
        bands = set_bands(
            site.prepared(_band_settings(row)["fingerprint"]),
            experiment.columns[0].candidates or USUAL_LISTS,
            fold=None if experiment.fold == "all" else experiment.fold,
            similarity=_band_settings(row)["similarity"], max_lists=scale.most_lists,
            progress=site.progress,
        )  # fmt: skip
        low, high = bands.low[bands.usable], bands.high[bands.usable]
        values = {"low": low, "high": high, "width": high - low}
        shares = {APART: float(np.mean(low == 0)), TWINS: float(np.mean(high == 1))}
        numbers = bands.medians() | shares
        # The same lists are drawn for all rows, so that differences of medians are paired.
        draws = np.random.default_rng(0).integers(len(low), size=(RESAMPLES, len(low)))
        resampled = {
            name: tuple(np.median(of[draws], axis=1).round(6).tolist())
            for name, of in values.items()
        }
        cells[row.key] = {
            c.key: Cell(
                (numbers[c.metric],), resampled=resampled.get(c.metric, ()), has_seeds=False
            )
            for c in experiment.columns
        }
        # Lists in each bin: a figure needs no more.
        drawn[row.key] = {
            name: np.histogram(of, bins=_BINS, range=(0, 1))[0].tolist()
            for name, of in values.items()
        }
    return cells, drawn


# Validation over the steps of trained models; a cell is the mean over seeds. A column is a metric
# at its best on validation, or, after the word ``when``, the share of the run's steps after which
# it was so.
WHEN = "when "


def _check_history(experiment: Experiment) -> None:
    if experiment.fold != "val":
        raise ExperimentError(f"{experiment.name}: fold is {experiment.fold}, expected val")
    _check_metrics(experiment, METRICS, WHEN)
    for plan in _checks_trials(experiment).values():
        if any(trial.config.model == "random" for trial in plan.trials):
            raise ExperimentError(f"{experiment.name}: random learns nothing over time")


def _measure_history(
    experiment: Experiment, scale: Scale, site: Workspace | None, failed: dict[str, str]
) -> Measurement:
    """Measure validation at its best; draw each seed's metrics at each validation."""
    assert site is not None
    cells: Cells = {row.key: {} for row in experiment.rows}
    drawn: dict[str, list[dict[str, list[float]]]] = {row.key: [] for row in experiment.rows}
    for (row, key), plan in kind_named("history").plan(experiment, scale).items():
        column, best = experiment.column(key), best_trials(plan, experiment.select, site)
        histories = [trial.run.history() for trial in best]
        values = []
        for trial in best:
            reached = trial.run.best[_validated_name(trial, plan)]
            share = float(reached["step"]) / float(trial.run.metadata["steps"])
            values.append(share if column.metric.startswith(WHEN) else float(reached["value"]))
        cells[row][key] = Cell(tuple(values))
        drawn[row] = drawn[row] or [{"step": [v["step"] for v in rows]} for rows in histories]
        if not column.metric.startswith(WHEN):
            for curves, trial, rows in zip(drawn[row], best, histories, strict=True):
                curves[key] = [validation[_validated_name(trial, plan)] for validation in rows]
    return cells, drawn


def _validated_name(trial: FinishedTrial, plan: CellPlan) -> str:
    """Return a metric's name in a run, where those of lists name them."""
    listed = f"{plan.metric}/{plan.candidates}"
    return listed if listed in trial.run.best else plan.metric


# Losses of decisions within the candidates, and their bounds. A row is a model and
# the similarity that it is ``judged_by``. Columns are means over lists, but for ``exceeded``, the
# number of lists in which a theorem does not hold, and ``growth``, the rank correlation of the
# width of the band with the loss of HR@1's decision.
REGRET_METRICS = (
    "similarity_lost", "similarity_bound", "hit_lost", "hit_bound", "agreed", "guaranteed",
    "exceeded", "growth",
)  # fmt: skip
_PARTS = 10


def _check_regret(experiment: Experiment) -> None:
    _check_metrics(experiment, REGRET_METRICS)
    for row in experiment.rows:
        where = f"{experiment.name}: {row.key}: {JUDGED_BY}"
        check_name(BAND_SIMILARITIES, row.settings.get(JUDGED_BY), where, ExperimentError)
    planned = {row for row, _ in _checks_trials(experiment)}
    for row in experiment.rows:
        if row.key not in planned:
            raise ExperimentError(f"{experiment.name}: {row.key}: has no run")


def _measure_regret(
    experiment: Experiment, scale: Scale, site: Workspace | None, failed: dict[str, str]
) -> Measurement:
    """Measure regrets and bounds; draw them by the width of the band."""
    assert site is not None
    cells: Cells = {}
    drawn: dict[str, Any] = {}
    plans = kind_named("regret").plan(experiment, scale)
    for row in experiment.rows:
        plan = plans[row.key, experiment.columns[0].key]

        def of_seeds(row: Row = row, plan: CellPlan = plan) -> list[Any]:
            best = best_trials(plan, experiment.select, site)
            return [_regrets(trial, plan, site)[row.settings[JUDGED_BY]] for trial in best]

        regrets = _guarded(row.key, plan, failed, of_seeds, [])
        cells[row.key] = {
            column.key: _cell([of_seed["means"][column.metric] for of_seed in regrets])
            for column in experiment.columns
        }
        drawn[row.key] = [of_seed["by_width"] for of_seed in regrets]
    return cells, drawn


def _cell(values: list[float | None], **more: Any) -> Cell:
    """Return a cell of one value a seed; empty where one is missing."""
    known = tuple(value for value in values if value is not None)
    return Cell(known, **more) if len(known) == len(values) else Cell()


def _regrets(trial: FinishedTrial, plan: CellPlan, site: Workspace) -> dict[str, Any]:
    """Return a run's regrets by similarity, kept beside its other numbers: they take minutes."""
    file = measured_file(site, trial.trial)
    file = file.with_name(f"{file.stem}.regret-{plan.candidates}-{plan.fold}.json")
    if (content := read_values_file(file, trial.run)) is not None:
        return dict(content["values"])
    scoring = Scoring(plan.fold, plan.candidates)
    values = {
        name: {"means": means_of(fold), "by_width": by_width(fold)}
        for name, fold in regrets_of(trial.run, scoring, progress=site.progress).items()
    }
    write_values_file(file, trial.run, values=values)
    return values


def means_of(regrets: FoldRegrets) -> dict[str, float | None]:
    """Average over lists; also count those in which a theorem fails, and the growth with width.

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
    """Average lists of about the same width: a tenth of all lists each, the narrowest first."""
    order = np.argsort(regrets.width, kind="stable")
    order = order[np.isfinite(regrets.width[order])]
    parts = [part for part in np.array_split(order, _PARTS) if len(part)]
    return {
        name: [float(getattr(regrets, name)[part].mean()) for part in parts]
        for name in ("width", *REGRET_METRICS[:4])
    }


LENGTH = "length"  # the mean number of candidates that a row's models were trained on


def _check_runs(experiment: Experiment) -> None:
    for column in experiment.columns:
        where = f"{experiment.name}: metric"
        if column.metric.startswith(DECODED):
            utility = column.metric.removeprefix(DECODED)
            check_name(UTILITIES, utility, f"{where}: decoded", ExperimentError)
        else:
            metric = column.metric.removeprefix(RANDOM_PREFIX)
            check_name((*METRICS, LENGTH), metric, where, ExperimentError)
    _checks_trials(experiment)


def _measure_runs(
    experiment: Experiment, scale: Scale, site: Workspace | None, failed: dict[str, str]
) -> Measurement:
    """Measure the mean over seeds at the grid point that is best on validation."""
    assert site is not None
    cells: Cells = {row.key: {} for row in experiment.rows}
    for (row, key), plan in kind_named("runs").plan(experiment, scale).items():

        def measured(plan: CellPlan = plan) -> Cell:
            best = best_trials(plan, experiment.select, site)
            values = [trial.numbers.value(*plan.measure) for trial in best]
            resampled = [trial.numbers.resampled(*plan.measure) for trial in best]
            mean = np.mean(resampled, axis=0).tolist() if all(resampled) and best else ()
            chosen = chosen_values(best, plan)
            return _cell(values, chosen=chosen, resampled=tuple(mean))

        cells[row][key] = _guarded(f"{row}, {key}", plan, failed, measured, Cell())
    for column in experiment.columns:
        for of in experiment.rows if column.metric == LENGTH else ():
            trained = plan_cell(experiment, of, column, scale, LENGTH)
            if trained is not None:  # the mean length of the lists that it is trained on
                config = trained.trials[0].config
                lists = site.lists(config.fingerprint, config.hard).candidates(config.candidates)
                cells[of.key][column.key] = Cell((float(lists.sizes.mean()),), has_seeds=False)
    return cells, {}


def chosen_values(best: tuple[FinishedTrial, ...], plan: CellPlan) -> dict[str, Any]:
    """Return what was chosen among several: learning rate, options."""
    if not best:
        return {}
    trial = best[0].trial
    chosen: dict[str, Any] = {}
    if len({point[0].lr for point in plan.grid}) > 1:
        chosen["lr"] = trial.lr
    for index, (name, value) in enumerate(trial.config.parts):
        if len({point[0].config.parts[index][1] for point in plan.grid}) > 1:
            chosen[name] = value
    return chosen


# Numbers that follow from definitions. Columns ``decision`` and ``expected`` are the Bayes
# decision, over all fingerprints, for the utility that a row is named after, under the distribution
# given as ``outcomes``. Columns ``regret`` have a number of bits, ``m``; their rows say what a
# worst case is ``judged_by`` and ``decoded_for``, and whether its regret is to be ``measured`` or
# is what the paper has ``proved``; how far distributions are from a tie is given as ``epsilon``.
DECISION, EXPECTED, REGRET = "decision", "expected", "regret"
MEASURED, PROVED = "measured", "proved"


def _check_theory(experiment: Experiment) -> None:
    _check_metrics(experiment, (DECISION, EXPECTED, REGRET))
    for column in experiment.columns:
        needed = {"outcomes": experiment.given}
        if column.metric == REGRET:
            needed = {"epsilon": experiment.given, "m": column.settings}
        for name, settings in needed.items():
            if name not in settings:
                raise ExperimentError(f"{experiment.name}: {column.key}: {name} is missing")
    for row in experiment.rows:
        where = f"{experiment.name}: {row.key}"
        if any(column.metric != REGRET for column in experiment.columns):
            check_name(UTILITIES, row.key, f"{where}: utility", ExperimentError)
            continue
        check_name((MEASURED, PROVED), row.settings.get("value"), where, ExperimentError)
        for name in (JUDGED_BY, "decoded_for"):
            check_name(UTILITIES, row.settings.get(name), f"{where}: {name}", ExperimentError)


def _measure_theory(
    experiment: Experiment, scale: Scale, site: Workspace | None, failed: dict[str, str]
) -> Measurement:
    def cell(row: Row, column: Column) -> Cell:
        if column.metric == REGRET:
            case, epsilon = row.settings, float(experiment.given["epsilon"])
            regrets = _worst(case[JUDGED_BY], case["decoded_for"], column.settings["m"], epsilon)
            return Cell((regrets[case["value"]],), has_seeds=False)
        outcomes = experiment.given["outcomes"]
        bits = np.array([[int(bit) for bit in outcome] for outcome in outcomes])
        decided = bayes_decision(row.key, bits, list(outcomes.values()), within="all")
        if column.metric == EXPECTED:
            return Cell((decided.expected_utility,), has_seeds=False)
        return Cell(text="".join(map(str, decided.bits)))

    return {row.key: {c.key: cell(row, c) for c in experiment.columns}
            for row in experiment.rows}, {}  # fmt: skip


@cache  # a case of 4,096 bits takes seconds, and is both measured and proved
def _worst(judged_by: str, decoded_for: str, m: int, epsilon: float) -> Mapping[str, float]:
    case = worst_case(judged_by, decoded_for, m, epsilon)
    return {MEASURED: case.regret, PROVED: case.limit}


KINDS: dict[str, Kind] = {
    "runs": Kind(
        _check_runs, _measure_runs, lambda metric: None if metric == LENGTH else metric
    ),
    "bands": Kind(_check_bands, _measure_bands),
    "theory": Kind(_check_theory, _measure_theory, needs_data=False),
    "history": Kind(
        _check_history, _measure_history, lambda metric: metric.removeprefix(WHEN)
    ),
    # By a metric of these runs that other tables measure, too.
    "regret": Kind(_check_regret, _measure_regret, lambda _: "hit_rate@1", keeps_models=True),
}  # fmt: skip


def kind_named(name: str) -> Kind:
    """Return the kind of that name."""
    return choose(KINDS, name, "kind of experiment", ExperimentError)
