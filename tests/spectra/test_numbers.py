import math

import pytest

from mzseek.core.errors import SpectrumError
from mzseek.spectra.parsing import (
    is_nothing,
    leading_number,
    parse_charge,
    parse_ion_mode,
    parse_number,
    shorten,
)


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
    with pytest.raises(SpectrumError, match="could be 1234 or a decimal comma"):
        parse_number("1,234", "x")
    assert parse_number("1,234", "x", decimal_comma=True) == 1.234
    assert parse_number("445,123", "x", limit=20_000) == 445.123  # no m/z of 445,123
    with pytest.raises(SpectrumError):
        parse_number("1,234", "x", limit=20_000)


def test_not_a_number_is_passed_on_to_the_peak_check() -> None:
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


def test_ion_modes() -> None:
    assert [parse_ion_mode(t) for t in ("Positive ESI", "P", "+", "NEGATIVE", "-", "", "both")] == [
        "positive", "positive", "positive", "negative", "negative", None, None,
    ]  # fmt: skip


def test_words_for_nothing() -> None:
    assert all(is_nothing(text) for text in ("", " N/A", "null", "Unknown", "?"))
    assert not is_nothing("0")


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
    value = leading_number(text)
    assert value is not None
    assert math.isinf(value)


def test_quotations_look_at_their_beginning_only() -> None:
    assert shorten("a  b\n" * 1_000_000, 8) == "a b a b…"
    assert shorten("short  text") == "short text"
