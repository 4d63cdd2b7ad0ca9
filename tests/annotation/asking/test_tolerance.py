"""Tolerances: as users write them, and how wide they are."""

import pytest

from mzseek.annotation.features import Tolerance
from mzseek.core.errors import AnnotationError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10", Tolerance(10.0)),
        (7.5, Tolerance(7.5)),
        ("5 ppm", Tolerance(5.0)),
        ("5PPM", Tolerance(5.0)),
        ("0.01 Da", Tolerance(0.0, 0.01)),
        ("5 mDa", Tolerance(0.0, 0.005)),
    ],
)
def test_parsed(text, expected):
    parsed = Tolerance.parse(text)
    assert (parsed.ppm, parsed.least) == pytest.approx((expected.ppm, expected.least))


@pytest.mark.parametrize("text", ["", "ten", "5 %", "-3", "1e9", "nan", "0", "inf", "5 ppm 3"])
def test_refused(text):
    with pytest.raises(AnnotationError, match="tolerance"):
        Tolerance.parse(text)


def test_the_larger_of_two_counts():
    assert Tolerance(10.0, 0.002).of(100.0) == 0.002
    assert Tolerance(10.0, 0.002).of(1000.0) == pytest.approx(0.01)


def test_says_itself():
    assert str(Tolerance(10.0, 0.002)) == "10 ppm or 0.002 Da"
    assert str(Tolerance.parse(str(Tolerance(3.0)))) == "3 ppm"


def test_what_a_user_gives_is_strict():
    assert Tolerance.parse("10").strict
    assert not Tolerance().strict
