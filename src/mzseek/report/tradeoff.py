"""The trade-off between fingerprints and retrieval: a table and a picture."""

from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from mzseek.report.figures import BLUE, INK, MUTED, ORANGE, STYLE, to_svg
from mzseek.training.evaluate import Evaluation

METRICS = ("hit_rate@1", "hit_rate@5", "hit_rate@20", "tanimoto")


@dataclass(frozen=True)
class Row:
    """A model's numbers as fractions; None where it has no such number.

    Attributes
    ----------
    name : str
    values : dict of str to float or None
    intervals : dict of str to (float, float)
    control : bool
        It never sees the spectrum.
    """

    name: str
    values: dict[str, float | None]
    intervals: dict[str, tuple[float, float]]
    control: bool = False


def tradeoff_rows(found: dict[str, Evaluation], controls: tuple[str, ...] = ()) -> list[Row]:
    """One row a model, the controls last, and below them what chance would reach."""
    rows = []
    for name in sorted(found, key=lambda name: name in controls):
        intervals = found[name].intervals()
        rows.append(
            Row(
                name,
                {m: intervals[m].mean if m in intervals else None for m in METRICS},
                {m: (i.low, i.high) for m, i in intervals.items()},
                name in controls,
            )
        )
    if found:
        chance = next(iter(found.values())).chance
        rows.append(Row("random", {m: chance.get(m) for m in METRICS}, {}, True))
    return rows


def tradeoff_svg(rows: list[Row], x: str = "hit_rate@1") -> str:
    """Retrieval against fingerprint similarity, one point a model, the controls as lines."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.4, 3.9), layout="constrained")
        drawn = [row for row in rows if row.values[x] is not None]
        points = [row for row in drawn if _is_point(row)]
        for row in points:
            _point(axes, row, x)
        values = [100 * (row.values["tanimoto"] or 0.0) for row in points]
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        margin = max(1.0, 0.35 * (high - low))
        axes.set_ylim(low - 2 * margin, high + margin)
        places = [100 * (row.values[x] or 0.0) for row in drawn] or [0.0]
        room = max(1.0, 0.12 * (max(places) - min(places)))
        axes.set_xlim(max(0.0, min(places) - room), max(places) + room)
        for row in drawn:
            if not _is_point(row):
                _line(axes, row, x)
        axes.set_xlabel(f"{x.replace('hit_rate', 'hit rate ')}, %")
        axes.set_ylabel("Tanimoto of the predicted fingerprint, %")
        return to_svg(figure)


def _is_point(row: Row) -> bool:
    """Controls have a place on one axis only, also where they predict a fingerprint."""
    return row.values["tanimoto"] is not None and not row.control


def _point(axes: Any, row: Row, x: str) -> None:
    at = np.array([100 * (row.values[x] or 0.0), 100 * (row.values["tanimoto"] or 0.0)])
    bounds = np.array([row.intervals.get(x, (0, 0)), row.intervals.get("tanimoto", (0, 0))]) * 100
    errors = np.abs(bounds - at[:, None])
    axes.errorbar(
        *at, xerr=errors[:1].T, yerr=errors[1:].T, fmt="o", color=BLUE, ecolor=MUTED,
        elinewidth=0.8, markersize=6,
    )  # fmt: skip
    axes.annotate(
        row.name,
        at,
        textcoords="offset points",
        xytext=(7, 6),
        color=INK,
        fontsize=10,
        weight="bold",
    )


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
