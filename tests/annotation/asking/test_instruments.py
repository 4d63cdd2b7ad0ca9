"""Tolerances by instrument: what is given wins, what is unknown is refused."""

from pathlib import Path

import pytest

from mzseek.annotation.asking.instruments import (
    DEFAULT,
    INSTRUMENTS,
    check_instrument,
    instrument_notes,
    tolerances,
)
from mzseek.annotation.asking.tolerance import Tolerance
from mzseek.errors import AnnotationError

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_each_has_its_own_and_what_is_given_wins(name):
    own = INSTRUMENTS[name]
    assert tolerances(name) == (own.precursor, own.peaks)
    assert tolerances(name, "3 ppm") == (Tolerance(3.0, strict=True), own.peaks)
    assert tolerances(name, None, "5 mDa") == (own.precursor, Tolerance(0.0, 0.005, strict=True))
    assert own.precursor.strict
    assert own.why.endswith(".")


def test_none_is_ten_ppm_and_the_models():
    assert tolerances(None) == (DEFAULT, None)


def test_an_unknown_one_is_refused_with_the_names():
    names = ", ".join(INSTRUMENTS)
    for name in ("tof", Path("tof"), ""):
        with pytest.raises(AnnotationError, match=f"is unknown, expected one of: {names}"):
            check_instrument(name)
    check_instrument(None)


def test_only_what_models_are_not_fitted_on_has_a_note():
    assert [name for name in INSTRUMENTS if instrument_notes(name)] == ["ion-trap"]
    assert instrument_notes(None) == ()


def test_every_instrument_has_a_line_in_the_docs():
    text = (DOCS / "annotate.md").read_text()
    for name, own in INSTRUMENTS.items():
        peaks = "the model's" if own.peaks is None else str(own.peaks)
        assert f"| `{name}` | {own.precursor} | {peaks} |" in text
