import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.export.spectrum_plot import by_intensity, limits, ticks


@given(
    st.floats(0, 20_000), st.floats(1e-3, 20_000), st.integers(1, 30),
)  # fmt: skip
def test_ticks_are_few_and_round_and_within(low: float, span: float, most: int) -> None:
    found = ticks(low, low + span, most)
    assert len(found) <= most + 1
    assert all(low - 1e-6 <= value <= low + span + 1e-6 for value in found)
    steps = {round(b - a, 6) for a, b in itertools.pairwise(found)}
    assert len(steps) <= 1 or max(steps) - min(steps) < 1e-5


def test_all_peaks_and_the_precursor_are_within_the_limits(make_spectrum) -> None:
    for precursor in (10.0, 75.0, 900.0):
        low, high = limits(make_spectrum([50, 100], [1, 2], precursor))
        assert 0 <= low <= min(50, precursor)
        assert max(100, precursor) < high
    low, high = limits(make_spectrum([100], [1], 100.0))
    assert high - low > 1


def test_by_intensity_begins_with_the_strongest_and_ends_at_the_floor(make_spectrum) -> None:
    spectrum = make_spectrum([50, 60, 70, 80], [5, 100, 4.9, 100])
    assert by_intensity(spectrum) == [1, 3, 0, 2]
    assert by_intensity(spectrum, 0.05) == [1, 3, 0]


@pytest.mark.parametrize(("low", "high"), [(99.9, 100.1), (0.0, 20_000.0)])
def test_short_and_long_ranges_have_ticks(low: float, high: float) -> None:
    assert ticks(low, high, 8)
