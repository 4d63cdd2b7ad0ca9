"""Draw a spectrum as lines of text, for terminals."""

import numpy as np
import numpy.typing as npt
from rich.text import Text

from mzseek.export.spectrum_plot import NEAR_PRECURSOR, by_intensity, limits, ticks
from mzseek.spectra import Spectrum

# From an empty cell to a full one in eighths; then the axes and the mark below the precursor.
UNICODE = " ▁▂▃▄▅▆▇█", "│└─┴▲"
ASCII = " ..::||||", "|+-+^"
Glyphs = tuple[str, str]
_GUTTER, _MIN_WIDTH = 5, 40
_HEADROOM = 2  # rows above the highest peak, for labels
_LABEL_FLOOR = 0.03
_BAR, _PRECURSOR, _QUIET = "cyan", "bold yellow", "dim"


def glyphs_for(encoding: str) -> Glyphs:
    """Return block characters, or plain ones where the encoding has none."""
    try:
        "".join(UNICODE).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def peak_plot(
    spectrum: Spectrum, width: int, height: int = 12, glyphs: Glyphs = UNICODE
) -> list[Text]:
    """Draw the peaks as columns of text, the strongest labelled, the precursor marked.

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
    columns, rows = max(width, _MIN_WIDTH) - _GUTTER - 1, height + _HEADROOM
    low, high = limits(spectrum.mz.tolist(), spectrum.precursor_mz)

    def column_of(mz: npt.ArrayLike) -> npt.NDArray[np.intp]:
        return np.rint((np.asarray(mz) - low) / (high - low) * (columns - 1)).astype(np.intp)

    peak_columns = column_of(spectrum.mz)
    # Heights are in eighths of a cell, and the smallest peak has one.
    relative = spectrum.intensities / spectrum.intensities.max()
    heights = np.zeros(columns, np.intp)
    np.maximum.at(heights, peak_columns, np.maximum(np.rint(relative * 8 * height), 1).astype(int))
    cells = [[" "] * columns for _ in range(rows)]
    styles = [[""] * columns for _ in range(rows)]
    is_precursor = np.abs(spectrum.mz - spectrum.precursor_mz) <= NEAR_PRECURSOR
    # A column belongs to its strongest peak.
    strongest = {int(peak_columns[peak]): peak for peak in reversed(by_intensity(spectrum))}
    for column, peak in strongest.items():
        for row in range(-(-int(heights[column]) // 8)):
            eighths = min(int(heights[column]) - 8 * row, 8)
            cells[rows - 1 - row][column] = glyphs[0][eighths]
            styles[rows - 1 - row][column] = _PRECURSOR if is_precursor[peak] else _BAR
    for peak in by_intensity(spectrum, _LABEL_FLOOR):
        column = int(peak_columns[peak])
        if strongest[column] == peak:
            _label(cells, f"{spectrum.mz[peak]:.4f}", column, int(heights[column]))
    marks = {_HEADROOM: "100", _HEADROOM + height // 2: "50"}
    lines = []
    for row in range(next(row for row in range(rows) if set(cells[row]) != {" "}), rows):
        line = Text(f"{marks.get(row, ''):>{_GUTTER - 1}}{glyphs[1][0]}", _QUIET)
        for cell, style in zip(cells[row], styles[row], strict=True):
            line.append(cell, style or None)
        lines.append(line)
    corner, level, tick, arrow = tuple(glyphs[1][1:])
    axis, numbers = [level] * columns, [" "] * (columns + _GUTTER + 1)
    for value in ticks(low, high, columns // 9):
        column, text = int(column_of(value)), f"{value:g}"
        axis[column] = tick
        start = min(column + _GUTTER - len(text) // 2, len(numbers) - len(text))
        numbers[start : start + len(text)] = text
    precursor = int(column_of(spectrum.precursor_mz))
    before, after = "".join(axis[:precursor]), "".join(axis[precursor + 1 :])
    return [
        *lines,
        Text.assemble(
            (f"{'0':>{_GUTTER - 1}}{corner}{before}", _QUIET), (arrow, _PRECURSOR), (after, _QUIET)
        ),
        Text("".join(numbers).rstrip(), _QUIET),
    ]


def _label(cells: list[list[str]], text: str, column: int, eighths: int) -> None:
    """Write above a bar, or one row higher; nothing where there is no room."""
    start = min(max(column - len(text) // 2, 0), len(cells[0]) - len(text))
    top = len(cells) - 1 - -(-eighths // 8)
    for row in range(top, max(top - _HEADROOM, -1), -1):
        if set(cells[row][max(start - 1, 0) : start + len(text) + 1]) == {" "}:
            cells[row][start : start + len(text)] = text
            return
