"""Setups of what users name."""

from pathlib import Path

import pytest

from mzseek.annotation.annotator import config_for, unexplained_remark
from mzseek.annotation.confidence import LISTED, SHARES
from mzseek.annotation.config import (
    INSTRUMENTS,
    LIBRARY,
    SETTINGS,
    AnnotateConfig,
    Tolerance,
    larger_databases,
)
from mzseek.annotation.reading import SpectrumFiles
from mzseek.core.errors import AnnotationError


def test_the_help_states_the_default_shares() -> None:
    shares = [share for _, share in SHARES]
    [setting] = [setting for setting in SETTINGS if setting.name == "expected_in_database"]
    assert f"by default {min(shares)} to {max(shares)}, by its" in setting.metadata["meaning"]
    assert f"and {LISTED} for lists" in setting.metadata["meaning"]


@pytest.mark.parametrize(
    ("text", "shown"), [("-5", "-5 ppm"), ("2000", "2000 ppm"), ("-1 mDa", "-0.001 Da")]
)
def test_a_tolerance_out_of_range_is_told_as_it_was_given(text: str, shown: str) -> None:
    with pytest.raises(AnnotationError, match=f"the tolerance is {shown}, expected 0 to 1000 ppm"):
        Tolerance.parse(text)


def test_nothing_named_is_what_comes_in_the_box() -> None:
    assert AnnotateConfig() == AnnotateConfig()


def test_paths_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("smiles\nCCO\n")
    made = AnnotateConfig(
        model="bundle", database="mine.csv", library=["a", Path("b")], prior="mine.csv"
    )
    assert made.model == str(tmp_path / "bundle")
    assert made.database == made.prior == str(tmp_path / "mine.csv")
    assert made.library == (str(tmp_path / "a"), str(tmp_path / "b"))
    assert AnnotateConfig(library="a").library == (str(tmp_path / "a"),)


def test_words_are_no_paths() -> None:
    assert AnnotateConfig(database=LIBRARY).database == LIBRARY
    assert (AnnotateConfig(prior="none").prior, AnnotateConfig(prior="learned").prior) == (
        "none",
        "learned",
    )


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AnnotationError, match="no such file or folder, expected a database"):
        AnnotateConfig(database=tmp_path / "gone")
    with pytest.raises(AnnotationError, match="no such file, expected none, learned or a table"):
        AnnotateConfig(prior=tmp_path)


def test_columns_are_those_of_a_list_of_candidates(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("Struktur\nCCO\n")
    made = AnnotateConfig(database=tmp_path / "mine.csv", smiles_column="Struktur")
    assert made.list_columns == {"smiles": "Struktur"}
    for database in (None, LIBRARY, tmp_path):
        with pytest.raises(AnnotationError, match="--name-column Nom: there is no list of cand"):
            AnnotateConfig(database=database, name_column="Nom")


def test_a_database_that_is_made_by_name_is_made_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AnnotationError, match="make it first: mzseek database hmdb --out hmdb"):
        AnnotateConfig(database="hmdb")
    with pytest.raises(AnnotationError) as other:
        AnnotateConfig(database="mine")
    assert "make it first" not in str(other.value)
    with pytest.raises(AnnotationError, match="mzseek database pubchem FOLDER"):
        AnnotateConfig(database="pubchem")


def test_larger_databases_can_be_had_from_pip_alone(monkeypatch) -> None:
    assert larger_databases()[0] == "mzseek database hmdb --out hmdb"
    monkeypatch.setattr("mzseek.annotation.config.is_installed", lambda package: False)
    assert larger_databases()[0].startswith("pip install pyopenms && mzseek database hmdb")
    assert not any("pubchem" in command for command in larger_databases())


DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_what_is_given_wins_over_the_tolerances_of_an_instrument(name: str) -> None:
    expected, own = INSTRUMENTS[name], AnnotateConfig(instrument=name)
    assert (own.precursor_tolerance, own.peak_tolerance) == (expected.precursor, expected.peaks)
    assert own.precursor_tolerance.strict
    given = AnnotateConfig(instrument=name, ppm="3 ppm", peak_ppm="5 mDa")
    assert given.precursor_tolerance == Tolerance(3.0, strict=True)
    assert given.peak_tolerance == Tolerance(0.0, 0.005, strict=True)
    assert bool(own.instrument_notes) == (name == "ion-trap")


def test_without_an_instrument_tolerances_are_ten_ppm_and_the_models() -> None:
    assert AnnotateConfig().precursor_tolerance == Tolerance(10.0)
    assert AnnotateConfig().peak_tolerance is None
    assert AnnotateConfig().instrument_notes == ()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"instrument": "tof"}, f"is unknown, expected one of: {', '.join(INSTRUMENTS)}"),
        ({"instrument": ""}, "is unknown, expected one of"),
        ({"group": " "}, "group is empty"),
        ({"rt_window": -1.0}, "expected 0 or more"),
        ({"rt_unit": "h"}, "unit of retention times 'h'"),
    ],
)
def test_unknown_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(AnnotationError, match=message):
        AnnotateConfig(**settings)


def test_every_instrument_has_a_line_in_the_docs() -> None:
    text = (DOCS / "annotate.md").read_text()
    for name, own in INSTRUMENTS.items():
        peaks = "the model's" if own.peaks is None else str(own.peaks)
        assert f"| `{name}` | {own.precursor} | {peaks} |" in text


def stated_tolerances(paths):
    config = config_for(AnnotateConfig(), SpectrumFiles(paths))
    return config.instrument, config.precursor_tolerance, config.peak_tolerance, config.remarks


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
    assert stated_tolerances([msp(tmp_path / "a.msp", name)]) == (None, Tolerance(), None, ())


def test_mixed_files_are_searched_as_usual_and_the_option_is_named(tmp_path):
    qtof, other = msp(tmp_path / "a.msp", "LC-ESI-QTOF"), msp(tmp_path / "b.msp", "Orbitrap")
    silent = msp(tmp_path / "c.msp", "")
    within = msp(tmp_path / "d.msp", "LC-ESI-QTOF", "Orbitrap")
    for paths in ([qtof, other], [qtof, silent], [within]):
        instrument, precursor, peaks, (line,) = stated_tolerances(paths)
        assert (instrument, precursor, peaks) == (None, Tolerance(), None)
        assert "--instrument qtof" in line
    assert stated_tolerances([tmp_path / "missing.msp"]) == (None, Tolerance(), None, ())


def test_spectra_that_nothing_explains_name_the_option():
    (line,) = unexplained_remark([0.0, 0.0, 0.4, 0.0, 0.1], None)
    assert "--instrument qtof" in line
    assert unexplained_remark([0.3, 0.0, 0.4, 0.0, 0.1], None) == []
    assert unexplained_remark([0.0] * 5, Tolerance(20.0)) == []
    assert unexplained_remark([0.0] * 4, None) == []
    assert unexplained_remark([], None) == []
