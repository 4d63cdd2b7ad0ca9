"""Figures as inline SVG: molecules, distributions, bands, reliability."""

import io
import itertools
import warnings
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.figure import Figure
from rdkit.Chem.Draw import rdMolDraw2D

from mzseek.chem import parse_molecule
from mzseek.core.text import visible
from mzseek.decision import Bands, Reliability
from mzseek.export.spectrum_plot import Box, overlap

INK = "#1d2733"
MUTED = "#7a8794"
BLUE = "#2f6db3"
ORANGE = "#d9772b"
GREEN, PURPLE = "#3d8f6b", "#8a5fb0"
_MAX_LABEL = 36  # characters
_BAND_PARTS = (("σ min", BLUE), ("σ max", ORANGE), ("σ max − σ min", GREEN))

# Any: matplotlib types the keys as one literal each.
STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.fonttype": "none",
    "svg.hashsalt": "mzseek",  # ids in the SVG, and so the page, are the same every time
    # Names are text: a run may be called $\frac$.
    "text.parse_math": False,
    "text.usetex": False,
}


def blank(size: tuple[float, float]) -> Figure:
    """Return a figure of this size in inches; pyplot would keep it open, and ask for a backend."""
    return Figure(figsize=size, layout="constrained")


def histogram_svg(
    groups: Mapping[str, Sequence[int] | npt.NDArray[np.integer]], xlabel: str, ylabel: str
) -> str:
    """Draw distributions of counts over each other."""
    with rc_context(STYLE):
        figure = blank((9.4, _height_for(groups, 2.7)))
        axes = figure.subplots()
        largest = max((int(np.max(values)) for values in groups.values() if len(values)), default=1)
        step = -(-largest // 50)  # whole numbers, so that a bar is a count or a run of them
        edges = (np.arange(0, largest + step + 1, step) + 0.5).tolist()
        colours = (BLUE, ORANGE, MUTED, GREEN, PURPLE)
        names, labels, outlines = drawn_labels(list(groups)), [], []
        for index, (name, values) in enumerate(zip(names, groups.values(), strict=True)):
            colour, first = colours[index % len(colours)], index == 0
            median = float(np.median(values)) if len(values) else 0.0
            labels.append(f"{name} (median {median:g})")
            _, _, bars = axes.hist(
                values,
                bins=edges,
                color=colour,
                histtype="stepfilled" if first else "step",
                alpha=0.35 if first else 1.0,
                linewidth=1.4,
            )
            outlines.append(cast(list[Any], bars)[0])
        axes.set(xlabel=xlabel, ylabel=ylabel, xlim=(0, edges[-1] + 0.5))
        legend(axes, outlines, labels, fontsize=9)
        return to_svg(figure)


def curves_svg(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], xlabel: str, ylabel: str
) -> str:
    """Draw named curves."""
    with rc_context(STYLE):
        figure = blank((4.6, _height_for(curves, 2.7)))
        axes = figure.subplots()
        colours = (BLUE, ORANGE, GREEN, MUTED, PURPLE)
        lines = []
        for (x, y), colour in zip(curves.values(), colours * len(curves), strict=False):
            lines += axes.plot(x, y, color=colour, marker=".", linewidth=1.4)
        axes.set(xlabel=xlabel, ylabel=ylabel)
        legend(axes, lines, drawn_labels(list(curves)))
        return to_svg(figure)


def _height_for(entries: Sized, usual: float) -> float:
    """Return the inches that a figure needs for its legend."""
    return max(usual, 0.6 + 0.19 * len(entries))


def drawn_labels(names: Sequence[str], max_length: int = _MAX_LABEL) -> list[str]:
    """Return names as a figure can hold them: long ones without their middle, all different.

    Examples
    --------
    >>> drawn_labels(["run-of-january-1", "run-of-february-1", "b"], max_length=9)
    ['run-…ry-1', 'ru…-1 (2)', 'b']
    """
    labels: list[str] = []
    for name in map(visible, names):
        ending, number = "", 1
        while (label := _shorten(name, max_length - len(ending)) + ending) in labels:
            number += 1
            ending = f" ({number})"
        labels.append(label)
    return labels


def _shorten(name: str, max_length: int) -> str:
    if len(name) <= max_length:
        return name
    head = max_length // 2
    return f"{name[:head]}…{name[len(name) - (max_length - head - 1) :]}"


def legend(
    axes: Any, handles: Sequence[Any], labels: Sequence[str], fontsize: int = 8, **options: Any
) -> None:
    """Add a legend of labels as they are; matplotlib's own drops those that begin with _."""
    if handles:
        numbers = [str(number) for number in range(len(handles))]
        drawn = axes.legend(handles, numbers, frameon=False, fontsize=fontsize, **options)
        for text, label in zip(drawn.get_texts(), labels, strict=True):
            text.set_text(label)


@dataclass(frozen=True)
class Mark:
    """A model in a figure of fingerprints against retrieval.

    Attributes
    ----------
    name : str
        Written beside it; may be empty.
    at : (float, float)
    kind : str
        A name of `MARKS`.
    errors : 2-by-2 array, optional
        Below and above in x, then in y.
    start : (float, float), optional
        Where an arrow to it begins.
    """

    name: str
    at: tuple[float, float]
    kind: str
    errors: npt.NDArray[np.float64] | None = None
    start: tuple[float, float] | None = None


# Marker, colour and label of each kind.
MARKS = {
    "thresholded": ("o", BLUE, "predicted fingerprint, thresholded"),
    "decoded": ("D", ORANGE, "posterior decoded for Tanimoto"),
    "control": ("D", MUTED, "the same without the spectrum"),
    "published": ("o", MUTED, "published, on MassSpecGym"),
}
_PALE = "#c5ccd3"


def draw_marks(axes: Any, marks: Sequence[Mark], legend_at: str = "best") -> None:
    """Draw marks with their intervals, arrows and names, and a legend of their kinds.

    Names fit the limits of the axes at this time.
    """
    for mark in marks:
        marker, colour, _ = MARKS[mark.kind]
        bars = {} if mark.errors is None else {"xerr": mark.errors[:1].T, "yerr": mark.errors[1:].T}
        axes.errorbar(
            *mark.at, **bars, fmt=marker, color=colour, ecolor=_PALE, elinewidth=0.8,
            markersize=5, markerfacecolor="none" if mark.kind == "published" else colour,
        )  # fmt: skip
        if mark.start is not None:
            axes.annotate(
                "", mark.at, mark.start,
                arrowprops={"arrowstyle": "->", "color": MUTED, "shrinkA": 6, "shrinkB": 6},
            )  # fmt: skip
    kinds = {mark.kind for mark in marks}
    for kind, (marker, colour, label) in MARKS.items():
        if kind in kinds:
            face = "none" if kind == "published" else colour
            axes.plot([], [], marker, color=colour, markerfacecolor=face, label=label)
    if kinds:
        axes.legend(frameon=False, fontsize=8, loc=legend_at)
    axes.get_xlim(), axes.get_ylim()  # scales the axes
    scale = 72 / axes.figure.dpi
    points = [axes.transData.transform(mark.at) * scale for mark in marks]
    taken: list[Box] = [(x - 4, y - 4, x + 4, y + 4) for x, y in points]
    ends = axes.bbox.x0 * scale, axes.bbox.x1 * scale
    for mark, (x, y) in zip(marks, points, strict=True):
        if mark.name:
            taken.append(_write_name(axes, mark, x, y, ends, taken))


def _write_name(
    axes: Any, mark: Mark, x: float, y: float, ends: tuple[float, float], taken: Sequence[Box]
) -> Box:
    """Write a name beside its mark, where it hides nothing and stays inside; returns its box."""
    is_quiet = mark.kind in ("control", "published")
    size = 8.5 if is_quiet else 10.0
    width, height = 0.62 * size * len(mark.name), 1.1 * size
    for dy, dx in itertools.product((5, -13, 18, -26), (8, -8)):
        start = x + dx if dx > 0 else x + dx - width
        box = (start, y + dy, start + width, y + dy + height)
        is_inside = ends[0] <= box[0] and box[2] <= ends[1]
        if is_inside and not any(overlap(box, other) for other in taken):
            break
    axes.annotate(
        mark.name, mark.at, textcoords="offset points", xytext=(dx, dy),
        ha="left" if dx > 0 else "right", color=MUTED if is_quiet else INK, fontsize=size,
        weight="normal" if is_quiet else "bold",
    )  # fmt: skip
    return box


def molecule_svg(smiles: str, width: int = 220, height: int = 160) -> str:
    """Draw a structure."""
    drawing = rdMolDraw2D.MolDraw2DSVG(width, height)
    drawing.drawOptions().clearBackground = False
    drawing.drawOptions().padding = 0.06
    rdMolDraw2D.PrepareAndDrawMolecule(drawing, parse_molecule(smiles))
    drawing.FinishDrawing()
    return inline_svg(drawing.GetDrawingText())


def to_svg(figure: Figure) -> str:
    """Return a figure as SVG that can stand in a page."""
    buffer = io.StringIO()
    with warnings.catch_warnings():
        # The program that shows the SVG draws the text, with fonts of its own.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return inline_svg(buffer.getvalue())


def inline_svg(svg: str) -> str:
    """Return SVG without the XML prologue, which HTML does not take."""
    return svg[svg.index("<svg") :]


def bands_svg(by_kind: dict[str, Bands], similarity: str = "tanimoto") -> str:
    """Draw histograms of σ_min, σ_max and the width, one row a fingerprint, medians marked."""
    edges = np.linspace(0, 1, 51)
    with rc_context(STYLE):
        figure = blank((9.4, 1.0 + 1.5 * len(by_kind)))
        grid = figure.subplots(len(by_kind), 3, sharex=True, squeeze=False)
        for row, (kind, bands) in zip(grid, by_kind.items(), strict=True):
            low, high = bands.low[bands.usable], bands.high[bands.usable]
            for axes, values, (part, colour) in zip(
                row, (low, high, high - low), _BAND_PARTS, strict=True
            ):
                axes.hist(values, bins=edges.tolist(), color=colour, alpha=0.75)
                median = float(np.median(values))
                axes.axvline(median, color=INK, linewidth=1)
                axes.annotate(
                    f"median {median:.3f}", (median, 0.93), xycoords=("data", "axes fraction"),
                    textcoords="offset points", xytext=(4, 0) if median < 0.6 else (-4, 0),
                    ha="left" if median < 0.6 else "right", va="top", fontsize=8, color=INK,
                )  # fmt: skip
                axes.set_yticks([])
                axes.spines["left"].set_visible(False)
                if axes in grid[0]:
                    axes.set_title(part, fontsize=10, color=INK)
            row[0].set_ylabel(kind, color=INK, fontsize=10)
        grid[-1][1].set_xlabel(f"{similarity} similarity", color=MUTED)
        return to_svg(figure)


def reliability_svg(by_label: dict[str, Reliability]) -> str:
    """Draw accuracy of the first answer over its probability, a point a bin, larger with more."""
    with rc_context(STYLE):
        figure = blank((4.2, _height_for(by_label, 3.6)))
        axes = figure.subplots()
        axes.plot([0, 100], [0, 100], color=MUTED, linewidth=0.8, linestyle=":")
        lines = []
        colours = (BLUE, ORANGE, GREEN, PURPLE, MUTED) * len(by_label)
        for curve, colour in zip(by_label.values(), colours, strict=False):
            filled = curve.share > 0
            points = 100 * curve.confidence[filled], 100 * curve.accuracy[filled]
            lines += axes.plot(*points, color=colour, linewidth=1)
            axes.scatter(*points, color=colour, s=8 + 120 * curve.share[filled])
        axes.set(xlim=(0, 100), ylim=(0, 100))
        axes.set(xlabel="probability of the first answer, %", ylabel="it is right, %")
        names = drawn_labels(list(by_label))
        errors = [f"(error {100 * curve.error:.1f})" for curve in by_label.values()]
        labels = [f"{name} {error}" for name, error in zip(names, errors, strict=True)]
        legend(axes, lines, labels, loc="upper left")
        return to_svg(figure)
