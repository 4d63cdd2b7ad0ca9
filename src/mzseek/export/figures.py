"""Figures as inline SVG: spectra, molecules, distributions, bands, reliability."""

import io
import re
import warnings
from collections.abc import Mapping, Sequence, Sized
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.figure import Figure
from rdkit.Chem.Draw import rdMolDraw2D

from mzseek.chem import parse_molecule
from mzseek.core.text import visible
from mzseek.decision import Bands, Reliability

INK = "#1d2733"
MUTED = "#7a8794"
BLUE = "#2f6db3"
ORANGE = "#d9772b"
_LABEL_FLOOR = 3.0

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
_LONGEST = 36


def blank(size: tuple[float, float]) -> Figure:
    """A figure of so many inches that belongs to nobody else.

    One of pyplot's would stand in its list of open figures, and ask for a backend.
    """
    return Figure(figsize=size, layout="constrained")


def spectrum_svg(
    mz: npt.NDArray[np.floating],
    intensities: npt.NDArray[np.floating],
    precursor_mz: float,
    labels: int = 6,
) -> str:
    """Stick spectrum, the highest peaks labelled, the precursor marked."""
    with rc_context(STYLE):
        figure = blank((7.2, 2.5))
        axes = figure.subplots()
        relative = 100 * np.asarray(intensities, float) / float(np.max(intensities))
        near = np.abs(np.asarray(mz) - precursor_mz) < 0.05
        axes.vlines(mz, 0, relative, color=np.where(near, ORANGE, BLUE), linewidth=1.1)
        axes.plot([precursor_mz], [0], marker="^", color=ORANGE, markersize=5, clip_on=False)
        limit = max(float(np.max(mz)), precursor_mz) * 1.06
        for place in _spread(np.asarray(mz), relative, labels, limit * 0.07):
            axes.annotate(
                f"{mz[place]:.3f}",
                (mz[place], relative[place]),
                textcoords="offset points",
                xytext=(0, 2),
                ha="center",
                fontsize=7,
                color=INK,
            )
        axes.set(xlim=(max(0, float(np.min(mz)) - limit * 0.06), limit), ylim=(0, 116))
        axes.set(xlabel="m/z", ylabel="relative intensity (%)", yticks=[0, 50, 100])
        return to_svg(figure)


def _spread(
    mz: npt.NDArray[np.floating], relative: npt.NDArray[np.floating], most: int, distance: float
) -> list[int]:
    """The highest peaks, down to a few percent, that lie far enough apart for their labels."""
    chosen: list[int] = []
    for place in np.argsort(-relative):
        if len(chosen) == most or relative[place] < _LABEL_FLOOR:
            break
        if all(abs(mz[place] - mz[other]) > distance for other in chosen):
            chosen.append(int(place))
    return chosen


def histogram_svg(
    groups: Mapping[str, Sequence[int] | npt.NDArray[np.integer]], xlabel: str, ylabel: str
) -> str:
    """Distributions of counts, drawn over each other."""
    with rc_context(STYLE):
        figure = blank((9.4, height_for(groups, 2.7)))
        axes = figure.subplots()
        largest = max((int(np.max(values)) for values in groups.values() if len(values)), default=1)
        step = -(-largest // 50)  # whole numbers, so that a bar is a count or a run of them
        edges = (np.arange(0, largest + step + 1, step) + 0.5).tolist()
        colours = (BLUE, ORANGE, MUTED, "#3d8f6b", "#8a5fb0")
        names, labels, outlines = drawn_labels(list(groups)), [], []
        for place, (name, values) in enumerate(zip(names, groups.values(), strict=True)):
            colour, first = colours[place % len(colours)], place == 0
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
    """Lines by name, each labelled at its end."""
    with rc_context(STYLE):
        figure = blank((4.6, height_for(curves, 2.7)))
        axes = figure.subplots()
        colours = (BLUE, ORANGE, "#3d8f6b", MUTED, "#8a5fb0")
        lines = []
        for (x, y), colour in zip(curves.values(), colours * len(curves), strict=False):
            lines += axes.plot(x, y, color=colour, marker=".", linewidth=1.4)
        axes.set(xlabel=xlabel, ylabel=ylabel)
        legend(axes, lines, drawn_labels(list(curves)))
        return to_svg(figure)


def height_for(entries: Sized, usual: float) -> float:
    """Inches that a figure needs for its legend to have room."""
    return max(usual, 0.6 + 0.19 * len(entries))


def drawn_labels(names: Sequence[str], longest: int = _LONGEST) -> list[str]:
    """Names as a figure can hold them: long ones without their middle, and still no two alike.

    Examples
    --------
    >>> drawn_labels(["run-of-january-1", "run-of-february-1", "b"], longest=9)
    ['run-…ry-1', 'ru…-1 (2)', 'b']
    """
    labels: list[str] = []
    for name in map(visible, names):
        label, number = _shortened(name, longest), 1
        while label in labels:
            number += 1
            ending = f" ({number})"
            label = _shortened(name, longest - len(ending)) + ending
        labels.append(label)
    return labels


def _shortened(name: str, longest: int) -> str:
    if len(name) <= longest:
        return name
    head = longest // 2
    return f"{name[:head]}…{name[len(name) - (longest - head - 1) :]}"


def legend(
    axes: Any, handles: Sequence[Any], labels: Sequence[str], fontsize: int = 8, **options: Any
) -> None:
    """A legend of these labels as they are; matplotlib's own leaves out those that begin with _."""
    if handles:
        places = [str(place) for place in range(len(handles))]
        drawn = axes.legend(handles, places, frameon=False, fontsize=fontsize, **options)
        for text, label in zip(drawn.get_texts(), labels, strict=True):
            text.set_text(label)


def molecule_svg(smiles: str, width: int = 220, height: int = 160) -> str:
    """Structure drawing."""
    drawing = rdMolDraw2D.MolDraw2DSVG(width, height)
    drawing.drawOptions().clearBackground = False
    drawing.drawOptions().padding = 0.06
    rdMolDraw2D.PrepareAndDrawMolecule(drawing, parse_molecule(smiles))
    drawing.FinishDrawing()
    return _inline(drawing.GetDrawingText())


def to_svg(figure: Figure) -> str:
    """The figure as SVG that can stand in a page."""
    buffer = io.StringIO()
    with warnings.catch_warnings():
        # The text is drawn by whoever shows the SVG, with fonts of its own.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return _inline(buffer.getvalue())


def _inline(svg: str) -> str:
    """SVG without the XML prologue, which HTML does not take."""
    return re.sub(r"^.*?(?=<svg)", "", svg, count=1, flags=re.DOTALL)


_PARTS = (("σ min", BLUE), ("σ max", ORANGE), ("σ max − σ min", "#3d8f6b"))


def bands_svg(by_kind: dict[str, Bands], similarity: str = "tanimoto") -> str:
    """Histograms of σ_min, σ_max and the width, one row a fingerprint, medians marked."""
    edges = np.linspace(0, 1, 51)
    with rc_context(STYLE):
        figure = blank((9.4, 1.0 + 1.5 * len(by_kind)))
        grid = figure.subplots(len(by_kind), 3, sharex=True, squeeze=False)
        for row, (kind, bands) in zip(grid, by_kind.items(), strict=True):
            low, high = bands.low[bands.usable], bands.high[bands.usable]
            for axes, values, (part, colour) in zip(
                row, (low, high, high - low), _PARTS, strict=True
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


_COLOURS = (BLUE, ORANGE, "#3d8f6b", "#8a5fb0", MUTED)


def reliability_svg(by_label: dict[str, Reliability]) -> str:
    """Accuracy of the first answer over its probability, a point a bin, larger where more lie."""
    with rc_context(STYLE):
        figure = blank((4.2, height_for(by_label, 3.6)))
        axes = figure.subplots()
        axes.plot([0, 100], [0, 100], color=MUTED, linewidth=0.8, linestyle=":")
        lines = []
        for curve, colour in zip(by_label.values(), _COLOURS * len(by_label), strict=False):
            filled = curve.share > 0
            lines += axes.plot(
                100 * curve.confidence[filled], 100 * curve.accuracy[filled], color=colour,
                linewidth=1,
            )  # fmt: skip
            axes.scatter(
                100 * curve.confidence[filled], 100 * curve.accuracy[filled], color=colour,
                s=8 + 120 * curve.share[filled],
            )  # fmt: skip
        axes.set(xlim=(0, 100), ylim=(0, 100))
        axes.set(xlabel="probability of the first answer, %", ylabel="it is right, %")
        names = drawn_labels(list(by_label))
        errors = [f"(error {100 * curve.error:.1f})" for curve in by_label.values()]
        labels = [f"{name} {error}" for name, error in zip(names, errors, strict=True)]
        legend(axes, lines, labels, loc="upper left")
        return to_svg(figure)
