import csv
import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rdkit import Chem

from mzseek.core.errors import InputError, MzseekError
from mzseek.database.formats import sdf
from mzseek.database.formats import tables as workbook
from mzseek.database.formats.tables import (
    KNOWN,
    one_line,
)
from mzseek.database.records import RecordsAt, describe_records
from mzseek.io.text_tables import normalise_name

from .conftest import read, read_as, shown, write_workbook


def test_names_are_written_as_they_are_compared() -> None:
    for names in KNOWN.values():
        assert [normalise_name(name) for name in names] == list(names)
        assert len(set(names)) == len(names)


INCHI = "InChI=1S/CH4/h1H4"


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("structure,inchikey,iupac_name,title,smiles,hmdb_id\np.png,XX,ethanol,EtOH,CCO,H1\n", {},
         [("CCO", "H1", "EtOH")]),
        ("Structure,Isomeric SMILES,canonical_smiles,PubChem CID\nC,CC,CCC,7\n", {},
         [("CCC", "7", "")]),
        ("Structure,Isomeric SMILES,canonical_smiles,PubChem CID\nC,CC,CCC,7\n",
         {"smiles": "structure"}, [("C", "7", "")]),
        ("smiles,inchi,mine\nC,CC,CCC\n", {"inchi": "mine"}, [("CCC", "", "")]),
        ("smiles,SMILES,name\nC,CCO,x\n", {"smiles": "SMILES"}, [("CCO", "", "x")]),
        ("My Smiles\nCCO\n", {"smiles": "My Smiles"}, [("CCO", "", "")]),
        ("smiles;My Smiles;ref;Bezeichnung\nbad;CCO;7;Äthanol\n",
         {"smiles": "My Smiles", "id": "REF", "name": "Bezeichnung"}, [("CCO", "7", "Äthanol")]),
        ("note,smiles,note,isomeric_smiles,isomeric_smiles\na,CCO,b,C,C\n", {},
         [("CCO", "", "")]),
        (f"smiles,inchi,name\nCCO,{INCHI}, a  b \nNaN,{INCHI},\n N ,,x\n", {},
         [("CCO", "", "a b"), (INCHI, "", ""), ("N", "", "x")]),
        ("SMILES,MS_READY_SMILES\n[Na+].CC([O-])=O,CC(O)=O\nCCO,-\n", {},
         [("CC(O)=O", "", ""), ("CCO", "", "")]),
        ("SMILES,MS_READY_SMILES\nCCO,CC\n", {"smiles": "SMILES"}, [("CCO", "", "")]),
        ('smiles,name\n" C[C@H](O)F |r,w:1.0| ",x\n', {}, [("C[C@H](O)F", "", "x")]),
        ('name,smiles\n"butane, 2-methyl-",CC\n"the ""best"" one","C"\n5" rod,N\n', {},
         [("CC", "", "butane, 2-methyl-"), ("C", "", 'the "best" one'), ("N", "", '5" rod')]),
        ('name\tsmiles\n"2""-O\tC\n3"-x\tCC\n"in ""marks"""\tN\n"two\nlines"\tO\nz\tCO\n', {},
         [("C", "", '"2""-O'), ("CC", "", '3"-x'), ("N", "", 'in "marks"'), ("O", "", "two lines"),
          ("CO", "", "z")]),
        # Lists, without a header.
        ("CCO\n\n  CCN   CHEMBL25 \nCCC propane gas\nC[C@H](O)F |r,w:1.0| Z99\n", {},
         [("CCO", "", ""), ("CCN", "CHEMBL25", ""), ("CCC", "", "propane gas"),
          ("C[C@H](O)F", "Z99", "")]),
        *((text, {}, [("CCO", "", "ethanol"), ("Oc1ccc2ccccc2c1", "", "2-naphthol"),
                      ("CC", "CHEMBL135626", "")])
          for text in (
              "CCO ethanol\nOc1ccc2ccccc2c1 2-naphthol\nCC CHEMBL135626\n",
              "CCO\tethanol\nOc1ccc2ccccc2c1\t2-naphthol\nCC\tCHEMBL135626\n",
              "CCO,ethanol\nOc1ccc2ccccc2c1,2-naphthol\nCC,CHEMBL135626\n",
              "ethanol;CCO\n2-naphthol;Oc1ccc2ccccc2c1\nCHEMBL135626;CC\n",
              "ethanol\tCCO\n2-naphthol\tOc1ccc2ccccc2c1\nCHEMBL135626\tCC\n",
          )),
    ],
)  # fmt: skip
def test_molecules_identifiers_and_names(tmp_path: Path, text: str, columns, expected) -> None:
    records, rejects = read_as(tmp_path / "a.csv", text, columns=columns)
    assert (shown(records), rejects) == (expected, [])


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"name": "Nom"}, InputError, "no column is called 'Nom'; it has 'smiles', 'My Smiles'"),
        ({"smiles": "SM"}, InputError, "no column is called 'SM'; it has 'smiles', 'My Smiles'"),
        ({"mass": "mw"}, MzseekError, "'mass' is unknown, expected one of: smiles, inchi, id"),
    ],
)
def test_columns_that_are_missing_are_named(tmp_path: Path, columns, error, message: str) -> None:
    with pytest.raises(error, match=message):
        read_as(tmp_path / "a.csv", "smiles;My Smiles\nC;CC\n", columns=columns)


@pytest.mark.parametrize(
    ("text", "expected", "skipped"),
    [
        ("smiles,name\nCCO\n,nothing\nCC,a,b\nC,methane,,\n\nCCC,propane\n",
         {5: "C", 7: "CCC"},  # empty cells beyond the last do no harm
         {2: "has 1 columns, expected 2", 3: "has no molecule", 4: "has 3 columns, expected 2"}),
        ('name,smiles\nx,CO\n"oops,CO\ny,CC\n', {2: "CO", 4: "CC"},
         {3: "has a quotation mark that is not closed"}),
        ('name,smiles\n"oops,CO\n' + "".join(f"n,{'C' * n}\n" for n in range(1, 101)),
         {n + 2: "C" * n for n in range(1, 101)}, {2: "has a quotation mark that is not closed"}),
        # Lines that are no molecules are left to whoever parses them.
        ("not-smiles\nCCO\nC1CC\n\n", {1: "not-smiles", 2: "CCO", 3: "C1CC"}, {}),
        ("1\tCCO\n2\t\n3\n4\tCCN\n", {1: "CCO", 4: "CCN"},
         {2: "has no molecule", 3: "has no molecule"}),
        ('"CCO","ethanol, absolute",702\n"CC",,6324\nC,methane\n,none\nCCC\n',
         {1: "CCO", 2: "CC", 3: "C"}, {4: "has no molecule", 5: "has no molecule"}),
    ],
)  # fmt: skip
def test_bad_rows_are_skipped(tmp_path: Path, text: str, expected, skipped) -> None:
    records, rejects = read_as(tmp_path / "a.csv", text)
    assert {int(r.where.rpartition(" ")[2]): r.text for r in records} == expected
    assert rejects == [(f"line {number}", reason) for number, reason in skipped.items()]


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


def record(smiles: str, title: str = "", fields: dict[str, str] | None = None, v3: bool = False):
    molecule = Chem.MolFromSmiles(smiles)
    molecule.SetProp("_Name", title)
    data = "".join(f"> <{name}> (1)\n{value}\n\n" for name, value in (fields or {}).items())
    return Chem.MolToMolBlock(molecule, forceV3000=v3) + data + "$$$$\n"


@pytest.mark.parametrize("v3", [False, True])
def test_blocks_are_molecules(tmp_path: Path, v3: bool) -> None:
    smiles = ["CCO", "c1ccccc1[N+](=O)[O-]", "C[C@H](N)C(=O)O"]
    text = "".join(record(each, f"mol {n}", v3=v3) for n, each in enumerate(smiles))
    for name, data in (("a.sdf", text.encode()), ("a.sdf.gz", gzip.compress(text.encode()))):
        records, rejects = read_as(tmp_path / name, data)
        assert rejects == []
        assert all(r.is_block for r in records)
        read_back = [Chem.MolToSmiles(Chem.MolFromMolBlock(r.text)) for r in records]
        assert read_back == [Chem.CanonSmiles(each) for each in smiles]
        assert [r.identifier for r in records] == ["mol 0", "mol 1", "mol 2"]
        assert [r.where for r in records] == [f"{tmp_path / name}: record {n}" for n in (1, 2, 3)]
        assert {r.source for r in records} == {"a"}


@pytest.mark.parametrize(
    ("fields", "identifier", "name"),
    [
        ({"PUBCHEM_COMPOUND_CID": "702", "PUBCHEM_IUPAC_NAME": "ethanol"}, "702", "ethanol"),
        ({"DATABASE_ID": "HMDB0000108", "GENERIC_NAME": "Ethanol"}, "HMDB0000108", "Ethanol"),
        ({"HMDB_ID": "HMDB0000108", "JCHEM_LOGP": "1"}, "HMDB0000108", ""),
        ({"ChEBI ID": "CHEBI:16236", "ChEBI NAME": "ethanol"}, "CHEBI:16236", "ethanol"),
        ({"chembl_id": "CHEMBL545", "chembl_pref_name": "ALCOHOL"}, "CHEMBL545", "ALCOHOL"),
        ({"LM_ID": "LMFA05000001", "NAME": "ethanol\nEtOH"}, "LMFA05000001", "ethanol"),
        ({"NAME": "", "COMMON_NAME": "alcohol", "ID": ""}, "title", "alcohol"),
        ({"ID": "1", "Ref. No": "R7", "Label": "x", "From": "lab"}, "R7", "x"),
    ],
)
def test_fields(tmp_path: Path, fields: dict[str, str], identifier: str, name: str) -> None:
    named = {"id": "Ref. No", "name": "label", "source": "From", "smiles": "does not matter"}
    columns = named if "Ref. No" in fields else {}
    [found], _ = read_as(tmp_path / "a.sdf", record("CCO", "title", fields), columns=columns)
    assert (found.identifier, found.name) == (identifier, name)
    assert found.source == fields.get("From", "a")


def test_bad_records_are_skipped(tmp_path: Path) -> None:
    good = record("CCO", "good")
    cut = good[: good.index("M  END")]
    empty = "\n\n\n  0  0  0  0  0  0  0  0  0  0999 V2000\nM  END\n$$$$\n"
    text = good + "$$$$\n" + cut + "$$$$\n" + empty + "a\nb\nc\nd\nM  END\n$$$$\n" + good + "\n\n"
    records, rejects = read_as(tmp_path / "a.sdf", text.replace("\n", "\r\n"))
    assert [r.where[-8:] for r in records] == ["record 1", "record 6"]
    assert rejects == [
        ("record 2", "has no molecule (no line 'M  END')"),
        ("record 3", "has no molecule (no line 'M  END')"),
        ("record 4", "has no molecule (no atoms)"),
        ("record 5", "has no molecule (no counts of atoms and bonds on its fourth line)"),
    ]


def test_two_data_fields_of_one_name_are_skipped_where_they_are_read(tmp_path: Path) -> None:
    good = record("CCO", "good")

    def with_fields(*fields: tuple[str, str]) -> str:
        lines = "".join(f"> <{name}>\n{value}\n\n" for name, value in fields)
        return good.replace("$$$$\n", lines + "$$$$\n")

    text = "".join(
        [
            with_fields(("CID", "1"), ("cid", "2")),
            with_fields(("Name", "x"), ("NAME", "y")),
            with_fields(("CID", "1"), ("CID", "1"), ("note", "a"), ("note", "b")),
            with_fields(("CID", ""), ("CID", "7")),
        ]
    )
    records, rejects = read_as(tmp_path / "a.sdf", text)
    assert [r.identifier for r in records] == ["1", "7"]
    assert rejects == [
        ("record 1", "has two data fields for its id, '1' and '2', expected one"),
        ("record 2", "has two data fields for its name, 'x' and 'y', expected one"),
    ]


def test_the_last_end_mark_may_be_missing(tmp_path: Path) -> None:
    good = record("CCO", "good")
    records, rejects = read_as(tmp_path / "a.mol", good.removesuffix("$$$$\n"))
    assert (len(records), rejects) == (1, [])
    records, rejects = read_as(tmp_path / "b.sdf", good + good[:100])
    assert (len(records), [where for where, _ in rejects]) == (1, ["record 2"])


def test_a_record_that_has_lost_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdf, "MAX_RECORD", 1000)
    good = record("CCO", "good")
    long = good.replace("$$$$\n", "x\n" * 600)
    records, rejects = read_as(tmp_path / "a.sdf", good + long + "$$$$\n" + good + long)
    assert [r.where[-8:] for r in records] == ["record 1", "record 3"]
    assert rejects == [(f"record {n}", "is longer than 1,000 characters") for n in (2, 4)]


ROWS = [
    ["DTXSID", "PREFERRED_NAME", "SMILES", "MONOISOTOPIC_MASS", "MS_READY_SMILES"],
    ["DTXSID9020584", "Ethanol", "CCO", 46.041865, "CCO"],
    ["DTXSID1", "Sodium acetate", "[Na+].CC([O-])=O", 82.0, "CC(O)=O"],
    ["DTXSID2", "Unknown substance", None, None, None],
    ["DTXSID3", "Methane", "C", 16, "-"],
]
COMPTOX_RECORDS = [
    ("CCO", "DTXSID9020584", "Ethanol"),
    ("CC(O)=O", "DTXSID1", "Sodium acetate"),
    ("C", "DTXSID3", "Methane"),
]


def test_the_first_sheet_with_molecules_is_read(tmp_path: Path) -> None:
    """CompTox has a cover sheet; what a file is shows in its content."""
    cover = [["CompTox Chemicals Dashboard"], [], ["Export date", 45000]]
    for name, sheets in {"a.xlsx": {"Sheet1": ROWS}, "b": {"Cover": cover, "Main": ROWS}}.items():
        records, rejects = read(write_workbook(tmp_path / name, sheets))
        assert shown(records) == COMPTOX_RECORDS
        assert [record.where for record in records] == [
            f"{tmp_path / name}: row {number}" for number in (2, 3, 5)
        ]
        assert rejects == [("row 4", "has no molecule")]


def test_numbers_are_identifiers_and_columns_can_be_named(tmp_path: Path) -> None:
    rows = [[None], ["cid", "Struktur", "feature"], [702, "CCO", 17], [703.0, "CCN", 18]]
    path = write_workbook(tmp_path / "a.xlsx", {"Tabelle1": rows})
    records, _ = read(path, columns={"smiles": "Struktur", "feature": ""})
    assert [(r.identifier, r.text, r.feature) for r in records] == [
        ("702", "CCO", "17"), ("703", "CCN", "18"),
    ]  # fmt: skip


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_workbook(tmp_path / "a.xlsx", {"One": [["Nr", "Wert"], [1, 2]], "Two": []})
    reason = (
        r"a\.xlsx: no sheet has a column that is called smiles, .*: 'One' has 'Nr', 'Wert'; 'Two'"
    )
    with pytest.raises(InputError, match=reason):
        read(path)
    with pytest.raises(InputError, match="no sheet has a column that is called 'Struktur': 'One'"):
        read(path, columns={"smiles": "Struktur"})
    good = write_workbook(tmp_path / "b.xlsx", {"One": ROWS})
    with pytest.raises(InputError, match="no column is called 'Nom'; it has 'DTXSID', 'PREFERRED"):
        read(good, columns={"name": "Nom"})
    monkeypatch.setattr(workbook, "MAX_WORKBOOK", 1_000)
    with pytest.raises(InputError, match=r"unfolds to 2,\d+ bytes, expected at most 1,000"):
        read(good)


def test_other_archives_and_damage_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("spectra.mgf", "BEGIN IONS")
    with pytest.raises(InputError, match="is not a text file; expected a list of SMILES"):
        read(tmp_path / "a.zip")
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(InputError, match="is damaged, or no workbook"):
        read(tmp_path / "old.xls")
    whole = write_workbook(tmp_path / "a.xlsx", {"One": ROWS}).read_bytes()
    (tmp_path / "a.xlsx.gz").write_bytes(gzip.compress(whole))
    with pytest.raises(InputError, match="is not a text file"):
        read(tmp_path / "a.xlsx.gz")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None,
          max_examples=200)  # fmt: skip
@given(at=st.floats(0, 1), data=st.binary(min_size=1, max_size=8), cut=st.booleans())
def test_damaged_workbooks_are_read_or_refused_in_one_line(
    tmp_path: Path, at: float, data: bytes, cut: bool
) -> None:
    whole = write_workbook(tmp_path / "a.xlsx", {"One": ROWS}).read_bytes()
    place = int(at * len(whole))
    rest = b"" if cut else whole[place + len(data) :]
    (tmp_path / "a.xlsx").write_bytes(whole[:place] + data + rest)
    message = ""
    try:
        read(tmp_path / "a.xlsx")
    except InputError as error:
        message = str(error)
    assert not message or message.startswith(str(tmp_path / "a.xlsx"))
    assert "\n" not in message


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "pool.parquet"
    table = pa.table(
        {
            "mass": [1.0, 2.0, 3.0],
            "Title": pa.array(["ethanol", None, "x"]).dictionary_encode(),
            "SMILES": ["CCO", "", "CCN"],
            "cid": [702.0, None, 7.0],
            "source": ["", "b", b"hmdb".decode()],
        }
    )
    pq.write_table(table, path)
    records, rejects = read(path)
    assert shown(records) == [("CCO", "702", "ethanol"), ("CCN", "7", "x")]
    assert [(r.source, r.where) for r in records] == [
        ("pool", f"{path}: record 1"), ("hmdb", f"{path}: record 3"),
    ]  # fmt: skip
    assert rejects == [("record 2", "has no molecule")]
    records, _ = read(path, columns={"name": "SMILES", "id": "mass"})
    assert shown(records)[0] == ("CCO", "1", "CCO")
    with pytest.raises(InputError, match=r"no column is called smiles, .*; it has 'mass', 'Title'"):
        pq.write_table(table.select(["mass", "Title"]), path)
        read(path)
    with pytest.raises(InputError, match="damaged or cut short"):
        path.write_bytes(path.read_bytes()[:-30])
        read(path)


def texts(*values: bytes) -> pa.Array:
    """A column of text that nobody has looked at."""
    ends = np.cumsum([0, *map(len, values)]).astype(np.int32)
    buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


@pytest.mark.parametrize(
    ("table", "expected", "skipped"),
    [
        ({"smiles": texts(b"CCO", b"C\xff\xfe"), "name": texts(b"x", b"y")}, ["CCO"],
         ("record 2", "holds text that is no UTF-8 (at byte 2)")),
        ({"smiles": texts(b"CCO", b"CCN"), "name": texts(b"x", b"C\xff\xfe")}, ["CCO"],
         ("record 2", "holds text that is no UTF-8 (at byte 2)")),
        ({"smiles": ["CCO", "C" * 2_000_000, "CCN"]}, ["CCO", "CCN"],
         ("record 2", "holds a text longer than 1,000,000 characters")),
        ({"smiles": pa.nulls(1), "name": pa.nulls(1)}, [], ("record 1", "has no molecule")),
        ({"smiles": [*(f"C{n}" for n in range(9_999)), ""]}, [f"C{n}" for n in range(9_999)],
         ("record 10000", "has no molecule")),
    ],
    ids=["smiles", "name", "long", "nulls", "several batches"],
)  # fmt: skip
def test_parquet_rows_that_cannot_be_read_are_skipped(
    tmp_path: Path, table, expected, skipped
) -> None:
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    records, rejects = read(tmp_path / "a.parquet")
    assert ([r.text for r in records], rejects) == (expected, [skipped])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"smiles": [1, 2]}, "column 'smiles' holds int64, expected text$"),
        ({"smiles": [["CCO"]]}, "column 'smiles' holds list<.*>, expected text$"),
        ({"smiles": ["CCO"], "name": [{"a": 1}]}, "'name' holds struct<.*>, expected text or numb"),
        ({"smiles": ["C"], "id": pa.array([1], pa.timestamp("s"))}, "'id' holds timestamp"),
        ({"smiles": ["C"], "SMILES": ["C"]}, r"columns 1 \(.*\) and 2 \(.*\) have one name"),
        (None, "is encrypted Parquet"),
    ],
)
def test_parquet_that_cannot_be_used_is_refused(tmp_path: Path, table, message: str) -> None:
    if table is None:
        (tmp_path / "a.parquet").write_bytes(b"PARE\0\0\0\0PARE")
    else:
        pq.write_table(pa.table(table), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=message):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    "smiles",
    [
        pa.array(["CCO"], pa.large_string()), pa.array(["CCO"], pa.string_view()),
        pa.array([b"CCO"], pa.binary()), pa.array([b"CCO"], pa.large_binary()),
        pa.array([b"CCO"], pa.binary(3)), pa.array(["CCO"]).dictionary_encode(),
    ],
    ids=lambda array: str(array.type),
)  # fmt: skip
def test_parquet_text_of_any_type(tmp_path: Path, smiles: pa.Array) -> None:
    number = pa.array([7], pa.uint8())
    pq.write_table(pa.table({"smiles": smiles, "cid": number}), tmp_path / "a.parquet")
    assert shown(read(tmp_path / "a.parquet")[0]) == [("CCO", "7", "")]
