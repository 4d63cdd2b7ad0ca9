"""Reliability diagrams: how sure a model is, against how often it is right."""

from matplotlib import rc_context

from mzseek.decision import Reliability
from mzseek.report.figures import (
    BLUE,
    MUTED,
    ORANGE,
    STYLE,
    blank,
    drawn_labels,
    height_for,
    legend,
    to_svg,
)

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
