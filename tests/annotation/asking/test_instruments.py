"""Tolerances by instrument: what is given wins, what is unknown is refused."""

from pathlib import Path

import pytest

from mzseek.annotation.features import Tolerance
from mzseek.annotation.hypotheses import (
    DEFAULT,
    INSTRUMENTS,
    check_instrument,
    instrument_notes,
    stated_tolerances,
    tolerances,
    unexplained_remark,
)
from mzseek.core.errors import AnnotationError

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


def msp(path, *instruments):
    """A file with a record of each instrument; none is stated for an empty one."""
    records = [
        f"Name: r{number}\nPrecursorMZ: 195.0877\nIon_mode: POSITIVE\n"
        + (f"Instrument_type: {name}\n" if name else "")
        + "Num Peaks: 1\n138.0662 100\n"
        for number, name in enumerate(instruments)
    ]
    path.write_text("\n".join(records))
    return path


@pytest.mark.parametrize(
    "name",
    ["LC-ESI-QTOF", "maXis HD", "Q-TOF 6545", "TripleTOF 5600", "timsTOF Pro", "Xevo G2-XS QTof",
     "Synapt G2-Si", "ESI-TOF", "impact II", "Quadrupole-TOF", "micrOTOF-Q", "X500R"],
)  # fmt: skip
def test_qtof_instruments_are_recognised(tmp_path, name):
    instrument, precursor, peaks, (line,) = stated_tolerances([msp(tmp_path / "a.msp", name, name)])
    assert instrument == "qtof"
    assert (precursor, peaks) == (Tolerance(20.0), INSTRUMENTS["qtof"].peaks)
    assert not precursor.strict  # a coarse precursor is searched as widely as it is known
    assert line.startswith(f"The spectra are of a QTOF instrument ({name}): searched within 20 ppm")


@pytest.mark.parametrize("name", ["LC-ESI-ITFT", "Q Exactive Plus", "Xevo TQ-S", "LC-ESI-QQ", ""])
def test_other_instruments_are_not_taken_for_qtof(tmp_path, name):
    assert stated_tolerances([msp(tmp_path / "a.msp", name)]) == (None, DEFAULT, None, ())


def test_mixed_files_are_searched_as_usual_and_the_option_is_named(tmp_path):
    qtof, other = msp(tmp_path / "a.msp", "LC-ESI-QTOF"), msp(tmp_path / "b.msp", "Orbitrap")
    silent = msp(tmp_path / "c.msp", "")
    within = msp(tmp_path / "d.msp", "LC-ESI-QTOF", "Orbitrap")
    for paths in ([qtof, other], [qtof, silent], [within]):
        instrument, precursor, peaks, (line,) = stated_tolerances(paths)
        assert (instrument, precursor, peaks) == (None, DEFAULT, None)
        assert "--instrument qtof" in line
    assert stated_tolerances([tmp_path / "missing.msp"]) == (None, DEFAULT, None, ())


def test_spectra_that_nothing_explains_name_the_option():
    (line,) = unexplained_remark([0.0, 0.0, 0.4, 0.0, 0.1], None)
    assert "--instrument qtof" in line
    assert unexplained_remark([0.3, 0.0, 0.4, 0.0, 0.1], None) == []
    assert unexplained_remark([0.0] * 5, Tolerance(20.0)) == []
    assert unexplained_remark([0.0] * 4, None) == []
    assert unexplained_remark([], None) == []
