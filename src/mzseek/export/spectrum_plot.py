"""Plot a spectrum with annotated peaks, alone or above a reference."""

import html
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mzseek.core.errors import AnnotationError, is_installed
from mzseek.core.text import visible
from mzseek.spectra import Spectrum

if TYPE_CHECKING:
    from mzseek.annotation.annotation import Annotation
    from mzseek.fragments import Explanation

# An m/z this near to the precursor's is shown as the precursor; as in the figures of the pages.
NEAR_PRECURSOR = 0.05
_MARGIN = 0.04
_LEAST_MARGIN = 2.0


def limits(spectrum: Spectrum) -> tuple[float, float]:
    """First and last m/z to show: all peaks and the precursor, with a margin."""
    low = min(float(spectrum.mz[0]), spectrum.precursor_mz)
    high = max(float(spectrum.mz[-1]), spectrum.precursor_mz)
    margin = max(_MARGIN * (high - low), _LEAST_MARGIN)
    return max(0.0, low - margin), high + margin


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers in a range, at most so many, a step of 1, 2 or 5 times a power of ten apart.

    Examples
    --------
    >>> ticks(50.2, 195.3, 5)
    [100.0, 150.0]
    >>> ticks(50.2, 195.3, 10)
    [60.0, 80.0, 100.0, 120.0, 140.0, 160.0, 180.0]
    """
    least = (high - low) / max(most, 1)
    scale = 10.0 ** math.floor(math.log10(least))
    step = next(unit * scale for unit in (1, 2, 5, 10, 20) if unit * scale >= least)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step) + 1)]


def by_intensity(spectrum: Spectrum, floor: float = 0.0) -> list[int]:
    """Places of the peaks from the strongest down to a fraction of it; of equals the lower m/z."""
    order = np.lexsort((spectrum.mz, -spectrum.intensities))
    least = floor * float(spectrum.intensities.max())
    return [int(place) for place in order if spectrum.intensities[place] >= least]


INK, MUTED, FAINT, BLUE, ORANGE = "#1d2733", "#66727e", "#e4e8ec", "#2f6db3", "#c8611a"

_WIDTH, _HEIGHT = 900, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 36, 110, 56  # between the border and the peaks
_LABELS, _LABEL_FLOOR = 14, 0.01
_LABEL_SIZE, _LIFT = 12, 15
_CHARACTER = 0.6  # width of a figure, in heights
_TEXT_WIDTH = 110  # characters in the lines above the peaks


@dataclass(frozen=True)
class _Box:
    """A rectangle that a label covers."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "_Box") -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def drawn_spectrum(spectrum: Spectrum) -> str:
    """SVG of one spectrum.

    It stands alone: no script, no style sheet, no reference to anything outside. Text of the file
    is shortened and escaped. The number of its lines does not grow with the number of peaks.
    """
    low, high = limits(spectrum)
    scale = _Scale(low, high, float(spectrum.intensities.max()))
    title, subtitle = _title(spectrum)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'font-family="Helvetica, Arial, \'DejaVu Sans\', sans-serif" font-size="{_LABEL_SIZE}">',
        f"<title>{title}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="30" font-size="17" font-weight="bold" fill="{INK}">{title}</text>',
        f'<text x="{_LEFT}" y="50" fill="{MUTED}">{subtitle}</text>',
        *_axes(scale),
        *_precursor(spectrum, scale),
        *_peaks(spectrum, scale),
        *_labels(spectrum, scale),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


class _Scale:
    """From m/z and intensity to points of the drawing."""

    def __init__(self, low: float, high: float, largest: float) -> None:
        self.low, self.high, self._largest = low, high, largest
        self.base = float(_HEIGHT - _BOTTOM)

    def x(self, mz: float) -> float:
        return _LEFT + (mz - self.low) / (self.high - self.low) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, intensity: float) -> float:
        return self.base - intensity / self._largest * (self.base - _TOP)


def _title(spectrum: Spectrum) -> tuple[str, str]:
    given = spectrum.metadata
    name = given.get("compound_name")
    title = name if name and name != spectrum.identifier else spectrum.identifier
    facts = [
        spectrum.identifier if title != spectrum.identifier else "",
        given.get("formula", ""),
        f"collision energy {given['collision_energy']}" if "collision_energy" in given else "",
        given.get("instrument") or given.get("instrument_type") or "",
        f"{len(spectrum):,} peak{'s' if len(spectrum) != 1 else ''}",
    ]
    return _text(title, 70), _text(" · ".join(filter(None, facts)), _TEXT_WIDTH)


def _text(text: str, limit: int) -> str:
    shown = visible(" ".join(text.split()))
    return html.escape(shown if len(shown) <= limit else shown[: limit - 1] + "…")


def _axes(scale: _Scale) -> list[str]:
    end, middle = _WIDTH - _RIGHT, (_TOP + scale.base) / 2
    parts = []
    for share in (0.5, 1.0):
        y = scale.base - share * (scale.base - _TOP)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{end}" stroke="{FAINT}"/>')
    for share in (0.0, 0.5, 1.0):
        y = scale.base - share * (scale.base - _TOP)
        parts.append(
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="{MUTED}">'
            f"{100 * share:.0f}</text>"
        )
    for value in ticks(scale.low, scale.high, most=10):
        x = scale.x(value)
        parts.append(f'<path d="M{x:.1f} {scale.base:.1f}v5" stroke="{MUTED}"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{scale.base + 19:.1f}" text-anchor="middle" fill="{MUTED}">'
            f"{value:g}</text>"
        )
    parts.append(
        f'<text x="{(_LEFT + end) / 2:.1f}" y="{_HEIGHT - 14}" text-anchor="middle" '
        f'fill="{INK}">m/z</text>'
    )
    parts.append(
        f'<text x="20" y="{middle:.1f}" text-anchor="middle" fill="{INK}" '
        f'transform="rotate(-90 20 {middle:.1f})">relative intensity (%)</text>'
    )
    return parts


def _precursor(spectrum: Spectrum, scale: _Scale) -> list[str]:
    x, foot = scale.x(spectrum.precursor_mz), scale.base + 1
    ion = f"precursor {spectrum.precursor_mz:.4f} {_text(spectrum.adduct or '', 30)}".rstrip()
    width = len(ion) * _LABEL_SIZE * _CHARACTER
    is_left = x + width > _WIDTH - _RIGHT
    anchor, at = ("end", x + 4) if is_left else ("start", x - 4)
    return [
        f'<path d="M{x:.1f} {_TOP - 34}V{scale.base:.1f}" stroke="{ORANGE}" '
        'stroke-dasharray="3 4" opacity="0.6"/>',
        f'<path d="M{x:.1f} {foot:.1f}l-5 9h10z" fill="{ORANGE}"/>',
        f'<text x="{at:.1f}" y="{_TOP - 39}" text-anchor="{anchor}" fill="{ORANGE}">{ion}</text>',
    ]


def _peaks(spectrum: Spectrum, scale: _Scale) -> list[str]:
    """One path for all peaks and one for those at the precursor; of those at one place the highest.

    At half a unit apart two lines cannot be told from one.
    """
    near = np.abs(spectrum.mz - spectrum.precursor_mz) <= NEAR_PRECURSOR
    drawn: dict[tuple[bool, int], int] = {}
    for place in reversed(by_intensity(spectrum)):
        drawn[bool(near[place]), round(2 * scale.x(spectrum.mz[place]))] = place
    parts = []
    for is_near, colour in ((False, BLUE), (True, ORANGE)):
        places = sorted(place for (kind, _), place in drawn.items() if kind is is_near)
        lines = "".join(
            f"M{scale.x(spectrum.mz[place]):.1f} {scale.base:.1f}"
            f"V{min(scale.y(spectrum.intensities[place]), scale.base - 1):.1f}"
            for place in places
        )
        if lines:
            parts.append(f'<path d="{lines}" stroke="{colour}" stroke-width="1.6" fill="none"/>')
    end = _WIDTH - _RIGHT
    parts.append(f'<path d="M{_LEFT} {scale.base:.1f}H{end}" stroke="{MUTED}"/>')
    return parts


def _labels(spectrum: Spectrum, scale: _Scale) -> list[str]:
    """m/z of the strongest peaks: above, or beside, or lifted with a thin line, or not at all."""
    strongest = by_intensity(spectrum, _LABEL_FLOOR)
    tops = [(scale.x(spectrum.mz[i]), scale.y(spectrum.intensities[i])) for i in strongest]
    taken: list[_Box] = []
    parts: list[str] = []
    for place, (x, y) in zip(strongest, tops, strict=True):
        if len(parts) >= _LABELS:
            break
        text = f"{spectrum.mz[place]:.4f}"
        half = len(text) * _LABEL_SIZE * _CHARACTER / 2
        aside = half + 6
        for shift, lift in ((0, 0), (aside, -8), (-aside, -8), (0, _LIFT), (0, 2 * _LIFT)):
            centre = min(max(x + shift, _LEFT + half), _WIDTH - 4 - half)
            bottom = y - 3 - lift
            box = _Box(centre - half - 2, bottom - _LABEL_SIZE, centre + half + 2, bottom + 3)
            leader = _Box(x - 1, bottom + 3, x + 1, y)
            is_free = not any(box.meets(other) or leader.meets(other) for other in taken)
            is_inside = box.top >= _TOP - 34 and box.bottom <= scale.base
            if is_free and is_inside and not _crosses(box, x, tops):
                taken += [box, leader]
                parts.append(_label(text, centre, box, leader if lift > 0 else None))
                break
    return parts


def _label(text: str, centre: float, box: _Box, leader: _Box | None) -> str:
    """A text, with a background that keeps the precursor's line out of it."""
    line = ""
    if leader:
        x = leader.left + 1
        line = f'<path d="M{x:.1f} {leader.bottom - 2:.1f}V{leader.top:.1f}" stroke="{MUTED}" '
        line += 'stroke-width="0.7"/>'
    return (
        f'{line}<rect x="{box.left:.1f}" y="{box.top:.1f}" width="{box.right - box.left:.1f}" '
        f'height="{box.bottom - box.top:.1f}" fill="#ffffff" opacity="0.85"/>'
        f'<text x="{centre:.1f}" y="{box.bottom - 3:.1f}" text-anchor="middle" fill="{INK}">'
        f"{text}</text>"
    )


def _crosses(box: _Box, own: float, tops: list[tuple[float, float]]) -> bool:
    """Whether a peak's line runs through the box, or between the box and its own peak."""
    left, right = min(box.left, own), max(box.right, own)
    return any(
        (left < x < right and y < box.bottom)
        if x != own
        else (box.left < x < box.right and y < box.bottom - 3)
        for x, y in tops
    )


GREY = "#a3adb6"
COLOURS = {"explained": BLUE, "other": GREY, "reference": ORANGE}
_WORDS = {
    "explained": "explained by a fragment",
    "other": "not explained",
    "reference": "reference",
}
_STICKS_LABELS, _STICKS_LABEL_FLOOR = 12, 0.02
_HIGHEST = 1.3  # end of the intensity axis: room for labels above the highest peak
_STICKS_WIDTH, _STICKS_HEIGHT, _STICKS_LEFT, _STICKS_RIGHT, _STICKS_TOP, _STICKS_BOTTOM = (
    860,
    420,
    56,
    20,
    58,
    48,
)
_INCHES = (8.6, 4.2)
_STICKS_CHARACTER, _LINE = 0.0105, 0.07  # width and height of a label, as shares of the axes


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
    draw = _figure if is_installed("matplotlib") else _svg
    return draw(sticks, precursor_mz, visible(title), visible(below))


def _range(sticks: Sequence[Stick], precursor_mz: float) -> tuple[float, float]:
    every = [precursor_mz, *(stick.mz for stick in sticks)]
    margin = max(0.04 * (max(every) - min(every)), 2.0)
    return max(0.0, min(every) - margin), max(every) + margin


def _placed(sticks: Sequence[Stick], low: float, high: float) -> list[tuple[float, float, str]]:
    """Labels of the highest peaks that meet neither each other nor a peak: m/z, height, text."""
    placed: list[tuple[float, float, str]] = []
    taken: list[tuple[float, float, float, float]] = []
    labelled = [each for each in sticks if each.label and abs(each.height) >= _STICKS_LABEL_FLOOR]
    for stick in sorted(labelled, key=lambda each: -abs(each.height)):
        half = _STICKS_CHARACTER * (high - low) * len(stick.label) / 2
        x = min(max(stick.mz, low + half), high - half)
        box = (x - half, stick.height, x + half, stick.height + _LINE)
        crossed = any(box[0] < o.mz < box[2] and o.height > box[1] + 0.01 for o in sticks)
        met = any(
            box[0] < o[2] and o[0] < box[2] and box[1] < o[3] and o[1] < box[3] for o in taken
        )
        if not crossed and not met:
            taken.append(box)
            placed.append((x, stick.height, stick.label))
        if len(placed) == _STICKS_LABELS:
            break
    return placed


def _figure(sticks: Sequence[Stick], precursor_mz: float, title: str, below: str) -> Any:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from mzseek.export.figures import STYLE

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
        return _STICKS_LEFT + (mz - low) / (high - low) * (
            _STICKS_WIDTH - _STICKS_LEFT - _STICKS_RIGHT
        )

    def y(height: float) -> float:
        return _STICKS_TOP + (_HIGHEST - height) / (_HIGHEST - least) * (
            _STICKS_HEIGHT - _STICKS_TOP - _STICKS_BOTTOM
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_STICKS_WIDTH} {_STICKS_HEIGHT}" '
        f'width="{_STICKS_WIDTH}" height="{_STICKS_HEIGHT}" role="img" font-size="11" '
        "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">",
        f'<rect width="{_STICKS_WIDTH}" height="{_STICKS_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_STICKS_LEFT}" y="20" font-size="14" fill="{INK}">{html.escape(title)}</text>',
    ]
    if below:
        parts.append(
            f'<text x="{_STICKS_LEFT}" y="38" fill="{MUTED}">below: {html.escape(below)}</text>'
        )
    parts += [
        f'<path d="M{_STICKS_LEFT} {y(mark):.1f}H{_STICKS_WIDTH - _STICKS_RIGHT}" '
        f'stroke="{FAINT}"/>'
        f'<text x="{_STICKS_LEFT - 8}" y="{y(mark) + 4:.1f}" text-anchor="end" fill="{MUTED}">'
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
        f'<text x="{(_STICKS_LEFT + _STICKS_WIDTH - _STICKS_RIGHT) / 2:.1f}" '
        f'y="{_STICKS_HEIGHT - 8}" text-anchor="middle" '
        f'fill="{INK}">m/z; blue: explained by a fragment, grey: not, triangle: precursor</text>'
    )
    return Svg("\n".join([*parts, "</svg>"]))


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
