"""An experiment's figure as PNG and SVG: what was measured, and beside it what is published."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from mzseek.core.errors import ExperimentError
from mzseek.core.registry import choose
from mzseek.decision.utilities import UTILITIES
from mzseek.experiments.experiment import Column, Row, experiment_named
from mzseek.experiments.results import Results, in_units
from mzseek.export.figures import BLUE, INK, MUTED, ORANGE, STYLE, Mark, blank, draw_marks

RED = "#b0413e"
COLOURS = (BLUE, ORANGE, "#3d8f6b", "#8a5fb0", RED, MUTED)
_DPI = 200
Point = tuple[float, float]


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
    keys = how["x"], how["y"]
    marks = []
    if "published" in how:
        printed = Results(experiment_named(how["published"]), "", {})
        for row in printed.experiment.rows:
            x, y = (printed.published(row.key, key) for key in keys)
            if x is not None and y is not None:
                marks.append(Mark(row.label, (x[0], y[0]), "published"))
    for row in results.experiment.rows:
        here = _point(results, row, *keys)
        if here is not None:
            marks.append(Mark(row.label, here, "thresholded"))
        decoded = _point(results, row, how["x"], how["decoded"]) if "decoded" in how else None
        if decoded is not None:
            kind = "control" if row.control else "decoded"
            marks.append(Mark("" if here else row.label, decoded, kind, start=here))
    for name, key in zip(("xlabel", "ylabel"), keys, strict=True):
        column = results.experiment.column(key)
        axes.set(**{name: column.label + (", %" if column.unit == "%" else "")})
    draw_marks(axes, marks)
    return figure


def lines(results: Results) -> Figure:
    """Draw columns along the rows, values of one setting; a line for each group of rows."""
    how = results.experiment.figure
    columns = [results.experiment.column(key) for key in how["columns"]]
    figure = blank((3.4 * len(columns) + 0.8, 3.2))
    for index, column in enumerate(columns):
        axes = figure.add_subplot(1, len(columns), index + 1)
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
            numbers = [(x, results.published(row.key, column.key)) for x, row in enumerate(rows)]
            printed = [(x, number[0]) for x, number in numbers if number is not None]
            axes.plot(
                [x for x, _ in printed], [y for _, y in printed], "--", color=colour, linewidth=0.9,
                marker="o", markerfacecolor="none", markersize=4,
            )  # fmt: skip
        axes.set_xticks(range(len(ticks)), ticks)
        axes.set_xlabel(how["x"])
        axes.set_ylabel(column.label + (", %" if column.unit == "%" else ""))
        axes.set_title(column.group, fontsize=9, color=INK)
        if index == 0:
            if results.experiment.published:
                axes.plot([], [], "--", color=MUTED, label="published, on MassSpecGym")
            axes.legend(frameon=False, fontsize=8)
    return figure


def bands(results: Results) -> Figure:
    """Draw the distributions of σ_min, σ_max and their difference: one line of panels a row."""
    rows, edges = results.experiment.rows, results.series["edges"]
    figure = blank((9.4, 0.6 + 1.6 * len(rows)))
    grid = figure.subplots(len(rows), 3, sharex=True, squeeze=False)
    for across, row in zip(grid, rows, strict=True):
        for axes, key, colour in zip(across, ("low", "high", "width"), COLOURS, strict=False):
            axes.stairs(results.series[row.key][key], edges, color=colour, fill=True, alpha=0.75)
            column = results.experiment.column(key)
            median, printed = _mean(results, row, column), results.published(row.key, key)
            text = f"{column.label}: median {median:.3f}"
            axes.axvline(median, color=INK, linewidth=1)
            if printed is not None:
                text += f" (published {printed[0]:.3f})"
                axes.axvline(printed[0], color=MUTED, linewidth=1, linestyle="--")
            axes.set_title(text, fontsize=8.5, color=INK)
            axes.set(yticks=[], xlim=(0, 1))
            axes.spines["left"].set_visible(False)
        across[0].set_ylabel(row.label, color=INK, fontsize=10)
    figure.supxlabel("similarity of the truth with its candidates", fontsize=9, color=INK)
    return figure


_MARKERS = {"hit": ("s", 9), "tanimoto": ("o", 5), "cosine": ("^", 6), "bits": ("D", 5)}


def worst(results: Results) -> Figure:
    """Draw regrets on worst cases by the number of bits, on lines of what is proved."""
    rows, columns = results.experiment.rows, results.experiment.columns
    bits = [column.settings["m"] for column in columns]
    figure = blank((8.4, 3.6))
    goals = list(dict.fromkeys(row.settings["decoded_for"] for row in rows))
    for axes, goal in zip(figure.subplots(1, len(goals), sharey=True), goals, strict=True):
        for row in rows:
            judged = row.settings["judged_by"]
            marker, size = _MARKERS[judged]
            values = [_mean(results, row, column) for column in columns]
            if row.settings["decoded_for"] != goal:
                continue
            colour = COLOURS[list(_MARKERS).index(judged)]
            if row.settings["value"] == "proved":
                axes.plot(bits, values, "--", color=colour, linewidth=1)
            else:
                axes.plot(
                    bits, values, marker, color=colour, markersize=size,
                    label=UTILITIES[judged].label,
                    markerfacecolor="none" if judged == "hit" else colour,
                )  # fmt: skip
        axes.set_xscale("log", base=2)
        axes.set_xticks(bits, [str(m) for m in bits])
        axes.minorticks_off()
        axes.set(ylim=(0, 1.02), xlabel="bits of a fingerprint, m")
        axes.plot([], [], "--", color=MUTED, label="proved")
        axes.set_title(f"decided for {UTILITIES[goal].label}", fontsize=10, color=INK)
        shown = axes.legend(frameon=False, fontsize=8, title="regret in", loc="lower right")
        shown.get_title().set_fontsize(8)
    figure.axes[0].set_ylabel("regret")
    return figure


def history(results: Results) -> Figure:
    """Two metrics on validation over the steps, one panel a row, an axis for each metric."""
    keys = results.experiment.figure["columns"]
    rows = results.experiment.rows
    figure = blank((3.5 * len(rows) + 0.4, 3.0))
    for panel, (axes, row) in enumerate(
        zip(figure.subplots(1, len(rows), squeeze=False)[0], rows, strict=True)
    ):
        for index, (key, colour) in enumerate(zip(keys, (BLUE, RED), strict=True)):
            column = results.experiment.column(key)
            axis = axes if index == 0 else axes.twinx()
            for curves in results.series[row.key]:
                values = [in_units(value, column) for value in curves[key]]
                best = max(range(len(values)), key=lambda at: curves[key][at])
                axis.plot(curves["step"], values, color=colour, linewidth=1.3, alpha=0.8)
                axis.plot(curves["step"][best], values[best], "o", color=colour, markersize=4)
            edge, other = ("left", "right") if index == 0 else ("right", "left")
            axis.spines[edge].set(visible=True, color=colour)
            axis.spines[other].set_visible(False)
            axis.tick_params(axis="y", colors=colour)
            if column.unit == "%" and axis.get_ylim()[1] > 100:
                axis.set_ylim(top=100.5)  # no axis of shares goes on beyond all
            if panel == (0 if index == 0 else len(rows) - 1):
                axis.set_ylabel(f"{column.label}, %", color=colour)
        axes.set_title(row.label, fontsize=10, color=INK)
        axes.set_xlabel("steps")
    return figure


_LOST = (
    ("similarity_lost", "similarity_bound", "similarity lost,\ndecided for HR@1, %"),
    ("hit_lost", "hit_bound", "HR@1 lost,\ndecided for similarity, %"),
)


def regret(results: Results) -> Figure:
    """Draw losses and the most that can be lost, by the width of the band."""
    rows = results.experiment.rows
    judges = list(dict.fromkeys(row.settings["judged_by"] for row in rows))
    losses = list(dict.fromkeys(row.settings["loss"] for row in rows))
    figure = blank((3.1 * len(judges) + 0.6, 5.0))
    grid = figure.subplots(2, len(judges), sharex="col", squeeze=False)
    for row in rows:
        if not results.series[row.key]:
            continue
        seeds = results.series[row.key]
        mean = {name: np.mean([seed[name] for seed in seeds], axis=0) for name in seeds[0]}
        colour = COLOURS[losses.index(row.settings["loss"]) % len(COLOURS)]
        for axes, (lost, bound, _) in zip(
            grid[:, judges.index(row.settings["judged_by"])], _LOST, strict=True
        ):
            axes.plot(
                mean["width"], 100 * mean[lost], marker="o", markersize=3.5, color=colour,
                linewidth=1.3, label=row.settings["loss"],
            )  # fmt: skip
            axes.plot(mean["width"], 100 * mean[bound], "--", color=colour, linewidth=1)
    for index, judge in enumerate(judges):
        grid[0, index].set_title(UTILITIES[judge].label, fontsize=10, color=INK)
        grid[1, index].set_xlabel("width of the band, σ max − σ min")
    for across, (_, _, label) in zip(grid, _LOST, strict=True):
        across[0].set_ylabel(label)
    grid[0, 0].plot([], [], "--", color=MUTED, label="at most")
    grid[0, 0].legend(frameon=False, fontsize=8)
    return figure


FIGURES: dict[str, Callable[[Results], Figure]] = {
    "front": front,
    "lines": lines,
    "bands": bands,
    "worst": worst,
    "history": history,
    "regret": regret,
}


def _mean(results: Results, row: Row, column: Column) -> float:
    cell = results.cell(row.key, column.key)
    return math.nan if cell is None else cell.mean


def _groups(results: Results, by: str | None) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in results.experiment.rows:
        groups.setdefault(str(row.settings[by]) if by else "measured here", []).append(row)
    return groups


def _tick(row: Row) -> str:
    return row.key.rpartition(" ")[2]


def _point(results: Results, row: Row, x: str, y: str) -> Point | None:
    cells = results.cell(row.key, x), results.cell(row.key, y)
    if cells[0] is None or cells[1] is None:
        return None
    across, up = (results.experiment.column(key) for key in (x, y))
    return in_units(cells[0].mean, across) or 0.0, in_units(cells[1].mean, up) or 0.0
