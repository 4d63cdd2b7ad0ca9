"""An experiment's figure as PNG and SVG: what was measured, and beside it what is published."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from mzseek.errors import ExperimentError
from mzseek.experiments.experiment import Row
from mzseek.experiments.results import Results, in_units
from mzseek.registry import choose
from mzseek.report.figures import BLUE, INK, MUTED, ORANGE, STYLE, blank

COLOURS = (BLUE, ORANGE, "#3d8f6b", "#8a5fb0", "#b0413e", MUTED)
_DPI = 200
_ARROW: Any = {"arrowstyle": "->", "color": "#c5ccd3", "shrinkA": 5, "shrinkB": 5}


def draw(results: Results, folder: Path) -> Path | None:
    """Write ``figure.svg`` and ``figure.png``; None if the experiment has no figure."""
    how = results.experiment.figure
    if not how:
        return None
    kind = choose(FIGURES, how.get("kind", ""), "kind of figure", ExperimentError)
    with rc_context(STYLE):
        figure = kind(results)
        figure.savefig(folder / "figure.svg", metadata={"Date": None})
        figure.savefig(folder / "figure.png", dpi=_DPI, metadata={"Software": None})
    return folder / "figure.svg"


def front(results: Results) -> Figure:
    """Fingerprints against retrieval: one point a row, hollow where it is the paper's."""
    how = results.experiment.figure
    figure = blank((6.4, 4.6))
    axes = figure.subplots()
    for row in results.experiment.rows:
        here = _point(results, row, how["x"], how["y"])
        there = _published_point(results, row, how["x"], how["y"])
        if here is not None:
            axes.plot(*here, "o", color=BLUE, markersize=6)
            _named(axes, row.label, here)
        if there is not None:
            axes.plot(*there, "o", markerfacecolor="none", color=MUTED, markersize=5)
        decoded = _point(results, row, how["x"], how["decoded"]) if "decoded" in how else None
        if decoded is not None:
            if here is not None:
                axes.annotate("", decoded, here, arrowprops=_ARROW)
            axes.plot(*decoded, "D", color=MUTED if row.is_control else ORANGE, markersize=5)
            if here is None:
                _named(axes, row.label, decoded)
    _label(axes, results, how["x"], how["y"])
    entries = [("o", BLUE, BLUE, "thresholded fingerprint")]
    if "decoded" in how:
        entries.append(("D", ORANGE, ORANGE, "posterior decoded for Tanimoto"))
        entries.append(("D", MUTED, MUTED, "the same without the spectrum"))
    if results.experiment.published:
        entries.append(("o", MUTED, "none", "published, on MassSpecGym"))
    for marker, colour, face, label in entries:
        axes.plot([], [], marker, color=colour, markerfacecolor=face, label=label)
    axes.legend(frameon=False, fontsize=8)
    return figure


def lines(results: Results) -> Figure:
    """Columns along the rows, which are values of one setting; a line for each group of rows."""
    how = results.experiment.figure
    columns = [results.experiment.column(key) for key in how["columns"]]
    figure = blank((3.4 * len(columns) + 0.8, 3.2))
    for place, column in enumerate(columns):
        axes = figure.add_subplot(1, len(columns), place + 1)
        scaled = 100 if column.unit == "%" else 1
        for number, (group, rows) in enumerate(_groups(results, how.get("by")).items()):
            colour = COLOURS[number % len(COLOURS)]
            here = [(_tick(row), results.cell(row.key, column.key)) for row in rows]
            ticks = [tick for tick, _ in here]
            known = [(x, cell) for x, (_, cell) in enumerate(here) if cell is not None]
            axes.errorbar(
                [x for x, _ in known], [scaled * cell.mean for _, cell in known],
                [scaled * (cell.sd or 0.0) for _, cell in known], marker="o",
                color=colour, label=group, capsize=2, linewidth=1.3, markersize=4,
            )  # fmt: skip
            printed = [(x, results.published(row.key, column.key)) for x, row in enumerate(rows)]
            told = [(x, number[0]) for x, number in printed if number is not None]
            axes.plot(
                [x for x, _ in told], [y for _, y in told], "--", color=colour, linewidth=0.9,
                marker="o", markerfacecolor="none", markersize=4,
            )  # fmt: skip
        axes.set_xticks(range(len(ticks)), ticks)
        axes.set_xlabel(how["x"])
        axes.set_ylabel(column.label + (", %" if column.unit == "%" else ""))
        axes.set_title(column.group, fontsize=9, color=INK)
        if place == 0:
            if results.experiment.published:
                axes.plot([], [], "--", color=MUTED, label="published, on MassSpecGym")
            axes.legend(frameon=False, fontsize=8)
    return figure


FIGURES: dict[str, Callable[[Results], Figure]] = {"front": front, "lines": lines}


def _groups(results: Results, by: str | None) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in results.experiment.rows:
        found.setdefault(str(row.settings[by]) if by else "measured here", []).append(row)
    return found


def _tick(row: Row) -> str:
    return row.key.rpartition(" ")[2]


def _point(results: Results, row: Row, x: str, y: str) -> tuple[float, float] | None:
    cells = [(results.cell(row.key, key), results.experiment.column(key)) for key in (x, y)]
    if any(cell is None for cell, _ in cells):
        return None
    across, up = (in_units(cell.mean, column) for cell, column in cells if cell is not None)
    assert across is not None
    assert up is not None
    return across, up


def _published_point(results: Results, row: Row, x: str, y: str) -> tuple[float, float] | None:
    across, up = results.published(row.key, x), results.published(row.key, y)
    return None if across is None or up is None else (across[0], up[0])


def _named(axes: Any, text: str, at: tuple[float, float]) -> None:
    axes.annotate(text, at, textcoords="offset points", xytext=(7, 4), fontsize=8.5, color=INK)


def _label(axes: Any, results: Results, x: str, y: str) -> None:
    across, up = (results.experiment.column(key) for key in (x, y))
    axes.set_xlabel(across.label + (", %" if across.unit == "%" else ""))
    axes.set_ylabel(up.label + (", %" if up.unit == "%" else ""))
