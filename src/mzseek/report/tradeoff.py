"""The trade-off between fingerprints and retrieval: a table and a picture."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib import rc_context

from mzseek.metrics import METRICS as FACTS
from mzseek.report.figures import BLUE, INK, MUTED, ORANGE, STYLE, blank, drawn_labels, to_svg
from mzseek.report.shown import CHANCE, Shown, labelled

METRICS = ("hit_rate@1", "hit_rate@5", "hit_rate@20", "tanimoto")
DECODED = "tanimoto, decoded"
LABELS = {**{name: FACTS[name].label for name in METRICS}, DECODED: "Tanimoto, decoded"}


@dataclass(frozen=True)
class Row:
    """A model's numbers as fractions; None where it has no such number.

    Attributes
    ----------
    name : str
    values : dict of str to float or None
        By metric; where the posterior was decoded, also ``DECODED``: the Tanimoto of the decision
        decoded for it.
    intervals : dict of str to (float, float)
    control : bool
        It never sees the spectrum.
    """

    name: str
    values: dict[str, float | None]
    intervals: dict[str, tuple[float, float]]
    control: bool = False


def tradeoff_rows(shown: Sequence[Shown]) -> list[Row]:
    """One row for each model, the controls last, and below them what chance would reach."""
    beliefs = [each.beliefs for each in shown if each.beliefs is not None]
    metrics = (*METRICS, DECODED) if beliefs else METRICS
    rows = []
    for label, each in sorted(labelled(shown).items(), key=lambda item: item[1].control):
        intervals = each.evaluation.intervals()
        if each.beliefs is not None:
            intervals[DECODED] = each.beliefs.decoded.interval("tanimoto", "tanimoto")
        rows.append(
            Row(
                label,
                {m: intervals[m].mean if m in intervals else None for m in metrics},
                {m: (i.low, i.high) for m, i in intervals.items()},
                each.control,
            )
        )
    if shown:
        values: dict[str, float | None] = {m: shown[0].evaluation.chance.get(m) for m in metrics}
        if beliefs:
            values[DECODED] = beliefs[0].uniform.interval("tanimoto", "tanimoto").mean
        rows.append(Row(CHANCE, values, {}, True))
    return rows


def tradeoff_svg(rows: list[Row], x: str = "hit_rate@1") -> str:
    """Retrieval against fingerprint similarity, one point for each model, the controls as lines.

    Where posteriors were decoded, each model has a second point: the same ranking, and the
    fingerprint that its posterior decides for.
    """
    names = drawn_labels([row.name for row in rows])
    rows = [replace(row, name=name) for row, name in zip(rows, names, strict=True)]
    with rc_context(STYLE):
        figure = blank((6.4, 4.3))
        axes = figure.subplots()
        drawn = [row for row in rows if row.values[x] is not None]
        points = [row for row in drawn if _is_point(row)]
        decoded = [row for row in drawn if row.values.get(DECODED) is not None]
        values = [100 * (row.values["tanimoto"] or 0.0) for row in points]
        values += [100 * (row.values[DECODED] or 0.0) for row in decoded]
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        margin = max(1.0, 0.2 * (high - low))
        axes.set_ylim(low - 2 * margin, high + margin)
        places = [100 * (row.values[x] or 0.0) for row in drawn] or [0.0]
        places += [100 * bound for row in drawn for bound in row.intervals.get(x, ())]
        room = max(1.0, 0.08 * (max(places) - min(places)))
        axes.set_xlim(max(0.0, min(places) - room), max(places) + 1.6 * room)
        for row in drawn:
            if row not in decoded and not _is_point(row):
                _line(axes, row, x)
        labels = _Labels()
        for row in points:
            _point(axes, row, x, "tanimoto", BLUE, "o", None if row in decoded else labels)
        for row in decoded:
            if _is_point(row):
                _arrow(axes, row, x)
            colour = MUTED if row.control else ORANGE
            _point(axes, row, x, DECODED, colour, "D", labels)
        axes.set_xlabel(f"{x.replace('hit_rate', 'hit rate ')}, %")
        axes.set_ylabel("Tanimoto of the fingerprint decided for, %")
        if decoded and points:
            _legend(axes)
        return to_svg(figure)


def _is_point(row: Row) -> bool:
    """Controls have a place on one axis only, also where they predict a fingerprint."""
    return row.values["tanimoto"] is not None and not row.control


def _point(
    axes: Any, row: Row, x: str, y: str, colour: str, marker: str, named: "_Labels | None"
) -> None:
    at = np.array([100 * (row.values[x] or 0.0), 100 * (row.values[y] or 0.0)])
    whiskers = {}
    if x in row.intervals and y in row.intervals:
        errors = np.abs(100 * np.array([row.intervals[x], row.intervals[y]]) - at[:, None])
        whiskers = {"xerr": errors[:1].T, "yerr": errors[1:].T}
    axes.errorbar(
        *at, **whiskers, fmt=marker, color=colour, ecolor="#c5ccd3", elinewidth=0.8, markersize=6,
    )  # fmt: skip
    if named is not None:
        named.put(axes, row.name, at, muted=row.control)


class _Labels:
    """Names beside points, each where it hides none of those before it."""

    _PLACES = ((8, 5), (-8, 5), (8, -13), (-8, -13), (8, 18), (-8, 18), (8, -26), (-8, -26))

    def __init__(self) -> None:
        self._taken: list[tuple[float, float, float, float]] = []

    def put(self, axes: Any, text: str, at: Any, *, muted: bool) -> None:
        size = 8.5 if muted else 10.0
        x, y = axes.transData.transform(at) * 72 / axes.figure.dpi
        width, height = 0.62 * size * len(text), 1.1 * size
        for dx, dy in self._PLACES:
            left = x + dx if dx > 0 else x + dx - width
            box = (left, y + dy, left + width, y + dy + height)
            if not any(_overlap(box, other) for other in self._taken):
                break
        self._taken += [box, (x - 4, y - 4, x + 4, y + 4)]
        axes.annotate(
            text, at, textcoords="offset points", xytext=(dx, dy), ha="left" if dx > 0 else "right",
            color=MUTED if muted else INK, fontsize=size, weight="normal" if muted else "bold",
        )  # fmt: skip


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _arrow(axes: Any, row: Row, x: str) -> None:
    """From the thresholded fingerprint to the one decoded."""
    place = 100 * (row.values[x] or 0.0)
    start, end = (100 * (row.values[y] or 0.0) for y in ("tanimoto", DECODED))
    axes.annotate(
        "", (place, end), (place, start),
        arrowprops={"arrowstyle": "->", "color": MUTED, "shrinkA": 6, "shrinkB": 6},
    )  # fmt: skip


def _legend(axes: Any) -> None:
    for marker, colour, label in (
        ("o", BLUE, "predicted fingerprint, thresholded"),
        ("D", ORANGE, "posterior decoded for Tanimoto"),
        ("D", MUTED, "the same without the spectrum"),
    ):
        axes.plot([], [], marker, color=colour, label=label)
    axes.legend(frameon=False, fontsize=8, loc="lower right")


def _line(axes: Any, row: Row, x: str) -> None:
    """A model without a fingerprint has a place on one axis only."""
    place = 100 * (row.values[x] or 0.0)
    color = MUTED if row.control else ORANGE
    axes.axvline(place, color=color, linewidth=1.2, linestyle=":" if row.control else "--")
    label = row.name if row.control else f"{row.name} (no fingerprint)"
    axes.annotate(
        label, (place, 0.03), xycoords=("data", "axes fraction"), textcoords="offset points",
        xytext=(-4, 0), rotation=90, va="bottom", ha="right", color=color, fontsize=8.5,
    )  # fmt: skip
