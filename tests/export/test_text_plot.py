import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mzseek.export.text_plot import ASCII, UNICODE, glyphs_for, peak_plot
from mzseek.spectra import Spectrum

CAFFEINE = Spectrum(
    np.array([56.0495, 110.0713, 138.0662, 195.0877]), np.array([2.0, 18, 100, 60]), 195.0877,
    "[M+H]+", 1, "caffeine",
)  # fmt: skip


def test_bars_are_as_high_as_their_peaks_are_strong() -> None:
    lines = [line.plain for line in peak_plot(CAFFEINE, 79, 10)]
    highest = max(line.count("█") for line in lines)
    assert highest == 3  # three peaks reach over the lowest row
    columns = [i for i in range(79) if any(line[i : i + 1] == "█" for line in lines)]
    heights = sorted(sum(line[i : i + 1] == "█" for line in lines) for i in columns)
    assert heights == [1, 6, 10]
    assert any("▂" in line for line in lines)  # 2 % is two eighths of one row in ten


def test_the_strongest_are_labelled_and_the_precursor_is_marked() -> None:
    lines = [line.plain for line in peak_plot(CAFFEINE, 79, 10)]
    text = "\n".join(lines)
    for label in ("110.0713", "138.0662", "195.0877"):
        assert label in text
    axis = lines[-2]
    assert axis.count("▲") == 1
    bars = [line for line in lines if "█" in line]
    assert bars[-1].rindex("█") == axis.index("▲")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1, 2000), st.floats(1e-3, 1e9)), min_size=1, max_size=200),
    st.floats(1, 2000),
    st.integers(20, 130),
    st.integers(3, 20),
    st.booleans(),
)
def test_any_spectrum_fits_the_width(peaks, precursor, width, height, plain: bool) -> None:
    mz, intensities = map(np.array, zip(*sorted(peaks), strict=True))
    spectrum = Spectrum(mz, intensities, precursor, None, None, "x")
    lines = [each.plain for each in peak_plot(spectrum, width, height, ASCII if plain else UNICODE)]
    assert all(len(line) <= max(width, 40) for line in lines)
    assert len(lines) <= height + 4
    text = "\n".join(lines)
    assert text.isascii() or not plain
    # Every label is whole, and is the m/z of a peak.
    known = {f"{each:.4f}" for each in mz}
    found = re.findall(r"\d+\.\d+", "\n".join(lines[:-1]))  # the last has ticks
    assert set(found) - known == set()
    assert f"{mz[int(np.argmax(intensities))]:.4f}" in found


@pytest.mark.parametrize(
    ("encoding", "glyphs"), [("utf-8", UNICODE), ("ascii", ASCII), ("cp1252", ASCII), ("?", ASCII)]
)
def test_plain_characters_where_blocks_cannot_be_shown(encoding: str, glyphs) -> None:
    assert glyphs_for(encoding) is glyphs


def test_profile_data_of_a_hundred_thousand_points_are_drawn() -> None:
    mz = np.linspace(50, 1500, 100_000)
    spectrum = Spectrum(mz, np.abs(np.sin(mz)) + 1e-9, 700.0, None, None, "profile")
    assert len(peak_plot(spectrum, 79)) < 20
