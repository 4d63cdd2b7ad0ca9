"""Kinds of experiment: what each trains, and how its cells are measured."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from mzseek.chem.fingerprinting import fingerprint_kind
from mzseek.core.errors import ExperimentError, MzseekError
from mzseek.core.registry import check_name, choose
from mzseek.datasets.bands import set_bands
from mzseek.decision import Bands, Decision, bayes_decision, worst_case
from mzseek.decision.utilities import BAND_SIMILARITIES, UTILITIES
from mzseek.evaluation.regrets import FoldRegrets, regrets_of
from mzseek.evaluation.scored import Scoring
from mzseek.experiments.experiment import Column, Experiment, Row, Scale
from mzseek.experiments.results import CHANCE, DECODED, Cell, keep_values, kept_values
from mzseek.experiments.sweep import (
    USUAL_LISTS,
    Asked,
    Chosen,
    Site,
    Trial,
    asked_of,
    chosen_runs,
    measured_file,
)
from mzseek.metrics import METRICS
from mzseek.parallel import Progress

Cells = dict[str, dict[str, Cell]]


class Kind(ABC):
    """A kind of experiment.

    Attributes
    ----------
    name : str
    needs_data : bool
        Whether there is something to learn or to measure; theory has nothing.
    """

    name: str
    needs_data = True

    @abstractmethod
    def check(self, experiment: Experiment) -> None:
        """Refuse an experiment that this kind cannot run.

        Raises
        ------
        ExperimentError
        """

    def asked(self, experiment: Experiment, scale: Scale) -> dict[tuple[str, str], Asked]:
        """The runs behind each cell, by row and column; none where nothing is trained."""
        return {}

    @abstractmethod
    def measure(
        self, experiment: Experiment, scale: Scale, site: Site | None
    ) -> tuple[Cells, Mapping[str, Any]]:
        """The cells, once all trials have ended, and what is drawn beside them."""


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
        self, experiment: Experiment, scale: Scale, site: Site | None
    ) -> tuple[Cells, Mapping[str, Any]]:
        """See `Kind.measure`; beside the cells, how σ_min, σ_max and the width are distributed."""
        assert site is not None
        lists = experiment.columns[0].candidates or USUAL_LISTS
        cells: Cells = {}
        drawn: dict[str, Any] = {"edges": np.linspace(0, 1, _BINS + 1).tolist()}
        for row in experiment.rows:
            found = set_bands(
                site.prepared(_fingerprint(row)), lists,
                fold=None if experiment.fold == "all" else experiment.fold,
                similarity=_similarity(row), most_lists=scale.most_lists, progress=site.progress,
            )  # fmt: skip
            numbers = _numbers(found)
            cells[row.key] = {c.key: Cell((numbers[c.metric],)) for c in experiment.columns}
            drawn[row.key] = _distributions(found)
        return cells, drawn


def _fingerprint(row: Row) -> str:
    return str(row.settings.get("fingerprint", "morgan2"))


def _similarity(row: Row) -> str:
    return str(row.settings.get("similarity", "tanimoto"))


def _numbers(found: Bands) -> dict[str, float]:
    shares = {
        APART: float(np.mean(found.low[found.usable] == 0)),
        TWINS: float(np.mean(found.high[found.usable] == 1)),
    }
    return found.medians() | shares


def _distributions(found: Bands) -> dict[str, Any]:
    """How many lists there are in each bin, which a figure of many thousands needs no more than."""
    low, high = found.low[found.usable], found.high[found.usable]
    return {
        name: np.histogram(values, bins=_BINS, range=(0, 1))[0].tolist()
        for name, values in (("low", low), ("high", high), ("width", high - low))
    }


BANDS_KIND = BandsKind()


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
    return float(best["step"]) / float(one.run.metadata["steps"])


def _steps(one: Chosen) -> list[float]:
    return [validation["step"] for validation in one.run.history()]


HISTORY_KIND = HistoryKind()


JUDGED_BY = "judged_by"  # a row's similarity
REGRET_METRICS = (
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
            check_name(REGRET_METRICS, column.metric, f"{experiment.name}: metric", ExperimentError)
        for row in experiment.rows:
            where = f"{experiment.name}: {row.key}: {JUDGED_BY}"
            check_name(BAND_SIMILARITIES, row.settings.get(JUDGED_BY), where, ExperimentError)
            for trial in _asked_regret(experiment, row, Scale("paper")).trials:
                trial.options()  # refuses what a loss or an encoder does not have

    def asked(self, experiment: Experiment, scale: Scale) -> dict[tuple[str, str], Asked]:
        """See `Kind.asked`; a row has its runs for all columns together."""
        return {
            (row.key, experiment.columns[0].key): _asked_regret(experiment, row, scale)
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
            asked = _asked_regret(experiment, row, scale)
            best = chosen_runs(asked, experiment.select, site)
            name = row.settings[JUDGED_BY]
            found = [_numbers_regret(one, asked, site)[name] for one in best]
            cells[row.key] = {
                column.key: _cell([each["means"][column.metric] for each in found])
                for column in experiment.columns
            }
            drawn[row.key] = [each["by_width"] for each in found]
        return cells, drawn


def _cell(values: list[float | None]) -> Cell:
    known = tuple(value for value in values if value is not None)
    return Cell(known) if len(known) == len(values) else Cell()


def _asked_regret(experiment: Experiment, row: Row, scale: Scale) -> Asked:
    own = {name: value for name, value in row.settings.items() if name != JUDGED_BY}
    column = replace(experiment.columns[0], metric=_ASKED)
    found = asked_of(experiment, replace(row, settings=own), column, scale)
    if found is None:
        raise ExperimentError(f"{experiment.name}: {row.key}: has no run")
    return replace(found, keeps_models=True)  # their posteriors are looked at once all have ended


def _numbers_regret(one: Chosen, asked: Asked, site: Site) -> dict[str, Any]:
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
        name: float(getattr(found, name).mean()) for name in REGRET_METRICS[:6]
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
        for name in ("width", *REGRET_METRICS[:4])
    }


REGRET_KIND = RegretKind()


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
            cells[row_key][column_key] = _cell_runs(asked, experiment.select, site)
        for column in experiment.columns:
            if column.metric == LENGTH:
                for row in experiment.rows:
                    if not row.is_literature:
                        cells[row.key][column.key] = _length(experiment, row, column, scale, site)
        return cells, {}


def _cell_runs(asked: Asked, select: str, site: Site) -> Cell:
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


RUNS_KIND = RunsKind()


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
        self, experiment: Experiment, scale: Scale, site: Site | None
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


THEORY_KIND = TheoryKind()


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        RUNS_KIND,
        BANDS_KIND,
        THEORY_KIND,
        HISTORY_KIND,
        REGRET_KIND,
    )
}


def kind_named(name: str) -> Kind:
    """The kind of that name."""
    return choose(KINDS, name, "kind of experiment", ExperimentError)
