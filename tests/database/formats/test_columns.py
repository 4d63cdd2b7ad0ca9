import pytest

from mzseek.core.errors import InputError, MzseekError
from mzseek.database.formats.tables import (
    KNOWN,
    check_named,
    find_columns,
    holds_molecules,
    molecule_text,
    one_line,
    record_of,
    require_columns,
)
from mzseek.io.text_tables import normalise_name


def test_names_are_written_as_they_are_compared() -> None:
    for names in KNOWN.values():
        assert [normalise_name(name) for name in names] == list(names)
        assert len(set(names)) == len(names)


def test_the_first_name_by_preference_is_taken() -> None:
    names = ["Structure", "Isomeric SMILES", "canonical_smiles", "PubChem CID"]
    assert find_columns("a.csv", names, {}) == {"smiles": 2, "id": 3}
    assert find_columns("a.csv", names, {"smiles": "structure"}) == {"smiles": 0, "id": 3}
    assert find_columns("a.csv", ["weight"], {}) == {}


def test_a_molecule_that_the_user_named_is_the_only_one() -> None:
    names = ["smiles", "inchi", "mine"]
    assert find_columns("a.csv", names, {"smiles": "mine"}) == {"smiles": 2}
    assert find_columns("a.csv", names, {"inchi": "mine"}) == {"inchi": 2}
    assert holds_molecules({"inchi": 2})
    assert not holds_molecules({"id": 2})


def test_columns_that_are_missing_are_named() -> None:
    with pytest.raises(InputError, match=r"no column is called 'nr'; it has 'smiles'"):
        require_columns("a.csv", ["smiles"], {"smiles": 0}, {"id": "nr"})
    with pytest.raises(InputError, match=r"no column is called smiles, .* it has 'weight'"):
        require_columns("a.csv", ["weight"], {}, {})
    with pytest.raises(
        MzseekError, match=r"a column for 'mass' is unknown, expected one of: smiles"
    ):
        check_named({"mass": "mw"})


def test_a_row_without_smiles_takes_its_inchi() -> None:
    places = {"smiles": 0, "inchi": 1, "name": 2}
    assert record_of("x", ["CCO", "InChI=1S/CH4/h1H4", " a  b "], places, "file")[1:5] == (
        "CCO", "", "a b", "file",
    )  # fmt: skip
    assert record_of("x", ["NaN", "InChI=1S/CH4/h1H4", ""], places, "").text == "InChI=1S/CH4/h1H4"
    assert record_of("x", ["", "n/a", "named"], places, "") is None


def test_the_ms_ready_form_comes_first_and_the_substance_stands_in() -> None:
    places = find_columns("a.csv", ["SMILES", "MS_READY_SMILES"], {})
    assert record_of("x", ["[Na+].CC([O-])=O", "CC(O)=O"], places, "").text == "CC(O)=O"
    assert record_of("x", ["CCO", "-"], places, "").text == "CCO"
    named = find_columns("a.csv", ["SMILES", "MS_READY_SMILES"], {"smiles": "SMILES"})
    assert named == {"smiles": 0}


def test_cells_are_cleaned() -> None:
    assert molecule_text(" C[C@H](O)F |r,w:1.0| ") == "C[C@H](O)F"
    assert [molecule_text(text) for text in ("", "-", "None", "null", "N")] == [""] * 4 + ["N"]
    assert one_line(" a\tb\r\n c ") == "a b c"
