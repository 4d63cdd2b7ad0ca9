"""Claims of an experiment, and what its numbers say about them.

Numbers decide by intervals over seeds and molecules (`mzseek.experiments.results.contrast`): a
claim holds where its interval is on one side, does not hold where it is on the other, and is
undecided between.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from scipy.stats import norm, rankdata

from mzseek.core.errors import ExperimentError
from mzseek.core.registry import choose
from mzseek.experiments.experiment import Claim
from mzseek.experiments.results import LEVEL, Cell, Estimate, Results, contrast, in_units

HOLDS, FAILS, UNDECIDED = "holds here", "does not hold here", "undecided"
STATES = (HOLDS, FAILS, UNDECIDED)
Outcome = tuple[str, str]  # the state, and the numbers that decide it
_DRAWS = 2_000
_MAX_PERMUTED = 7  # rows whose orders are all counted; of more, some are drawn


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds (one of `STATES`), and because of which numbers."""

    claim: Claim
    state: str
    because: str


class Missing(Exception):
    """A number that a claim is about is not there."""


@dataclass(frozen=True)
class Tables:
    """The results that a claim is about, and those of other experiments.

    A row is named by its key, or by the ``experiment`` and ``row`` of another table.
    """

    results: Results
    others: Mapping[str, Results]

    def cell(self, row: Any, column: str) -> Cell:
        """Return a measured number."""
        results, key = self.results, str(row)
        if isinstance(row, Mapping):
            name, key = row["experiment"], str(row.get("row", ""))
            if name not in self.others:
                raise Missing(f"{name} was not run")
            results = self.others[name]
        cell = results.cell(key, column)
        if cell is None and key in results.not_run:
            raise Missing(f"{key} was not run: {results.not_run[key]}")
        if cell is None:
            raise Missing(f"{key} has no {column} here")
        return cell

    def measured(self, rows: Iterable[Any] | None, *columns: str) -> list[str]:
        """Return the rows (all but controls and literature by default) that have the columns."""
        rivals = [r.key for r in self.results.experiment.rows if not r.control and not r.literature]
        keys = map(str, rows or rivals)
        measured = [key for key in keys if all(self.results.cell(key, c) for c in columns)]
        if not measured:
            raise Missing(f"{' and '.join(columns)}: not measured")
        return measured

    def text(self, row: Any, column: str) -> str:
        """Return a row's name and its number."""
        name = f"{row['experiment']} {row['row']}" if isinstance(row, Mapping) else str(row)
        return f"{name} {self.number(self.cell(row, column).mean, column)}"

    def number(self, value: float, column: str) -> str:
        """Return a number in the unit of its column."""
        unit = self.results.experiment.column(column)
        shown = in_units(value, unit) or 0.0
        return f"{shown:.1f}" if unit.unit == "%" else f"{shown:.3g}"

    def difference(self, row: Any, other: Any, column: str) -> Estimate:
        """Return how far a row is above another."""
        return contrast([(1, self.cell(row, column)), (-1, self.cell(other, column))])

    def interval(self, estimate: Estimate, column: str) -> str:
        """Return an estimate with half its interval, in the unit of its column."""
        unit = self.results.experiment.column(column)
        value, half = (in_units(x, unit) or 0.0 for x in (estimate.value, estimate.half))
        digits = 1 if unit.unit == "%" else 3
        interval = "(one seed tells no spread)" if math.isinf(half) else f"± {half:.{digits}f}"
        return f"{value:+.{digits}f} {interval}"


def verdicts(
    results: Results, others: Mapping[str, Results] | None = None, *, tested: bool = True
) -> list[Verdict]:
    """Judge an experiment's claims by its results.

    ``others`` are results of other experiments, which claims across tables need; unless ``tested``,
    the numbers mean nothing, and no claim is said to hold or not.
    """
    judged = []
    for claim in results.experiment.claims:
        where = f"{results.experiment.name}: claim"
        check = choose(CLAIM_CHECKS, claim.kind, where, ExperimentError)
        try:
            state, because = check(Tables(results, others or {}), **claim.details)
        except Missing as missing:
            state, because = UNDECIDED, str(missing)
        except TypeError as error:
            raise ExperimentError(f"{where} {claim.says!r}: {error}") from error
        if not tested:
            state, because = UNDECIDED, f"{because}; at scale {results.scale} it says nothing"
        judged.append(Verdict(claim, state, because))
    return judged


def _all_positive(estimates: Iterable[Estimate]) -> str:
    """Whether all are above 0: holds, does not hold since one is below, or undecided."""
    estimates = list(estimates)
    if all(estimate.low > 0 for estimate in estimates):
        return HOLDS
    return FAILS if any(estimate.high < 0 for estimate in estimates) else UNDECIDED


def _rows(rows: Any) -> list[Any]:
    listed = rows if isinstance(rows, list) else [rows]
    return [row if isinstance(row, Mapping) else str(row) for row in listed]


def _best(
    tables: Tables, *, column: str, row: Any, among: Sequence[Any] | None = None,
    lowest: bool = False,
) -> Outcome:  # fmt: skip
    """Check that a row, or one of several, has the highest value of a column, or the lowest."""
    winners = _rows(row)
    for winner in winners:
        tables.cell(winner, column)  # else it says what is missing
    others = [key for key in tables.measured(among, column) if key not in winners]
    if not others:
        raise Missing("there is nothing to compare with")
    sign = -1 if lowest else 1
    gaps = {
        (winner, other): contrast(
            [(sign, tables.cell(winner, column)), (-sign, tables.cell(other, column))]
        )
        for winner in winners
        for other in others
    }
    closest = {
        winner: min((gaps[winner, o].low, gaps[winner, o].value, o) for o in others)
        for winner in winners
    }
    best = max(winners, key=lambda winner: closest[winner][:2])
    rival = closest[best][2]
    state = UNDECIDED
    if any(all(gaps[w, o].low > 0 for o in others) for w in winners):
        state = HOLDS
    elif any(all(gaps[w, o].high < 0 for w in winners) for o in others):
        state = FAILS
    shown = f"{tables.text(best, column)}, {tables.text(rival, column)}"
    gap = tables.difference(best, rival, column)
    return state, f"{shown}: {tables.interval(gap, column)}"


def _above(tables: Tables, *, column: str, row: Any, than: Any) -> Outcome:
    """Check that one or several rows are above others in a column."""
    gaps = [
        (tables.difference(high, low, column), high, low)
        for high in _rows(row)
        for low in _rows(than)
    ]
    closest, high, low = min(gaps, key=lambda gap: gap[0].value)
    shown = f"{tables.text(high, column)}, {tables.text(low, column)}"
    state = _all_positive(gap for gap, _, _ in gaps)
    return state, f"{shown}: {tables.interval(closest, column)}"


def _rising(tables: Tables, *, column: str, rows: Sequence[Any]) -> Outcome:
    """Check that a column rises along rows: its slope over their order."""
    keys = tables.measured(rows, column)
    if len(keys) < 3:
        raise Missing(f"{len(keys)} points, expected at least 3")
    position = np.arange(len(keys)) - (len(keys) - 1) / 2
    weights = position / (position @ position)
    slope = contrast((float(w), tables.cell(k, column)) for w, k in zip(weights, keys, strict=True))
    values = ", ".join(tables.number(tables.cell(key, column).mean, column) for key in keys)
    return _all_positive([slope]), f"{values}; a step {tables.interval(slope, column)}"


def _narrower(tables: Tables, *, columns: Sequence[str], row: Any, than: Any) -> Outcome:
    """Check that the first column exceeds the second by less in a row than in another."""
    first, second = columns
    gaps = {
        key: [(1, tables.cell(key, first)), (-1, tables.cell(key, second))] for key in (row, than)
    }
    less = contrast([*gaps[than], *((-weight, cell) for weight, cell in gaps[row])])
    shown = ", ".join(f"{key} {tables.interval(contrast(gap), first)}" for key, gap in gaps.items())
    return _all_positive([less]), f"{shown}; less by {tables.interval(less, first)}"


def _comparable(tables: Tables, *, columns: Sequence[str], row: Any, to: Any, by: float) -> Outcome:
    """Check that a row is as good as another in some column: the interval is within ``by`` of 0."""
    gaps = {column: tables.difference(row, to, column) for column in columns}
    closest = min(gaps, key=lambda column: max(abs(gaps[column].low), abs(gaps[column].high)))
    state = UNDECIDED
    if any(-by <= gap.low and gap.high <= by for gap in gaps.values()):
        state = HOLDS
    elif all(gap.low > by or gap.high < -by for gap in gaps.values()):
        state = FAILS
    shown = f"{closest}: {tables.text(row, closest)}, {tables.text(to, closest)}"
    margin = tables.number(by, closest)
    return state, f"{shown}: {tables.interval(gaps[closest], closest)}, within {margin}"


def _opposed(
    tables: Tables, *, columns: Sequence[str], rows: Sequence[Any] | None = None
) -> Outcome:
    """Over rows, the one column falls as the other rises."""
    keys = tables.measured(rows, *columns)
    x, y = ([[(1.0, tables.cell(key, column))] for key in keys] for column in columns)
    return _correlation(x, y, -1)


def _related(tables: Tables, *, x: Any, y: Any, sign: int, rows: Sequence[Any]) -> Outcome:
    """Over rows, one quantity goes with another; either may be a difference or another table's."""

    def terms(what: Any, row: Any) -> list[tuple[float, Cell]]:
        if isinstance(what, str):
            return [(1.0, tables.cell(row, what))]
        if "minus" in what:
            first, second = what["minus"]
            return [(1.0, tables.cell(row, first)), (-1.0, tables.cell(row, second))]
        other = {"experiment": what["experiment"], "row": row}
        return [(1.0, tables.cell(other, what["column"]))]

    pairs = []
    for row in rows:
        try:
            pairs.append((terms(x, row), terms(y, row)))
        except Missing as missing:
            reason = missing
    if not pairs:
        raise reason
    return _correlation([a for a, _ in pairs], [b for _, b in pairs], sign)


Quantities = Sequence[Sequence[tuple[float, Cell]]]


def _correlation(x: Quantities, y: Quantities, sign: int) -> Outcome:
    """Judge a rank correlation over rows.

    It must be one that rows in random order reach in less than 5 % of cases, and keep its sign when
    numbers are drawn from their intervals.
    """
    if len(x) < 3:
        raise Missing(f"{len(x)} points, expected at least 3")
    estimates = [[contrast(terms) for terms in quantity] for quantity in (x, y)]
    means = [np.array([e.value for e in quantity]) for quantity in estimates]
    if any(len(set(values)) < 2 for values in means):
        raise Missing("all are equal")
    correlation = float(_rank_correlation(*means))
    halves = [np.array([e.half for e in quantity]) for quantity in estimates]
    shown = f"rank correlation {correlation:+.2f} over {len(x)}"
    if any(np.isinf(half).any() for half in halves):
        return UNDECIDED, f"{shown}, one seed tells no spread"
    rng, scale = np.random.default_rng(0), norm.ppf((1 + LEVEL) / 2)
    drawn = [
        values + half / scale * rng.standard_normal((_DRAWS, len(values)))
        for values, half in zip(means, halves, strict=True)
    ]
    low, high = np.quantile(_rank_correlation(*drawn), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    if len(x) <= _MAX_PERMUTED:
        orders = np.array(list(permutations(range(len(x)))))
    else:
        orders = rng.permuted(np.tile(np.arange(len(x)), (_DRAWS, 1)), axis=1)
    by_chance = _rank_correlation(means[0][None], means[1][orders])
    share = float(np.mean(np.sign(correlation) * by_chance >= abs(correlation) - 1e-9))
    shown += f" ({low:+.2f} to {high:+.2f}), by chance in {100 * share:.0f} % of orders"
    if share >= 1 - LEVEL or low <= 0 <= high:
        return UNDECIDED, shown
    return HOLDS if sign * correlation > 0 else FAILS, shown


def _rank_correlation(x: Any, y: Any) -> Any:
    """Spearman's, along the last axis."""
    ranks = [rankdata(values, axis=-1) for values in (x, y)]
    centred = [rank - rank.mean(axis=-1, keepdims=True) for rank in ranks]
    norms = [np.sqrt(np.square(rank).sum(axis=-1)) for rank in centred]
    return (centred[0] * centred[1]).sum(axis=-1) / (norms[0] * norms[1])


def _equal(tables: Tables, *, column: str) -> Outcome:
    """Check that every row has what the paper prints."""
    results, wrong = tables.results, []
    for row in results.experiment.published:
        printed = results.printed(row, column)
        if printed and (here := tables.cell(row, column)).text != printed:
            wrong.append(f"{row}: {here.text}, published {printed}")
    return FAILS if wrong else HOLDS, "; ".join(wrong) or "all are equal"


def _within(
    tables: Tables, *, column: str, least: float = -math.inf, most: float = math.inf,
    rows: Sequence[Any] | None = None,
) -> Outcome:  # fmt: skip
    """Check that a column is within bounds, in every row or in those named."""
    keys = tables.measured(rows, column)
    estimates = {key: contrast([(1.0, tables.cell(key, column))]) for key in keys}
    low, high = (pick(keys, key=lambda key: estimates[key].value) for pick in (min, max))
    state = UNDECIDED
    if all(least <= e.low and e.high <= most for e in estimates.values()):
        state = HOLDS
    elif any(e.high < least or e.low > most for e in estimates.values()):
        state = FAILS
    shown = (
        f"{key} {tables.interval(estimates[key], column)}" for key in dict.fromkeys((low, high))
    )
    return state, ", ".join(shown)


def _beside(
    tables: Tables, *, rows: Mapping[Any, Any], by: float, at_least: bool = False
) -> Outcome:
    """Check that rows have the values of others in every column, or at least these."""
    worst, shown = -1.0, ""
    for row, other in rows.items():
        for column in tables.results.experiment.columns:
            here, there = (tables.cell(key, column.key).mean for key in (row, other))
            away = there - here if at_least else abs(there - here)
            if away > worst:
                worst = away
                shown = f"{row}, {column.label}: {here:.6g}, {other} {there:.6g}"
    return HOLDS if worst <= by else FAILS, f"farthest in {shown}"


def _differ(tables: Tables, *, columns: Sequence[str]) -> Outcome:
    """Check that two columns differ in some row."""
    first, second = columns
    gaps = {
        row: contrast([(1, tables.cell(row, first)), (-1, tables.cell(row, second))])
        for row in tables.measured(None, *columns)
    }
    shown = ", ".join(f"{row}: {tables.interval(gap, first)}" for row, gap in gaps.items())
    if any(gap.low > 0 or gap.high < 0 for gap in gaps.values()):
        return HOLDS, shown
    same = all(gap.value == 0 and gap.half == 0 for gap in gaps.values())
    return FAILS if same else UNDECIDED, shown


CLAIM_CHECKS: dict[str, Callable[..., Outcome]] = {
    "best": _best,
    "above": _above,
    "opposed": _opposed,
    "rising": _rising,
    "related": _related,
    "narrower": _narrower,
    "comparable": _comparable,
    "equal": _equal,
    "within": _within,
    "beside": _beside,
    "differ": _differ,
}
