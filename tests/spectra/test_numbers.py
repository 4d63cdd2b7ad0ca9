"""Numbers, charges and peaks as files write them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.errors import SpectrumError
from mzseek.core.text import shorten
from mzseek.io.sources import MAX_PEAKS
from mzseek.spectra import clean_peaks
from mzseek.spectra.records import (
    is_nothing,
    leading_number,
    parse_charge,
    parse_ion_mode,
    parse_number,
    parse_peak_lines,
)
from mzseek.spectra.spectrum import looks_like_profile, merge_duplicates


@pytest.mark.parametrize(
    ("text", "value"),
    [("445.12", 445.12), ("445,12", 445.12), ("1e3", 1000.0), ("1,5E-3", 0.0015), (" 7 ", 7.0),
     (".5", 0.5), ("-3", -3.0), ("+3.", 3.0)],
)  # fmt: skip
def test_numbers_as_people_write_them(text: str, value: float) -> None:
    assert parse_number(text, "x") == value


@pytest.mark.parametrize("text", ["1,234.5", "1,234,567", "1_000", "12a", "", "0x10", "1 2", "--1"])
def test_what_could_mean_two_things_is_refused(text: str) -> None:
    with pytest.raises(SpectrumError, match=r"x .* is not a number"):
        parse_number(text, "x")


def test_thousands_or_decimals() -> None:
    assert parse_number("1,234", "x", decimal_comma=True) == 1.234
    assert parse_number("445,123", "x", limit=20_000) == 445.123  # no m/z of 445,123
    for limit in (None, 20_000):
        with pytest.raises(SpectrumError, match="could be 1234 or a decimal comma"):
            parse_number("1,234", "x", limit=limit)
    # These are refused with the peak, not with the number.
    assert math.isnan(parse_number("NaN", "x"))
    assert parse_number("inf", "x") == math.inf


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1+", (1, True)), ("+1", (1, True)), ("1", (1, False)), ("2-", (-2, True)),
     ("-2", (-2, True)), ("+", (1, True)), ("--", (-2, True)), ("0", None), ("0+", None)],
)  # fmt: skip
def test_charges(text: str, expected: tuple[int, bool] | None) -> None:
    assert parse_charge(text) == expected


@pytest.mark.parametrize("text", ["1+ and 2+", "one", "+-", "1.5", "2+,3+", "9" * 5000])
def test_charges_that_are_not_one(text: str) -> None:
    with pytest.raises(SpectrumError, match="is not one charge"):
        parse_charge(text)


def test_ion_modes_words_for_nothing_and_quotations() -> None:
    modes = {"Positive ESI": "positive", "P": "positive", "+": "positive", "NEGATIVE": "negative",
             "-": "negative", "": None, "both": None}  # fmt: skip
    assert {text: parse_ion_mode(text) for text in modes} == modes
    assert all(is_nothing(text) for text in ("", " N/A", "null", "Unknown", "?"))
    assert not is_nothing("0")
    assert shorten("a  b\n" * 1_000_000, 8) == "a b a b…"
    assert shorten("short  text") == "short text"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("30", 30.0), ("30 eV", 30.0), ("30eV", 30.0), ("35 % (nominal)", 35.0), ("35%", 35.0),
     ("-5,5 V", -5.5), ("1e3", 1000.0), ("", None), ("  ", None), ("ramp 20-35", None),
     ("HCD", None), ("nan", None), ("NaN eV", None), ("1,234", None)],
)  # fmt: skip
def test_numbers_that_a_text_begins_with(text: str, expected: float | None) -> None:
    assert leading_number(text) == expected


@pytest.mark.parametrize("text", ["inf", "-Infinity", "1e999", "1e999 eV", "9" * 5000, "1e39"])
def test_what_is_past_all_bounds_is_infinite(text: str) -> None:
    assert abs(leading_number(text) or 0) == math.inf


def parse(*lines: str) -> list[tuple[float, float]]:
    mz, intensities = parse_peak_lines([line + "\n" for line in lines], range(1, len(lines) + 1))
    return list(zip(mz.tolist(), intensities.tolist(), strict=True))


@pytest.mark.parametrize(
    "line",
    ["100.5 20", "100.5\t20", "  100.5   20  ", "100,5 20,0", "100.5;20", "100.5,20.0",
     "100.5 20 1+", '100.5 20 "y3"', "1.005e2 2E1", "100.5 20;"],
)  # fmt: skip
def test_a_peak_in_all_its_spellings(line: str) -> None:
    assert parse(line) == [(100.5, 20.0)]


def test_a_record_with_decimal_commas_has_them_throughout() -> None:
    assert parse("100,1234 1,234", "50,5 987") == [(100.1234, 1.234), (50.5, 987.0)]
    assert parse("100,123 1,234") == [(100.123, 1.234)]  # no m/z of 100,123
    with pytest.raises(SpectrumError, match="could be 1234 or a decimal comma"):
        parse("100.5 1,234", "150.2 987")
    with pytest.raises(SpectrumError, match="could be"):
        parse("1,123 1,234")


def test_four_numbers_could_be_two_peaks() -> None:
    with pytest.raises(SpectrumError, match="one peak with more columns, or several"):
        parse("100.0 1 150.0 2")
    assert parse("100.0 1 150.0") == [(100.0, 1.0)]
    # Six tokens in three lines, but not two in each: must not be read as three peaks.
    with pytest.raises(SpectrumError, match=r"line 1: '100.5' is no peak"):
        parse("100.5", "1 2 3", "4 5")


@pytest.mark.parametrize(
    ("line", "message"),
    [("100.5", "no peak"), ("100,200", "no peak"), ("1-2 5", "m/z '1-2' is not a number"),
     ("100.5 1,234.5", "intensity '1,234.5'"), ("1_0 5", "m/z '1_0'")],
)  # fmt: skip
def test_what_is_no_peak_is_refused_with_its_line(line: str, message: str) -> None:
    with pytest.raises(SpectrumError, match=f"line 2:.*{message}"):
        parse("50 1", line)


@given(st.lists(st.tuples(st.floats(1, 2000), st.floats(0, 1e9)), min_size=1, max_size=50))
def test_clean_peaks_are_sorted_positive_and_all_there(peaks: list[tuple[float, float]]) -> None:
    positive = sorted(peak for peak in peaks if peak[1] > 0)
    values = np.array(peaks)
    if not positive:
        with pytest.raises(SpectrumError, match="no peak of positive"):
            clean_peaks(values[:, 0], values[:, 1])
        return
    mz, intensities = clean_peaks(values[:, 0], values[:, 1])
    assert list(zip(mz.tolist(), intensities.tolist(), strict=True)) == positive


def test_floor_is_relative_to_the_largest() -> None:
    mz, _ = clean_peaks([50, 60, 70], [0.9, 1.0, 100.0], floor=0.01)
    assert mz.tolist() == [60, 70]


@pytest.mark.parametrize(
    ("mz", "intensities", "message"),
    [
        ([], [], "has no peaks"),
        ([50.0], [1.0, 2.0], "1 m/z values but 2 intensities"),
        ([50.0, np.nan], [1, 1], r"peak 2 \(m/z nan, 1\) is not finite"),
        ([50.0, 60.0], [1, np.inf], "is not finite"),
        ([0.0], [1], "no positive m/z"),
        ([1e9], [1], "past m/z 20,000"),
        ([50.0], [-1], "negative intensity"),
        ([50.0], [0], "no peak of positive intensity"),
        ([50.0, 60.0], [1.0, 1e308], r"is past 1e\+30"),
        ([50.0, 60.0], [1.0, 1.01e30], r"is past 1e\+30"),
        (np.ones(MAX_PEAKS + 1), np.ones(MAX_PEAKS + 1), "at most 100,000"),
    ],
)
def test_what_no_instrument_measures(mz, intensities, message: str) -> None:
    with pytest.raises(SpectrumError, match=message):
        clean_peaks(mz, intensities)


def test_duplicates_are_one_peak_of_the_largest_intensity() -> None:
    mz, intensities = merge_duplicates(
        np.array([50.0, 50.0, 50.000001, 60.0, 60.0001]), np.array([1.0, 2.0, 3.0, 5.0, 4.0])
    )
    assert mz.tolist() == [50.000001, 60.0, 60.0001]  # 1.7 ppm apart are two peaks
    assert intensities.tolist() == [3.0, 5.0, 4.0]
    assert merge_duplicates(mz, intensities)[0] is mz  # without duplicates


def test_profiles_are_told_by_their_shape() -> None:
    points = np.concatenate([center + np.arange(-10, 11) * 0.005 for center in range(100, 110)])
    heights = np.tile(np.exp(-((np.arange(-10, 11) / 4) ** 2)), 10)
    assert looks_like_profile(points, heights)
    random = np.random.default_rng(0)
    assert not looks_like_profile(points, random.lognormal(size=len(points)))  # many, but maxima
    assert not looks_like_profile(points * 50, heights)
