"""Candidates of one's own file: by mass, or for each feature its own."""

import pytest

from mzseek.annotation.candidates.listed import file_source
from mzseek.annotation.candidates.source import Molecule, distinct
from mzseek.errors import AnnotationError, InputError

ETHANOL = 46.041865


def written(tmp_path, text, name="mine.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_by_mass_for_all_features(tmp_path):
    rejects = []
    path = written(tmp_path, "name,smiles\nethanol,CCO\nether,COC\npropane,CCC\nbad,C(\n")
    source = file_source(path, rejects)
    assert [each.name for each in source.within(ETHANOL, 0.001)] == ["ethanol", "ether"]
    assert not source.within(100.0, 0.001)
    assert (len(source), source.by_feature) == (3, False)
    assert rejects[0][0].endswith("line 5")
    with pytest.raises(AnnotationError, match="no lists for single features"):
        source.of_feature("1")


@pytest.mark.parametrize("column", ["feature", "Feature ID", "feature_id", "row ID", "SCANS"])
def test_for_each_feature_its_own(tmp_path, column):
    source = file_source(written(tmp_path, f"{column},smiles\n1,CCO\n1,COC\n2,CCC\n"), [])
    assert source.by_feature
    assert [each.smiles for each in source.of_feature("1")] == ["CCO", "COC"]
    assert source.of_feature("3") == []


def test_by_formula_in_any_order(tmp_path):
    source = file_source(written(tmp_path, "smiles\nCCO\nCCC\n"), [])
    assert [m.smiles for m in source.of_formula("OC2H6", ETHANOL, 0.001)] == ["CCO"]
    with pytest.raises(AnnotationError, match="formula 'Xx'"):
        source.of_formula("Xx", ETHANOL, 0.001)


def test_facts_name_the_file_and_its_checksum(tmp_path):
    facts = file_source(written(tmp_path, "smiles\nCCO\n"), []).facts()
    assert facts["molecules"] == 1
    assert len(facts["sha256"]) == 64


def test_a_file_without_molecules_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no molecule that can be read"):
        file_source(written(tmp_path, "smiles\nC(\n"), [])


def test_molecules_of_one_key_are_one_in_an_order_of_their_own():
    a = Molecule("CCO", "B", "C2H6O", ETHANOL, "", ("x",), ("1",))
    b = Molecule("OCC", "B", "C2H6O", ETHANOL, "ethanol", ("y",), ("2",))
    c = Molecule("COC", "A", "C2H6O", ETHANOL)
    for given in ([a, b, c], [c, b, a]):
        first, second = distinct(given)
        assert first.smiles == "COC"
        assert (second.smiles, second.name) == ("CCO", "ethanol")
        assert set(second.sources) == {"x", "y"}
