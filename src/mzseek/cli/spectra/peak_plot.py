"""A spectrum drawn with characters."""

import numpy as np
import numpy.typing as npt
from rich.text import Text

from mzseek.report.axis import NEAR_PRECURSOR, by_intensity, limits, ticks
from mzseek.spectra import Spectrum

# From an empty cell to a full one in eighths; then the axes and the mark below the precursor.
UNICODE = " ▁▂▃▄▅▆▇█", "│└─┴▲"
ASCII = " ..::||||", "|+-+^"
Glyphs = tuple[str, str]

_GUTTER = 5
_LEAST_WIDTH = 40
_HEADROOM = 2  # rows above the highest peak, for labels
_LABEL_FLOOR = 0.03
_BAR, _PRECURSOR, _QUIET = "cyan", "bold yellow", "dim"


def glyphs_for(encoding: str) -> Glyphs:
    """Block characters, or plain ones where the output cannot hold those."""
    try:
        "".join(UNICODE).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def peak_plot(
    spectrum: Spectrum, width: int, height: int = 12, glyphs: Glyphs = UNICODE
) -> list[Text]:
    """Lines that show the peaks as columns, the strongest labelled, the precursor marked.

    Parameters
    ----------
    spectrum : Spectrum
    width : int
        Columns at most, but no fewer than 40.
    height : int
        Rows of the highest peak.
    glyphs : (str, str)
        `UNICODE` or `ASCII`.
    """
    columns = max(width, _LEAST_WIDTH) - _GUTTER - 1
    low, high = limits(spectrum)
    places = _columns_of(spectrum.mz, low, high, columns)
    bars = _bar_heights(spectrum, places, columns, 8 * height)
    sheet = _Sheet(height + _HEADROOM, columns)
    near = np.abs(spectrum.mz - spectrum.precursor_mz) <= NEAR_PRECURSOR
    # A column belongs to its strongest peak.
    owned = {int(places[place]): place for place in reversed(by_intensity(spectrum))}
    for column, place in owned.items():
        sheet.bar(column, int(bars[column]), glyphs[0], _PRECURSOR if near[place] else _BAR)
    for place in by_intensity(spectrum, _LABEL_FLOOR):
        column = int(places[place])
        if owned[column] == place:
            sheet.label(f"{spectrum.mz[place]:.4f}", column, int(bars[column]))
    precursor = int(_columns_of(np.array([spectrum.precursor_mz]), low, high, columns)[0])
    return [
        *_with_scale(sheet, height, glyphs[1]),
        *_axis(low, high, columns, precursor, glyphs[1]),
    ]


class _Sheet:
    """Cells with a character and a style each."""

    def __init__(self, rows: int, columns: int) -> None:
        self.cells = [[" "] * columns for _ in range(rows)]
        self._styles = [[""] * columns for _ in range(rows)]

    def bar(self, column: int, eighths: int, steps: str, style: str) -> None:
        for row in range(len(self.cells) - 1, -1, -1):
            if eighths <= 0:
                return
            self.cells[row][column] = steps[min(eighths, 8)]
            self._styles[row][column] = style
            eighths -= 8

    def label(self, text: str, column: int, eighths: int) -> None:
        """Write above a bar, or one row higher; nothing where there is no room."""
        columns = len(self.cells[0])
        start = min(max(column - len(text) // 2, 0), columns - len(text))
        top = len(self.cells) - 1 - -(-eighths // 8)
        for row in range(top, max(top - _HEADROOM, -1), -1):
            around = self.cells[row][max(start - 1, 0) : start + len(text) + 1]
            if set(around) == {" "}:
                self.cells[row][start : start + len(text)] = text
                return

    def line(self, row: int) -> Text:
        text = Text()
        for cell, style in zip(self.cells[row], self._styles[row], strict=True):
            text.append(cell, style or None)
        return text


def _columns_of(
    mz: npt.NDArray[np.float64], low: float, high: float, columns: int
) -> npt.NDArray[np.intp]:
    return np.rint((mz - low) / (high - low) * (columns - 1)).astype(np.intp)


def _bar_heights(
    spectrum: Spectrum, places: npt.NDArray[np.intp], columns: int, full: int
) -> npt.NDArray[np.intp]:
    """Height of each column in eighths of a cell; the smallest peak is still to be seen."""
    relative = spectrum.intensities / spectrum.intensities.max()
    heights = np.zeros(columns, np.intp)
    np.maximum.at(heights, places, np.maximum(np.rint(relative * full), 1).astype(np.intp))
    return heights


def _with_scale(sheet: _Sheet, height: int, axes: str) -> list[Text]:
    """The rows with percentages before them."""
    marks = {_HEADROOM: "100", _HEADROOM + height // 2: "50"}
    lines = []
    top = next(row for row, cells in enumerate(sheet.cells) if set(cells) != {" "})
    for row in range(top, len(sheet.cells)):
        line = Text(f"{marks.get(row, ''):>{_GUTTER - 1}}{axes[0]}", _QUIET)
        lines.append(Text.assemble(line, sheet.line(row)))
    return lines


def _axis(low: float, high: float, columns: int, precursor: int, axes: str) -> list[Text]:
    """The line below the peaks with its ticks, and their numbers."""
    corner, level, tick, arrow = axes[1], axes[2], axes[3], axes[4]
    line, numbers = [level] * columns, [" "] * (columns + _GUTTER + 1)
    for value in ticks(low, high, most=columns // 9):
        place = int(_columns_of(np.array([value]), low, high, columns)[0])
        line[place] = tick
        text = f"{value:g}"
        start = min(place + _GUTTER - len(text) // 2, len(numbers) - len(text))
        numbers[start : start + len(text)] = text
    before, after = "".join(line[:precursor]), "".join(line[precursor + 1 :])
    return [
        Text.assemble(
            (f"{'0':>{_GUTTER - 1}}{corner}{before}", _QUIET), (arrow, _PRECURSOR), (after, _QUIET)
        ),
        Text("".join(numbers).rstrip(), _QUIET),
    ]
