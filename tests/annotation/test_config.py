"""Setups of what users name."""

from pathlib import Path

import pytest

from mzseek.annotation.config import LIBRARY, AnnotateConfig, larger_databases
from mzseek.core.errors import AnnotationError


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
    assert made.columns == {"smiles": "Struktur"}
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
