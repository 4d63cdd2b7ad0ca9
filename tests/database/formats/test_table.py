import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.errors import InputError, MzseekError
from mzseek.database.formats.tables import one_line
from mzseek.database.records import RecordsAt, describe_records

from ..conftest import read, read_as, shown


def test_columns_by_preference(tmp_path: Path) -> None:
    text = "structure,inchikey,iupac_name,title,smiles,hmdb_id\np.png,XX,ethanol,EtOH,CCO,H1\n"
    assert shown(read_as(tmp_path / "a.csv", text)[0]) == [("CCO", "H1", "EtOH")]


TWINS = {
    "two of one name": ("smiles,smiles,name\nCCO,CCN,x\n", {}, "columns 1 .* and 2 .* one name"),
    "two spellings of it": (
        "SMILES;name;smiles\nCCO;x;CCN\n", {}, r"1 \('SMILES'\) and 3 \('smiles'\)"
    ),
    "of the one that is taken": (
        "name\tCanonical SMILES\tcanonical_smiles\nx\tCCO\tCCN\n", {}, "columns 2 .* and 3 "
    ),
    "two names": ("smiles,name,Name\nCCO,x,y\n", {}, "columns 2 .* and 3 "),
    "two identifiers": ("id,smiles,ID\n1,CCO,2\n", {}, "columns 1 .* and 3 "),
    "two sources": ("source,smiles,source\n1,CCO,2\n", {}, "columns 1 .* and 3 "),
    "two InChI": ("inchi,smiles,InChI\n1,CCO,2\n", {}, "columns 1 .* and 3 "),
    "two that the user named": ("a,mine,mine\n1,CCO,CCN\n", {"smiles": "mine"}, "2 .* and 3 "),
    "two that are meant": ("a,Mine,mine\n1,CCO,CCN\n", {"smiles": "MINE"}, "columns 2 .* and 3 "),
    "a list": ("smiles smiles\nCCO CCN\n", {}, "columns 1 .* and 2 "),
    "an export": (
        "smiles,formula,mass,key,sources,identifiers,names,names\nCCO,,,,,,x,y\n", {}, "7 .* and 8 "
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TWINS)
def test_a_header_that_can_be_read_in_two_ways_is_refused(tmp_path: Path, case: str) -> None:
    text, columns, message = TWINS[case]
    with pytest.raises(InputError, match=message) as caught:
        read_as(tmp_path / "a.csv", text, columns=columns)
    assert str(caught.value).startswith(f"{tmp_path / 'a.csv'}: columns ")


def test_columns_that_are_not_read_may_repeat(tmp_path: Path) -> None:
    text = "note,smiles,note,isomeric_smiles,isomeric_smiles\na,CCO,b,C,C\n"
    assert shown(read_as(tmp_path / "a.csv", text)[0]) == [("CCO", "", "")]
    text = "smiles,SMILES,name\nC,CCO,x\n"  # of which the user says which
    assert shown(read_as(tmp_path / "a.csv", text, columns={"smiles": "SMILES"})[0]) == [
        ("CCO", "", "x")
    ]


def test_columns_named_by_the_user(tmp_path: Path) -> None:
    text = "smiles;My Smiles;ref;Bezeichnung;woher\nbad;CCO;7;Äthanol;Labor\n"
    named = {"smiles": "My Smiles", "id": "REF", "name": "Bezeichnung", "source": "woher"}
    records, _ = read_as(tmp_path / "a.csv", text, columns=named)
    assert shown(records) == [("CCO", "7", "Äthanol")]
    assert records[0].source == "Labor"
    with pytest.raises(
        InputError, match=r"no column is called 'Nom'; it has 'smiles', 'My Smiles'"
    ):
        read(tmp_path / "a.csv", columns={"name": "Nom"})
    with pytest.raises(InputError, match=r"no column is called 'SM'; it has 'smiles', 'My Smiles'"):
        read(tmp_path / "a.csv", columns={"smiles": "SM"})
    with pytest.raises(MzseekError, match=r"'mass' is unknown, expected one of: smiles, inchi, id"):
        read(tmp_path / "a.csv", columns={"mass": "mw"})
    records, _ = read_as(tmp_path / "one.txt", "My Smiles\nCCO\n", columns={"smiles": "My Smiles"})
    assert [r.text for r in records] == ["CCO"]


def test_bad_rows_are_set_aside(tmp_path: Path) -> None:
    text = "smiles,name\nCCO\n,nothing\nCC,a,b\nC,methane,,\n\nCCC,propane\n"
    records, rejects = read_as(tmp_path / "a.csv", text)
    assert [r.text for r in records] == ["C", "CCC"]  # empty cells beyond the last do no harm
    assert rejects == [
        ("line 2", "has 1 columns, expected 2"),
        ("line 3", "has no molecule"),
        ("line 4", "has 3 columns, expected 2"),
    ]
    assert records[-1].where.endswith("line 7")


def test_quotes(tmp_path: Path) -> None:
    text = 'name,smiles\n"butane, 2-methyl-",CCC(C)C\n"the ""best"" one","CC"\n5" rod,C\n'
    records, rejects = read_as(tmp_path / "a.csv", text)
    assert [r.name for r in records] == ["butane, 2-methyl-", 'the "best" one', '5" rod']
    text = 'name\tsmiles\n"2""-O\tC\n3"-x\tCC\n"in ""marks"""\tCCC\n"two\nlines"\tCCCC\nz\tCO\n'
    records, rejects = read_as(tmp_path / "a.tsv", text)
    assert [r.name for r in records] == ['"2""-O', '3"-x', 'in "marks"', "two lines", "z"]
    assert [r.where[-1] for r in records] == ["2", "3", "4", "5", "7"]
    assert rejects == []


def test_a_quote_that_is_never_closed_costs_one_line(tmp_path: Path) -> None:
    rows = "".join(f"name {n},{'C' * n}\n" for n in range(1, 101))
    records, rejects = read_as(tmp_path / "a.csv", f'name,smiles\n"oops,CO\n{rows}')
    assert rejects == [("line 2", "has a quotation mark that is not closed")]
    assert [r.name for r in records] == [f"name {n}" for n in range(1, 101)]
    records, rejects = read_as(tmp_path / "b.csv", 'name,smiles\nx,CO\n"oops,CO\ny,CC\n')
    assert ([r.name for r in records], len(rejects)) == (["x", "y"], 1)


def test_what_mzseek_exports_keeps_its_lists(tmp_path: Path) -> None:
    text = (
        "smiles,formula,mass,key,sources,identifiers,names\n"
        "CCO,C2H6O,46.041865,LFQSCWFLJHTTHZ,a; b,a:1; b:2,'=cmd; ethanol\n"
    )
    [record], _ = read_as(tmp_path / "a.csv", text)
    assert record.is_listed
    table = describe_records(RecordsAt([record], 0), "maccs").table
    assert table["sources"].to_pylist() == [["a", "b"]]
    assert table["identifiers"].to_pylist() == [["a:1", "b:2"]]
    assert table["names"].to_pylist() == [["=cmd", "ethanol"]]
    [record], _ = read_as(tmp_path / "a.csv", text, columns={"name": "names"})
    assert (record.is_listed, record.name) == (False, "'=cmd; ethanol")


# Control characters show a file to be no text.
CONTROLS = "".join(map(chr, [*range(9), *range(14, 27)]))


CELLS = st.text(st.characters(codec="utf-8", exclude_characters=CONTROLS), max_size=12)


@pytest.mark.parametrize("delimiter", ["\t", ",", ";"])
@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8))
def test_a_table_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, delimiter: str, rows: list[tuple[str, str]]
) -> None:
    if delimiter == "\t":  # where a mark before the end of a line is taken for a prime
        rows = [(identifier, one_line(name)) for identifier, name in rows]
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter)
    writer.writerow(["id", "smiles", "name"])
    writer.writerows([identifier, "CCO", name] for identifier, name in rows)
    records, rejects = read_as(tmp_path_factory.mktemp("table") / "a.txt", buffer.getvalue())
    assert rejects == []
    assert shown(records) == [("CCO", one_line(i), one_line(name)) for i, name in rows]


# As the programs write them: their own columns, and the order of these.
COMPTOX = (
    "INPUT,FOUND_BY,DTXSID,PREFERRED_NAME,CASRN,INCHIKEY,IUPAC_NAME,SMILES,INCHI_STRING,"
    "MOLECULAR_FORMULA,MONOISOTOPIC_MASS,QSAR_READY_SMILES,MS_READY_SMILES,IDENTIFIER\n"
    "C2H4O2,MS Ready Formula,DTXSID2021735,Sodium acetate,127-09-3,VMHLLURERBWHNL,sodium acetate,"
    "[Na+].CC([O-])=O,InChI=1S/x,C2H3NaO2,82.003074,CC(O)=O,CC(O)=O,127-09-3|E 262\n"
    "C2H4O2,MS Ready Formula,DTXSID5024394,Acetic acid,64-19-7,QTBSBXVTEAMEQO,acetic acid,"
    "CC(O)=O,,C2H4O2,60.021129,-,-,\n"
)
METFRAG = (
    "Identifier|InChI|MonoisotopicMass|MolecularFormula|SMILES|InChIKey1|InChIKey2|CompoundName\n"
    "702|InChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3|46.041865|C2H6O|CCO|LFQSCWFLJHTTHZ|UHFFFAOYSA|ethanol\n"
    "8254|InChI=1S/C2H6O/c1-3-2/h1-2H3|46.041865|C2H6O||LCGLNKUTAGEVQW|UHFFFAOYSA|methoxymethane\n"
)
PUBCHEM = (
    "cid,cmpdname,cmpdsynonym,mw,mf,polararea,inchi,isosmiles,canonicalsmiles,inchikey,iupacname\n"
    '702,Ethanol,"ethanol|64-17-5|alcohol",46.07,C2H6O,20.2,"InChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3",'
    "CCO,CCO,LFQSCWFLJHTTHZ-UHFFFAOYSA-N,ethanol\n"
)
PUBCHEM_NEW = PUBCHEM.replace("isosmiles,canonicalsmiles", "smiles,connectivitysmiles")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("CCD-Batch-Search.csv", COMPTOX,
         [("CC(O)=O", "DTXSID2021735", "Sodium acetate"),
          ("CC(O)=O", "DTXSID5024394", "Acetic acid")]),
        ("candidates.psv", METFRAG,
         [("CCO", "702", "ethanol"),
          ("InChI=1S/C2H6O/c1-3-2/h1-2H3", "8254", "methoxymethane")]),
        ("PubChem_compound_text.csv", PUBCHEM, [("CCO", "702", "Ethanol")]),
        ("PubChem_compound_text.csv", PUBCHEM_NEW, [("CCO", "702", "Ethanol")]),
        ("targets.csv", "Compound,Formula,SMILES\nEthanol,C2H6O,CCO\n", [("CCO", "", "Ethanol")]),
    ],
)  # fmt: skip
def test_tables_of_other_programs(tmp_path: Path, name: str, text: str, expected) -> None:
    records, rejects = read_as(tmp_path / name, text)
    assert (shown(records), rejects) == (expected, [])


def test_features_are_read_where_they_are_asked_for(tmp_path: Path) -> None:
    text = "SCANS,smiles,scans\n17,CCO,18\n"
    assert read_as(tmp_path / "a.csv", text)[0][0].feature is None
    with pytest.raises(InputError, match=r"columns 1 \('SCANS'\) and 3 \('scans'\) have one name"):
        read(tmp_path / "a.csv", columns={"feature": ""})
    records, _ = read_as(
        tmp_path / "a.csv", "feature,smiles\n17,CCO\n,CCN\n", columns={"feature": ""}
    )
    assert [record.feature for record in records] == ["17", ""]
    export = "smiles,formula,mass,key,sources,identifiers,names,query\nCCO,,,,a; b,1,x; y,17\n"
    [record], _ = read_as(tmp_path / "a.csv", export, columns={"feature": ""})
    assert (record.feature, record.is_listed, record.name) == ("17", True, "x; y")
