"""Candidates of one's own file: by mass, or for each feature its own."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rdkit import Chem

from mzseek.annotation.candidates import (
    ListedSource,
    Molecule,
    StoreSource,
    distinct,
    file_source,
    library_source,
    read_formulas,
)
from mzseek.core.errors import AnnotationError, DatabaseError, InputError
from mzseek.database import build_database, file_sources

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


def test_molecules_of_a_library_have_the_names_of_the_bundle(bundle):
    library = bundle.library
    key = library.molecules["inchikey"][0].as_py()[:14]
    source = library_source(library, "mine", {key: "first"})
    assert {each.name for each in source.molecules if each.key == key} == {"first"}
    assert {each.name for each in source.molecules if each.key != key} <= {""}


@pytest.mark.parametrize("column", ["feature", "Feature ID", "feature_id", "row ID", "SCANS"])
def test_for_each_feature_its_own(tmp_path, column):
    source = file_source(written(tmp_path, f"{column},smiles\n1,CCO\n1,COC\n2,CCC\n"), [])
    assert source.by_feature
    assert [each.smiles for each in source.of_feature("1")] == ["CCO", "COC"]
    assert source.of_feature("3") == []


def as_sdf(tmp_path):
    blocks = [
        Chem.MolToMolBlock(Chem.MolFromSmiles(smiles)) + f"> <feature>\n{feature}\n\n$$$$\n"
        for feature, smiles in (("1", "CCO"), ("1", "COC"), ("2", "CCC"), ("", "CCN"))
    ]
    return written(tmp_path, "".join(blocks), "mine.sdf")


def as_parquet(tmp_path):
    rows = {"feature": [1, 1, 2, None], "smiles": ["CCO", "COC", "CCC", "CCN"]}
    pq.write_table(pa.table(rows), tmp_path / "mine.parquet")
    return tmp_path / "mine.parquet"


def as_text(tmp_path):
    return written(tmp_path, "feature|SMILES\n1|CCO\n1|COC\n2|CCC\n|CCN\n", "mine.psv")


@pytest.mark.parametrize("make", [as_sdf, as_parquet, as_text])
def test_features_of_every_format(tmp_path, make):
    rejects = []
    source = file_source(make(tmp_path), rejects)
    assert source.by_feature
    assert list(source.features()) == ["1", "2"]
    assert [each.smiles for each in source.of_feature("1")] == ["CCO", "COC"]
    assert [each.smiles for each in source.of_feature("2")] == ["CCC"]
    [(where, reason)] = rejects
    assert where.startswith(str(tmp_path))
    assert reason == "names no feature, as other rows do"
    assert source.metadata()["set_aside"] == 1


@pytest.mark.parametrize("header", ["smiles,name", "smiles,feature"])
def test_each_row_of_one_bad_text_is_skipped(tmp_path, header):
    rejects = []
    path = written(tmp_path, f"{header}\nCCO,1\nC(,2\nC(,2\nC(,\n")
    source = file_source(path, rejects)
    assert [where.partition(": ")[2] for where, _ in rejects] == ["line 3", "line 4", "line 5"]
    assert all("'C('" in reason for _, reason in rejects)
    assert source.metadata()["set_aside"] == 3


def test_columns_that_the_user_names(tmp_path):
    path = written(tmp_path, "Nr,Struktur,Bezeichnung\n1,CCO,Weingeist\n")
    with pytest.raises(
        InputError, match=r"no column holds molecules; .* --smiles-column names one"
    ):
        file_source(path, [])
    source = file_source(path, [], {"smiles": "Struktur", "name": "Bezeichnung"})
    assert [each.name for each in source.within(ETHANOL, 0.001)] == ["Weingeist"]


def test_facts_name_the_file_and_its_checksum(tmp_path):
    facts = file_source(written(tmp_path, "smiles\nCCO\n"), []).metadata()
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


@pytest.mark.parametrize(
    "text",
    [
        "smiles,name,id\nCCO,ethanol,7\nCOC,,\nOCC,spirit,8\n",
        "feature,smiles\n1,CCO\n,COC\n1,CCC\nß,CCO\n",
    ],
)
def test_a_file_comes_back_as_it_was_described(tmp_path, text):
    path = tmp_path / "mine.csv"
    path.write_text(text, encoding="utf-8")
    source = file_source(path, [])
    source.save(tmp_path / "saved.json")
    again = ListedSource.load(tmp_path / "saved.json")
    path.unlink()
    assert (again.label, again.metadata(), again.by_feature) == (
        source.label, source.metadata(), source.by_feature)  # fmt: skip
    assert again.molecules == source.molecules
    assert again.lists == source.lists
    assert again.within(46.041865, 0.001) == source.within(46.041865, 0.001)


def test_sources_and_identifiers_are_kept(tmp_path):
    one = Molecule("CCO", "LFQSCWFLJHTTHZ", "C2H6O", 46.041865, "x", ("a", "b"), ("1",))
    ListedSource("mine", [one], {"kind": "file"}).save(tmp_path / "saved.json")
    assert ListedSource.load(tmp_path / "saved.json").molecules == [one]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    (folder / "mine.csv").write_text("id,name,smiles\n1,ethanol,CCO\n2,ether,COC\n3,propane,CCC\n")
    build_database(file_sources([folder / "mine.csv"]), folder / "db")
    return StoreSource.open(folder / "db")


def test_by_mass_with_all_that_the_store_knows(source):
    found = source.within(46.041865, 0.0005)
    assert {each.name for each in found} == {"ethanol", "ether"}
    one = next(each for each in found if each.name == "ethanol")
    assert (one.key, one.formula, one.sources) == ("LFQSCWFLJHTTHZ", "C2H6O", ("mine",))
    assert one.identifiers == ("mine:1",)


def test_facts(source):
    facts = source.metadata()
    assert (facts["kind"], facts["molecules"], source.label) == ("database", 3, "db")
    assert all(len(digest) == 64 for digest in facts["sha256"].values())


def test_no_store(tmp_path):
    with pytest.raises(DatabaseError):
        StoreSource.open(tmp_path)


def test_formulas_are_read_in_any_order_of_elements(tmp_path):
    path = written(tmp_path, "Feature ID,molecularFormula\n7,OC2H6\n8,C8H10N4O2\n9,\n")
    assert read_formulas(path) == {"7": "C2H6O", "8": "C8H10N4O2"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("feature,mass\n7,1\n", "expected a table with columns feature and formula"),
        ("feature,formula\n7,Xx\n", "line 2: formula 'Xx'"),
        ("feature,formula\n7,CH4\n7,C2H6\n", "line 3: feature '7' has two formulas"),
        ("feature,formula\n7,\n", "names no formula"),
    ],
)
def test_tables_without_formulas_are_refused(tmp_path, text, reason):
    with pytest.raises(InputError, match=reason):
        read_formulas(written(tmp_path, text, "formulas.csv"))
