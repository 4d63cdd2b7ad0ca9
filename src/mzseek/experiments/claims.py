"""The paper's sentences, set against numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.stats import spearmanr

from mzseek.errors import ExperimentError
from mzseek.experiments.experiment import Claim
from mzseek.experiments.results import Results, in_units
from mzseek.registry import choose

HOLDS, FAILS, UNTESTED = "holds here", "does not hold here", "not tested"
Others = Mapping[str, Results]


@dataclass(frozen=True)
class Verdict:
    """What numbers say of a claim.

    Attributes
    ----------
    claim : Claim
    state : str
        `HOLDS`, `FAILS` or `UNTESTED`.
    because : str
        The numbers that decided it.
    """

    claim: Claim
    state: str
    because: str


class Untested(Exception):
    """A number that a claim is about is not there."""


def verdicts(
    results: Results, others: Others | None = None, *, tested: bool = True
) -> list[Verdict]:
    """What these results say of the experiment's claims.

    Parameters
    ----------
    results : Results
    others : mapping of str to Results, optional
        Other experiments, which claims across tables need.
    tested : bool
        Whether the numbers mean something; else no claim is said to hold or not.
    """
    found = []
    for claim in results.experiment.claims:
        check = choose(CHECKS, claim.kind, f"{results.experiment.name}: claim", ExperimentError)
        try:
            holds, because = check(results, others or {}, **claim.details)
        except Untested as missing:
            found.append(Verdict(claim, UNTESTED, str(missing)))
        except TypeError as error:
            raise ExperimentError(
                f"{results.experiment.name}: claim {claim.says!r}: {error}"
            ) from error
        else:
            state = (HOLDS if holds else FAILS) if tested else UNTESTED
            note = "" if tested else f"; at scale {results.scale} it says nothing"
            found.append(Verdict(claim, state, because + note))
    return found


def _best(
    results: Results, _: Others, *, column: str, row: Any, among: Sequence[Any] | None = None,
    lowest: bool = False,
) -> tuple[bool, str]:  # fmt: skip
    """A row, or one of several, has the highest mean of a column, or the lowest."""
    winners = [str(one) for one in (row if isinstance(row, list) else [row])]
    rows = among or [
        other.key
        for other in results.experiment.rows
        if not other.is_control and not other.is_literature and results.cell(other.key, column)
    ]
    means = {str(one): _mean(results, str(one), column) for one in rows}
    for winner in winners:
        means.setdefault(winner, _mean(results, winner, column))
    if len(means) < 2:
        raise Untested("there is nothing to compare with")
    order = sorted(means, key=lambda one: means[one] if lowest else -means[one])
    if means[order[0]] == means[order[1]]:
        raise Untested(f"{order[0]} and {order[1]} are equal")
    shown = ", ".join(f"{one} {_text(results, column, means[one])}" for one in order[:3])
    return order[0] in winners, shown


def _above(results: Results, _: Others, *, column: str, row: Any, than: Any) -> tuple[bool, str]:
    """One or several rows are above others in a column."""
    rows = [str(one) for one in (row if isinstance(row, list) else [row])]
    lower = [str(one) for one in (than if isinstance(than, list) else [than])]
    high = {one: _mean(results, one, column) for one in rows}
    low = {one: _mean(results, one, column) for one in lower}
    worst, best = min(high, key=lambda k: high[k]), max(low, key=lambda k: low[k])
    shown = (
        f"{worst} {_text(results, column, high[worst])}, {best} {_text(results, column, low[best])}"
    )
    return high[worst] > low[best], shown


def _opposed(
    results: Results, _: Others, *, columns: Sequence[str], rows: Sequence[Any] | None = None
) -> tuple[bool, str]:
    """Over rows, the one column falls as the other rises."""
    x, y = columns
    keys = [
        str(row)
        for row in rows or [r.key for r in results.experiment.rows if not r.is_control]
        if results.cell(str(row), x) and results.cell(str(row), y)
    ]
    return _correlation(
        [_mean(results, k, x) for k in keys], [_mean(results, k, y) for k in keys], -1
    )


def _rising(results: Results, _: Others, *, column: str, rows: Sequence[Any]) -> tuple[bool, str]:
    """A column rises along rows."""
    keys = [str(row) for row in rows if results.cell(str(row), column)]
    values = [_mean(results, key, column) for key in keys]
    holds, shown = _correlation(list(range(len(keys))), values, 1)
    return holds, f"{', '.join(_text(results, column, value) for value in values)}; {shown}"


def _related(
    results: Results, others: Others, *, x: Any, y: Any, sign: int, rows: Sequence[Any]
) -> tuple[bool, str]:
    """Over rows, one quantity goes with another; either may be a difference or another table's."""
    pairs = []
    for row in rows:
        try:
            pairs.append((_quantity(results, others, x, row), _quantity(results, others, y, row)))
        except Untested:
            continue
    return _correlation([a for a, _ in pairs], [b for _, b in pairs], sign)


def _equal(results: Results, _: Others, *, column: str) -> tuple[bool, str]:
    """Every row has what the paper prints."""
    wrong = []
    for row, texts in results.experiment.texts.items():
        if column not in texts:
            continue
        cell = results.cell(row, column)
        if cell is None:
            raise Untested(f"{row} was not measured")
        if cell.text != texts[column]:
            wrong.append(f"{row}: {cell.text}, published {texts[column]}")
    for row, values in results.experiment.published.items():
        if column not in values:
            continue
        cell = results.cell(row, column)
        if cell is None:
            raise Untested(f"{row} was not measured")
        here = in_units(cell.mean, results.experiment.column(column))
        if abs((here or 0.0) - values[column][0]) > 1e-9:
            wrong.append(f"{row}: {here:g}, published {values[column][0]:g}")
    return not wrong, "; ".join(wrong) or "all are equal"


def _never_exceeds(results: Results, _: Others, *, column: str, bound: str) -> tuple[bool, str]:
    """In every row, a column is at most another one."""
    pairs = {
        row.key: (_mean(results, row.key, column), _mean(results, row.key, bound))
        for row in results.experiment.rows
        if results.cell(row.key, column) and results.cell(row.key, bound)
    }
    if not pairs:
        raise Untested(f"{column} was not measured")
    tight = max(pairs, key=lambda key: pairs[key][0] - pairs[key][1])
    value, most = pairs[tight]
    shown = (
        f"closest in {tight}: {_text(results, column, value)}, bound {_text(results, bound, most)}"
    )
    return value <= most + 1e-9, shown


def _within(
    results: Results, _: Others, *, column: str, least: float | None = None,
    most: float | None = None, rows: Sequence[Any] | None = None,
) -> tuple[bool, str]:  # fmt: skip
    """In every row, or in those named, a column is at least and at most so much."""
    keys = [str(row) for row in rows or [row.key for row in results.experiment.rows]]
    means = {key: _mean(results, key, column) for key in keys if results.cell(key, column)}
    if not means:
        raise Untested(f"{column} was not measured")
    low, high = (pick(means, key=lambda key: means[key]) for pick in (min, max))
    shown = f"from {_text(results, column, means[low])} ({low})"
    shown += f" to {_text(results, column, means[high])} ({high})"
    holds = (least is None or means[low] >= least) and (most is None or means[high] <= most)
    return holds, shown


def _beside(
    results: Results, _: Others, *, rows: Mapping[Any, Any], by: float, at_least: bool = False
) -> tuple[bool, str]:
    """In every column, rows have the values of others, or at least these."""
    worst, shown = -1.0, ""
    for row, other in rows.items():
        for column in results.experiment.columns:
            here = _mean(results, str(row), column.key)
            there = _mean(results, str(other), column.key)
            away = there - here if at_least else abs(there - here)
            if away > worst:
                worst = away
                shown = f"{row}, {column.label}: {here:.6g}, {other} {there:.6g}"
    return worst <= by, f"farthest in {shown}"


def _differ(results: Results, _: Others, *, columns: Sequence[str]) -> tuple[bool, str]:
    """In some row, two columns are not the same."""
    x, y = columns
    pairs = {
        row.key: (_mean(results, row.key, x), _mean(results, row.key, y))
        for row in results.experiment.rows
        if results.cell(row.key, x) and results.cell(row.key, y)
    }
    if not pairs:
        raise Untested(f"{x} and {y} were not measured")
    shown = ", ".join(
        f"{row}: {_text(results, x, a)} and {_text(results, y, b)}" for row, (a, b) in pairs.items()
    )
    return any(a != b for a, b in pairs.values()), shown


CHECKS: dict[str, Callable[..., tuple[bool, str]]] = {
    "best": _best,
    "above": _above,
    "opposed": _opposed,
    "rising": _rising,
    "related": _related,
    "equal": _equal,
    "never_exceeds": _never_exceeds,
    "within": _within,
    "beside": _beside,
    "differ": _differ,
}


def _quantity(results: Results, others: Others, what: Any, row: Any) -> float:
    if isinstance(what, str):
        return _mean(results, str(row), what)
    if "minus" in what:
        first, second = what["minus"]
        return _mean(results, str(row), first) - _mean(results, str(row), second)
    other = others.get(what["experiment"])
    if other is None:
        raise Untested(f"{what['experiment']} was not run")
    return _mean(other, str(row), what["column"])


def _correlation(x: Sequence[float], y: Sequence[float], sign: int) -> tuple[bool, str]:
    if len(x) < 3:
        raise Untested(f"{len(x)} points, expected at least 3")
    if len(set(x)) < 2 or len(set(y)) < 2:
        raise Untested("all are equal")
    found = float(spearmanr(x, y).statistic)
    return sign * found > 0, f"rank correlation {found:+.2f} over {len(x)}"


def _mean(results: Results, row: str, column: str) -> float:
    cell = results.cell(row, column)
    if cell is None:
        raise Untested(f"{row} has no {column} here")
    return cell.mean


def _text(results: Results, column: str, value: float) -> str:
    shown = in_units(value, results.experiment.column(column)) or 0.0
    return f"{shown:.1f}" if results.experiment.column(column).unit == "%" else f"{shown:.3g}"
