"""A spectrum as an SVG file of its own: peaks, labels that keep clear of each other, precursor."""

import html
from dataclasses import dataclass

import numpy as np

from mzseek.names import visible
from mzseek.report.axis import NEAR_PRECURSOR, by_intensity, limits, ticks
from mzseek.spectra import Spectrum

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
