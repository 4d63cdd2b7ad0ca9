"""Distributions of similarity bands, drawn as in the paper."""

import numpy as np
from matplotlib import rc_context

from mzseek.decision import Bands
from mzseek.report.figures import BLUE, INK, MUTED, ORANGE, STYLE, blank, to_svg

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
