import gzip
from pathlib import Path

import pytest
from rdkit import Chem

from mzseek.database.formats import sdf
from mzseek.database.records import MoleculeRecord
from mzseek.database.sources import read_molecules


def record(smiles: str, title: str = "", fields: dict[str, str] | None = None, v3: bool = False):
    molecule = Chem.MolFromSmiles(smiles)
    molecule.SetProp("_Name", title)
    data = "".join(f"> <{name}> (1)\n{value}\n\n" for name, value in (fields or {}).items())
    return Chem.MolToMolBlock(molecule, forceV3000=v3) + data + "$$$$\n"


def read(
    path: Path, text: str | bytes, **options
) -> tuple[list[MoleculeRecord], list[tuple[str, str]]]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    rejects: list[tuple[str, str]] = []
    records = list(read_molecules([path], lambda w, r: rejects.append((w, r)), **options))
    return records, [(where.removeprefix(f"{path}: "), reason) for where, reason in rejects]


@pytest.mark.parametrize("v3", [False, True])
def test_blocks_are_molecules(tmp_path: Path, v3: bool) -> None:
    smiles = ["CCO", "c1ccccc1[N+](=O)[O-]", "C[C@H](N)C(=O)O"]
    text = "".join(record(each, f"mol {n}", v3=v3) for n, each in enumerate(smiles))
    for name, data in (("a.sdf", text.encode()), ("a.sdf.gz", gzip.compress(text.encode()))):
        records, rejects = read(tmp_path / name, data)
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
    ],
)
def test_fields(tmp_path: Path, fields: dict[str, str], identifier: str, name: str) -> None:
    [found], _ = read(tmp_path / "a.sdf", record("CCO", "title", fields))
    assert (found.identifier, found.name) == (identifier, name)


def test_fields_named_by_the_user(tmp_path: Path) -> None:
    text = record("CCO", "t", {"ID": "1", "Ref. No": "R7", "Label": "x", "From": "lab"})
    named = {"id": "Ref. No", "name": "label", "source": "From", "smiles": "does not matter"}
    [found], _ = read(tmp_path / "a.sdf", text, columns=named)
    assert (found.identifier, found.name, found.source) == ("R7", "x", "lab")


def test_bad_records_are_set_aside(tmp_path: Path) -> None:
    good = record("CCO", "good")
    cut = good[: good.index("M  END")]
    empty = "\n\n\n  0  0  0  0  0  0  0  0  0  0999 V2000\nM  END\n$$$$\n"
    text = good + "$$$$\n" + cut + "$$$$\n" + empty + "a\nb\nc\nd\nM  END\n$$$$\n" + good + "\n\n"
    records, rejects = read(tmp_path / "a.sdf", text.replace("\n", "\r\n"))
    assert [r.where[-8:] for r in records] == ["record 1", "record 6"]
    assert rejects == [
        ("record 2", "has no molecule (no line 'M  END')"),
        ("record 3", "has no molecule (no line 'M  END')"),
        ("record 4", "has no molecule (no atoms)"),
        ("record 5", "has no molecule (no counts of atoms and bonds on its fourth line)"),
    ]


def test_two_data_fields_of_one_name_are_set_aside_where_they_are_read(tmp_path: Path) -> None:
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
    records, rejects = read(tmp_path / "a.sdf", text)
    assert [r.identifier for r in records] == ["1", "7"]
    assert rejects == [
        ("record 1", "has two data fields for its id, '1' and '2', expected one"),
        ("record 2", "has two data fields for its name, 'x' and 'y', expected one"),
    ]


def test_the_last_end_mark_may_be_missing(tmp_path: Path) -> None:
    good = record("CCO", "good")
    records, rejects = read(tmp_path / "a.mol", good.removesuffix("$$$$\n"))
    assert (len(records), rejects) == (1, [])
    records, rejects = read(tmp_path / "b.sdf", good + good[:100])
    assert (len(records), [where for where, _ in rejects]) == (1, ["record 2"])


def test_a_record_that_has_lost_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdf, "MAX_RECORD", 1000)
    good = record("CCO", "good")
    long = good.replace("$$$$\n", "x\n" * 600)
    records, rejects = read(tmp_path / "a.sdf", good + long + "$$$$\n" + good + long)
    assert [r.where[-8:] for r in records] == ["record 1", "record 3"]
    assert rejects == [(f"record {n}", "is longer than 1,000 characters") for n in (2, 4)]
