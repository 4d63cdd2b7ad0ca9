"""A spectrum with annotated peaks, alone or above a reference: matplotlib, or plain SVG."""

import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mzseek.extras import has
from mzseek.names import visible
from mzseek.report.axis import ticks
from mzseek.report.drawing import BLUE, FAINT, INK, MUTED, ORANGE

GREY = "#a3adb6"
COLOURS = {"explained": BLUE, "other": GREY, "reference": ORANGE}
_WORDS = {
    "explained": "explained by a fragment",
    "other": "not explained",
    "reference": "reference",
}
_LABELS, _LABEL_FLOOR = 12, 0.02
_HIGHEST = 1.3  # end of the intensity axis: room for labels above the highest peak
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 860, 420, 56, 20, 58, 48
_INCHES = (8.6, 4.2)
_CHARACTER, _LINE = 0.0105, 0.07  # width and height of a label, as shares of the axes


@dataclass(frozen=True)
class Stick:
    """A peak of a plot.

    Attributes
    ----------
    mz : float
    height : float
        Relative to the strongest peak of its spectrum; below 0 for the reference.
    kind : str
        A name of `COLOURS`.
    label : str
        May be empty.
    """

    mz: float
    height: float
    kind: str
    label: str = ""


class Svg(str):
    """SVG as text, which a notebook shows as a picture."""

    def _repr_svg_(self) -> str:
        return str(self)


def plot_sticks(sticks: Sequence[Stick], precursor_mz: float, title: str, below: str = "") -> Any:
    """Draw peaks: a matplotlib figure, or `Svg` where matplotlib is not installed.

    Parameters
    ----------
    sticks : sequence of Stick
        At least one.
    precursor_mz : float
        Marked on the axis.
    title : str
    below : str
        What the reference spectrum is; empty for a plot without one.
    """
    draw = _figure if has("matplotlib") else _svg
    return draw(sticks, precursor_mz, visible(title), visible(below))


def _range(sticks: Sequence[Stick], precursor_mz: float) -> tuple[float, float]:
    every = [precursor_mz, *(stick.mz for stick in sticks)]
    margin = max(0.04 * (max(every) - min(every)), 2.0)
    return max(0.0, min(every) - margin), max(every) + margin


def _placed(sticks: Sequence[Stick], low: float, high: float) -> list[tuple[float, float, str]]:
    """Labels of the highest peaks that meet neither each other nor a peak: m/z, height, text."""
    placed: list[tuple[float, float, str]] = []
    taken: list[tuple[float, float, float, float]] = []
    labelled = [each for each in sticks if each.label and abs(each.height) >= _LABEL_FLOOR]
    for stick in sorted(labelled, key=lambda each: -abs(each.height)):
        half = _CHARACTER * (high - low) * len(stick.label) / 2
        x = min(max(stick.mz, low + half), high - half)
        box = (x - half, stick.height, x + half, stick.height + _LINE)
        crossed = any(box[0] < o.mz < box[2] and o.height > box[1] + 0.01 for o in sticks)
        met = any(
            box[0] < o[2] and o[0] < box[2] and box[1] < o[3] and o[1] < box[3] for o in taken
        )
        if not crossed and not met:
            taken.append(box)
            placed.append((x, stick.height, stick.label))
        if len(placed) == _LABELS:
            break
    return placed


def _figure(sticks: Sequence[Stick], precursor_mz: float, title: str, below: str) -> Any:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from mzseek.report.figures import STYLE

    class SpectrumFigure(Figure):
        """A figure that notebooks show without pyplot, which would keep it open."""

        def _repr_png_(self) -> bytes:
            with io.BytesIO() as file:
                self.savefig(file, format="png", dpi=110)
                return file.getvalue()

    with rc_context(STYLE):
        figure = SpectrumFigure(figsize=_INCHES, layout="constrained")
        axes = figure.subplots()
        low, high = _range(sticks, precursor_mz)
        for kind, colour in COLOURS.items():
            own = [stick for stick in sticks if stick.kind == kind]
            if own:
                axes.vlines([s.mz for s in own], 0, [100 * s.height for s in own], color=colour,
                            linewidth=1.6, label=_WORDS[kind])  # fmt: skip
        for mz, height, text in _placed(sticks, low, high):
            axes.annotate(text, (mz, 100 * height), (0, 2), textcoords="offset points",
                          ha="center", va="bottom", fontsize=8, color=BLUE)  # fmt: skip
        foot = -115 if below else 0
        axes.plot([precursor_mz], [0], marker="^", color=ORANGE, clip_on=False, linestyle="none",
                  label=f"precursor {precursor_mz:.4f}")  # fmt: skip
        axes.axhline(0, color=MUTED, linewidth=0.8)
        axes.set(xlim=(low, high), ylim=(foot, 145 if below else 130), xlabel="m/z",
                 ylabel="relative intensity (%)")  # fmt: skip
        marks = [-100, -50, 0, 50, 100] if below else [0, 50, 100]
        axes.set_yticks(marks, [str(abs(mark)) for mark in marks])
        axes.set_title(f"{title}\nbelow: {below}" if below else title, loc="left", fontsize=10)
        axes.legend(loc="upper left", ncols=4, frameon=False, fontsize=8)
    return figure


def _svg(sticks: Sequence[Stick], precursor_mz: float, title: str, below: str) -> Svg:
    low, high = _range(sticks, precursor_mz)
    least = -_HIGHEST if below else 0.0

    def x(mz: float) -> float:
        return _LEFT + (mz - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    def y(height: float) -> float:
        return _TOP + (_HIGHEST - height) / (_HIGHEST - least) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" role="img" font-size="11" '
        "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="20" font-size="14" fill="{INK}">{html.escape(title)}</text>',
    ]
    if below:
        parts.append(f'<text x="{_LEFT}" y="38" fill="{MUTED}">below: {html.escape(below)}</text>')
    parts += [
        f'<path d="M{_LEFT} {y(mark):.1f}H{_WIDTH - _RIGHT}" stroke="{FAINT}"/>'
        f'<text x="{_LEFT - 8}" y="{y(mark) + 4:.1f}" text-anchor="end" fill="{MUTED}">'
        f"{abs(100 * mark):.0f}</text>"
        for mark in (-1.0, -0.5, 0.0, 0.5, 1.0)
        if mark >= least
    ]
    parts += [
        f'<text x="{x(value):.1f}" y="{y(least) + 18:.1f}" text-anchor="middle" '
        f'fill="{MUTED}">{value:g}</text>'
        for value in ticks(low, high, most=10)
    ]
    for kind in ("other", "reference", "explained"):
        lines = "".join(
            f"M{x(s.mz):.1f} {y(0):.1f}V{y(s.height):.1f}" for s in sticks if s.kind == kind
        )
        if lines:
            parts.append(f'<path d="{lines}" stroke="{COLOURS[kind]}" stroke-width="1.8"/>')
    foot = x(precursor_mz), y(0)
    parts.append(f'<path d="M{foot[0]:.1f} {foot[1] + 1:.1f}l-5 8h10z" fill="{ORANGE}"/>')
    parts += [
        f'<text x="{x(mz):.1f}" y="{y(height) - 3:.1f}" text-anchor="middle" fill="{BLUE}">'
        f"{html.escape(text)}</text>"
        for mz, height, text in _placed(sticks, low, high)
    ]
    parts.append(
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2:.1f}" y="{_HEIGHT - 8}" text-anchor="middle" '
        f'fill="{INK}">m/z; blue: explained by a fragment, grey: not, triangle: precursor</text>'
    )
    return Svg("\n".join([*parts, "</svg>"]))
