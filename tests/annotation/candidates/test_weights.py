"""Weights of molecules from a table: matched by key, and every bad row told."""

import math

import pytest

from mzseek.annotation.prior import read_weights
from mzseek.core.errors import InputError

CAFFEINE = "RYYVLZVUVIJVGH"
ETHANOL = "LFQSCWFLJHTTHZ"


@pytest.fixture
def write(tmp_path):
    def made(text, name="mine.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return made


def test_molecules_are_matched_by_their_first_block(write):
    rejects = []
    smiles = write("Canonical SMILES,Weight\nCn1c(=O)c2c(ncn2C)n(C)c1=O,100\nOCC,4\n")
    keys = write(f"inchikey\tweight\n{CAFFEINE}-UHFFFAOYSA-N\t100\n{ETHANOL}\t4\n", "keys.tsv")
    inchi = write("inchi;weight\nInChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3;4\n", "inchi.csv")
    one, two = read_weights(smiles, rejects), read_weights(keys, rejects)
    assert one.logs == two.logs == {CAFFEINE: math.log(100), ETHANOL: math.log(4)}
    assert read_weights(inchi, rejects).logs == {ETHANOL: math.log(4)}
    assert rejects == []
    values, inside = one.of([ETHANOL, "A" * 14, CAFFEINE])
    assert values.tolist() == [math.log(4), math.log(4), math.log(100)]  # the smallest for others
    assert inside == 2
    assert one.facts["molecules"] == 2


def test_a_key_goes_before_a_structure_and_a_structure_stands_in_for_it(write):
    path = write(f"smiles,inchikey,weight\nOCC,{CAFFEINE},2\nOCC,,3\nOCC,unknown,5\n")
    found = read_weights(path, [])
    assert found.logs[CAFFEINE] == pytest.approx(math.log(2))
    assert found.logs[ETHANOL] == pytest.approx(math.log(8))


def test_rows_of_one_molecule_add_up_in_any_order_and_any_size(write):
    rows = ["CCO,1e308", "OCC,1e308", "C(O)C,1e-300"]
    found = read_weights(write("smiles,weight\n" + "\n".join(rows)), [])
    again = read_weights(write("smiles,weight\n" + "\n".join(rows[::-1]), "b.csv"), [])
    assert found.logs == again.logs
    assert found.logs[ETHANOL] == pytest.approx(math.log(2) + math.log(1e308))
    assert found.least == pytest.approx(math.log(1e-300))


@pytest.mark.parametrize("weight", ["0", "-3", "nan", "inf", "many", "", "1,5"])
def test_a_weight_that_is_none_is_told(write, weight):
    rejects = []
    found = read_weights(write(f"smiles\tweight\nCCO\t{weight}\nCCN\t2\n", "a.tsv"), rejects)
    assert len(found.logs) == 1
    assert rejects == [("a.tsv: line 2", f"weight {weight!r} is no number above 0")]
    assert found.facts["set_aside"] == 1


def test_a_molecule_that_is_none_is_told(write):
    rejects = []
    rows = "XYZ,,1\n,,1\n,NOKEY,1\nCCO,\nCCO,,1\n"
    found = read_weights(write("smiles,inchikey,weight\n" + rows), rejects)
    assert list(found.logs) == [ETHANOL]
    assert [where for where, _ in rejects] == [f"mine.csv: line {n}" for n in (2, 3, 4, 5)]
    assert "XYZ" in rejects[0][1]
    assert [reason for _, reason in rejects[1:]] == [
        "has no molecule",
        "InChIKey 'NOKEY' is none",
        "has 2 columns, expected 3",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("smiles,citations\nCCO,1\n", "with a column weight and one of SMILES, InChI or InChIKey"),
        ("name,weight\nethanol,1\n", "it has 'name', 'weight'"),
        ("smiles,weight\nCCO,none\n", "no row has a molecule and a weight above 0; the first"),
        ("smiles,weight\n", "no row has a molecule and a weight above 0"),
        ("", "the file is empty"),
        ("smiles,weight,Weight\nCCO,1,2\n", "have one name"),
    ],
)
def test_a_file_that_will_not_do_is_refused_in_one_line(write, text, reason):
    with pytest.raises(InputError, match=r"mine\.csv") as refused:
        read_weights(write(text), [])
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_weights(tmp_path / "gone.csv", [])
