"""Plot a spectrum with annotated peaks, alone or above a reference.

SVG is written by hand: it needs no matplotlib, which the base install does not have.
"""

import html
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import AnnotationError, is_installed
from mzseek.core.text import shorten, visible
from mzseek.spectra import Spectrum

if TYPE_CHECKING:
    from mzseek.annotation.annotation import Annotation
    from mzseek.fragments import Explanation

NEAR_PRECURSOR = 0.05  # Da: a peak this near is drawn as the precursor
INK, MUTED, FAINT, BLUE, ORANGE = "#1d2733", "#66727e", "#e4e8ec", "#2f6db3", "#c8611a"
COLOURS = {
    "other": "#a3adb6", "peak": BLUE, "explained": BLUE, "precursor": ORANGE, "reference": ORANGE,
}  # fmt: skip
_LEGEND = {
    "explained": "explained by a fragment",
    "other": "not explained",
    "reference": "reference",
}
_LABELS, _LABEL_FLOOR, _LABEL_SIZE, _LIFT = 14, 0.01, 12, 15
_CHARACTER = 0.6  # width of a digit, in heights
_TOP_LABEL = 34  # room above the highest peak

Floats = npt.NDArray[np.floating]
Box = tuple[float, float, float, float]  # left, low, right, high


def overlap(a: Box, b: Box) -> bool:
    """Return whether two rectangles share any area."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def limits(mz: Sequence[float], precursor_mz: float) -> tuple[float, float]:
    """Return the first and last m/z to show: all peaks and the precursor, with a margin."""
    low, high = min(min(mz), precursor_mz), max(max(mz), precursor_mz)
    margin = max(0.04 * (high - low), 2.0)
    return max(0.0, low - margin), high + margin


def ticks(low: float, high: float, max_count: int) -> list[float]:
    """Return round numbers in a range, a step of 1, 2 or 5 times a power of ten apart.

    Examples
    --------
    >>> ticks(50.2, 195.3, 5)
    [100.0, 150.0]
    >>> ticks(50.2, 195.3, 10)
    [60.0, 80.0, 100.0, 120.0, 140.0, 160.0, 180.0]
    """
    least = (high - low) / max(max_count, 1)
    scale = 10.0 ** math.floor(math.log10(least))
    step = next(unit * scale for unit in (1, 2, 5, 10, 20) if unit * scale >= least)
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def by_intensity(spectrum: Spectrum, floor: float = 0.0) -> list[int]:
    """Return peak indices from the strongest down to `floor` of it; of equals the lower m/z."""
    order = np.lexsort((spectrum.mz, -spectrum.intensities))
    least = floor * float(spectrum.intensities.max())
    return [int(index) for index in order if spectrum.intensities[index] >= least]


@dataclass(frozen=True)
class Stick:
    """A peak of a plot.

    Attributes
    ----------
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


@dataclass(frozen=True)
class Axes:
    """Convert m/z and height to points of a drawing."""

    width: int
    height: int
    left: int
    top: int
    right: int
    base: float
    mz: tuple[float, float]
    heights: tuple[float, float]

    def x(self, mz: float) -> float:
        """Return the place of an m/z from the left."""
        low, high = self.mz
        return self.left + (mz - low) / (high - low) * (self.right - self.left)

    def y(self, height: float) -> float:
        """Return the place of a height from the top."""
        low, high = self.heights
        return self.base - (height - low) / (high - low) * (self.base - self.top)

    def stick(self, mz: float, height: float) -> str:
        """Return the path of a peak."""
        return f"M{self.x(mz):.1f} {self.y(0):.1f}V{min(self.y(height), self.base - 1):.1f}"


def _axes_for(sticks: Sequence[Stick], precursor_mz: float, top: int) -> Axes:
    mz = limits([stick.mz for stick in sticks], precursor_mz)
    least = -1.0 if any(stick.height < 0 for stick in sticks) else 0.0
    return Axes(900, 440, 64, top, 864, base=384.0, mz=mz, heights=(least, 1.0))


class _Label(NamedTuple):
    """The place of a label: its middle, its box, and its peak where a thin line leads to it."""

    text: str
    centre: float
    box: Box
    lifted_from: tuple[float, float] | None


def _place_labels(sticks: Sequence[Stick], axes: Axes) -> list[_Label]:
    """Label the strongest peaks: above, or beside, or lifted with a thin line, or not at all."""
    tops = [(axes.x(stick.mz), axes.y(stick.height)) for stick in sticks]
    labelled = [
        (stick, top)
        for stick, top in zip(sticks, tops, strict=True)
        if stick.label and stick.height >= _LABEL_FLOOR
    ]
    taken: list[Box] = []
    labels: list[_Label] = []
    for stick, (x, y) in sorted(labelled, key=lambda item: (-item[0].height, item[0].mz)):
        if len(labels) >= _LABELS:
            break
        half = len(stick.label) * _LABEL_SIZE * _CHARACTER / 2
        beside = half + 6
        for shift, lift in ((0, 0), (beside, -8), (-beside, -8), (0, _LIFT), (0, 2 * _LIFT)):
            centre = min(max(x + shift, axes.left + half), axes.width - 4 - half)
            bottom = y - lift
            box = (centre - half - 2, bottom - _LABEL_SIZE - 3, centre + half + 2, bottom)
            leader = (x - 1, bottom, x + 1, y)
            is_inside = box[1] >= axes.top - _TOP_LABEL and box[3] <= axes.base
            is_free = not any(overlap(box, other) or overlap(leader, other) for other in taken)
            if is_inside and is_free and not _crosses(box, x, tops):
                taken += [box, leader]
                labels.append(_Label(stick.label, centre, box, (x, y) if lift > 0 else None))
                break
    return labels


def _crosses(box: Box, peak_x: float, tops: list[tuple[float, float]]) -> bool:
    """Return whether a peak's line runs through the box, or between the box and its own peak."""
    left, right = min(box[0], peak_x), max(box[2], peak_x)
    return any(
        (left < x < right and y < box[3])
        if x != peak_x
        else (box[0] < x < box[2] and y < box[3] - 3)
        for x, y in tops
    )


def _svg_text(x: float, y: float, text: str, colour: str, anchor: str = "", more: str = "") -> str:
    """Return a text element; whole numbers of `x` and `y` are written as such."""
    at = [str(value) if isinstance(value, int) else f"{value:.1f}" for value in (x, y)]
    position = f'x="{at[0]}" y="{at[1]}"' + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text {position} fill="{colour}"{more}>{html.escape(text)}</text>'


def sticks_svg(
    sticks: Sequence[Stick],
    precursor_mz: float,
    precursor: str = "precursor",
    title: str = "",
    subtitle: str = "",
    note: str = "",
) -> str:
    """Return an SVG of peaks that stands alone.

    No script, no style sheet, no reference to anything outside. Texts are shortened and escaped.
    The number of lines does not grow with the number of peaks.
    """
    axes = _axes_for(sticks, precursor_mz, top=110 if title else 60)
    head = []
    if title:
        shown = _shorten(title, 70)
        head = [
            f"<title>{html.escape(shown)}</title>",
            _svg_text(axes.left, 30, shown, INK, more=' font-size="17" font-weight="bold"'),
            _svg_text(axes.left, 50, _shorten(subtitle, 110), MUTED),
        ]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {axes.width} {axes.height}" '
        f'width="{axes.width}" height="{axes.height}" role="img" '
        "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" "
        f'font-size="{_LABEL_SIZE}">',
        f'<rect width="{axes.width}" height="{axes.height}" fill="#ffffff"/>',
        *head,
        *_draw_axes(axes, f"m/z{note}"),
        *_draw_precursor(precursor_mz, _shorten(precursor, 60), axes),
        *_draw_peaks(sticks, axes),
        *(_draw_label(label) for label in _place_labels(sticks, axes)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _shorten(text: str, limit: int) -> str:
    return shorten(visible(" ".join(text.split())), limit)


def _draw_axes(axes: Axes, name: str) -> list[str]:
    middle = (axes.top + axes.base) / 2
    parts = []
    for share in (-1.0, -0.5, 0.0, 0.5, 1.0):
        if share < axes.heights[0]:
            continue
        y = axes.y(share)
        if share:
            parts.append(f'<path d="M{axes.left} {y:.1f}H{axes.right}" stroke="{FAINT}"/>')
        parts.append(_svg_text(axes.left - 8, y + 4, f"{abs(100 * share):.0f}", MUTED, "end"))
    for value in ticks(*axes.mz, max_count=10):
        x = axes.x(value)
        parts.append(f'<path d="M{x:.1f} {axes.base:.1f}v5" stroke="{MUTED}"/>')
        parts.append(_svg_text(x, axes.base + 19, f"{value:g}", MUTED, "middle"))
    turned = f' transform="rotate(-90 20 {middle:.1f})"'
    return [
        *parts,
        _svg_text((axes.left + axes.right) / 2, axes.height - 14, name, INK, "middle"),
        _svg_text(20, middle, "relative intensity (%)", INK, "middle", turned),
    ]


def _draw_precursor(mz: float, name: str, axes: Axes) -> list[str]:
    x, top, zero = axes.x(mz), axes.top - _TOP_LABEL, axes.y(0)
    is_left = x + len(name) * _LABEL_SIZE * _CHARACTER > axes.right
    anchor, at = ("end", x + 4) if is_left else ("start", x - 4)
    return [
        f'<path d="M{x:.1f} {top}V{zero:.1f}" stroke="{ORANGE}" '
        'stroke-dasharray="3 4" opacity="0.6"/>',
        f'<path d="M{x:.1f} {zero + 1:.1f}l-5 9h10z" fill="{ORANGE}"/>',
        _svg_text(at, top - 5, name, ORANGE, anchor),
    ]


def _draw_peaks(sticks: Sequence[Stick], axes: Axes) -> list[str]:
    """Draw one path for each kind of peak; of peaks half a unit apart the strongest."""
    drawn: dict[tuple[str, bool, int], Stick] = {}
    for stick in sorted(sticks, key=lambda stick: abs(stick.height)):
        drawn[stick.kind, stick.height < 0, round(2 * axes.x(stick.mz))] = stick
    parts = []
    for kind, colour in COLOURS.items():
        shown = sorted((s for s in drawn.values() if s.kind == kind), key=lambda s: s.mz)
        lines = "".join(axes.stick(stick.mz, stick.height) for stick in shown)
        if lines:
            parts.append(f'<path d="{lines}" stroke="{colour}" stroke-width="1.6" fill="none"/>')
    return [*parts, f'<path d="M{axes.left} {axes.y(0):.1f}H{axes.right}" stroke="{MUTED}"/>']


def _draw_label(label: _Label) -> str:
    """Draw a text on a background that keeps the precursor's line out of it."""
    left, top, right, bottom = label.box
    line = ""
    if label.lifted_from is not None:
        x, y = label.lifted_from
        line = f'<path d="M{x:.1f} {y - 2:.1f}V{bottom:.1f}" stroke="{MUTED}" stroke-width="0.7"/>'
    return (
        f'{line}<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
        f'height="{bottom - top:.1f}" fill="#ffffff" opacity="0.85"/>'
    ) + _svg_text(label.centre, bottom - 3, label.text, INK, "middle")


def peak_sticks(mz: Floats, intensities: Floats, precursor_mz: float) -> list[Stick]:
    """Return the peaks of a spectrum, labelled with their m/z, the precursor's of its own kind."""
    heights = np.asarray(intensities, np.float64) / float(np.max(intensities))
    return [
        Stick(
            value, height, "precursor" if abs(value - precursor_mz) <= NEAR_PRECURSOR else "peak",
            f"{value:.4f}",
        )
        for value, height in zip(np.asarray(mz, np.float64).tolist(), heights.tolist(), strict=True)
    ]  # fmt: skip


def draw_spectrum(spectrum: Spectrum) -> str:
    """Return an SVG of one spectrum, titled by its metadata."""
    metadata = spectrum.metadata
    title = metadata.get("compound_name") or spectrum.identifier
    energy = metadata.get("collision_energy")
    subtitle = [
        spectrum.identifier if title != spectrum.identifier else "",
        metadata.get("formula", ""),
        "" if energy is None else f"collision energy {energy}",
        metadata.get("instrument") or metadata.get("instrument_type") or "",
        f"{len(spectrum):,} peak{'s' if len(spectrum) != 1 else ''}",
    ]
    return sticks_svg(
        peak_sticks(spectrum.mz, spectrum.intensities, spectrum.precursor_mz),
        spectrum.precursor_mz,
        f"precursor {spectrum.precursor_mz:.4f} {spectrum.adduct or ''}".rstrip(),
        title,
        " · ".join(filter(None, subtitle)),
    )


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
    if is_installed("matplotlib"):
        return _sticks_figure(sticks, precursor_mz, visible(title), visible(below))
    note = "; blue: explained by a fragment, grey: not explained"
    subtitle = f"below: {below}" if below else ""
    precursor = f"precursor {precursor_mz:.4f}"
    return Svg(sticks_svg(sticks, precursor_mz, precursor, title, subtitle, note))


def _sticks_figure(sticks: Sequence[Stick], precursor_mz: float, title: str, below: str) -> Any:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from mzseek.export.figures import STYLE

    class SpectrumFigure(Figure):
        """A figure that notebooks show without pyplot, which would keep it open."""

        def _repr_png_(self) -> bytes:
            with io.BytesIO() as file:
                self.savefig(file, format="png", dpi=110)
                return file.getvalue()

    drawing = _axes_for(sticks, precursor_mz, top=60)
    low, high = drawing.mz
    with rc_context(STYLE):
        figure = SpectrumFigure(figsize=(8.6, 4.2), layout="constrained")
        axes = figure.subplots()
        for kind, colour in COLOURS.items():
            drawn = [stick for stick in sticks if stick.kind == kind]
            if drawn:
                axes.vlines([s.mz for s in drawn], 0, [100 * s.height for s in drawn],
                            color=colour, linewidth=1.6, label=_LEGEND[kind])  # fmt: skip
        for text, centre, box, _ in _place_labels(sticks, drawing):
            x = low + (centre - drawing.left) / (drawing.right - drawing.left) * (high - low)
            y = 100 * (drawing.y(0) - box[3]) / (drawing.y(0) - drawing.y(1))
            axes.annotate(text, (x, y), (0, 2), textcoords="offset points",
                          ha="center", va="bottom", fontsize=8, color=BLUE)  # fmt: skip
        axes.plot([precursor_mz], [0], marker="^", color=ORANGE, clip_on=False, linestyle="none",
                  label=f"precursor {precursor_mz:.4f}")  # fmt: skip
        axes.axhline(0, color=MUTED, linewidth=0.8)
        axes.set(xlim=(low, high), ylim=(-115, 145) if below else (0, 130), xlabel="m/z",
                 ylabel="relative intensity (%)")  # fmt: skip
        marks = [-100, -50, 0, 50, 100] if below else [0, 50, 100]
        axes.set_yticks(marks, [str(abs(mark)) for mark in marks])
        axes.set_title(f"{title}\nbelow: {below}" if below else title, loc="left", fontsize=10)
        axes.legend(loc="upper left", ncols=4, frameon=False, fontsize=8)
    return figure


def plot_annotation(annotation: "Annotation", rank: int = 1, *, mirror: bool = False) -> Any:
    """Draw a feature's spectrum with the peaks that a candidate explains; see `Annotation.plot`."""
    from mzseek.annotation.annotation import strongest  # not needed for spectra alone

    feature = annotation.feature
    candidate = None if not annotation.candidates and rank == 1 else annotation.candidate(rank)
    spectrum = feature.spectra[feature.representative]
    peaks = annotation.peaks_of(candidate)[feature.representative]
    highest, title, below = strongest(spectrum.intensities), feature.name, ""
    sticks = [
        Stick(peak.mz, peak.intensity / highest, "explained" if peak.formula else "other",
              _ion(peak))
        for peak in peaks
    ]  # fmt: skip
    if candidate is not None:
        title += f": {candidate.name or candidate.smiles} ({candidate.adduct}), confidence "
        title += f"{annotation.confidence_of(candidate):.0%}"
    if mirror:
        reference = None if candidate is None else candidate.match or candidate.analog
        if candidate is None or reference is None:
            raise AnnotationError(
                f"feature {feature.name}: no reference spectrum stands behind this candidate, so "
                "there is nothing to mirror"
            )
        highest = strongest(reference.intensities)
        sticks += [
            Stick(float(mz), -float(intensity) / highest, "reference")
            for mz, intensity in zip(reference.mz, reference.intensities, strict=True)
        ]
        name = reference.name or (candidate.name if reference is candidate.match else "")
        below = f"{reference.record} ({name or reference.smiles}), "
        below += f"similarity {reference.similarity:.2f}"
    return plot_sticks(sticks, spectrum.precursor_mz, title, below)


def _ion(peak: "Explanation") -> str:
    """Formula and charge of an explained peak; empty for others."""
    if peak.formula is None:
        return ""
    charge = peak.charge or 0
    size = "" if abs(charge) < 2 else str(abs(charge))
    return peak.formula + (f"{size}{'+' if charge > 0 else '-'}" if charge else "")
