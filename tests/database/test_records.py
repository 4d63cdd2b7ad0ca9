import numpy as np
import pytest
from rdkit import Chem

from mzseek.chem import FINGERPRINTS, exact_mass, fingerprints, formula, inchikey_block
from mzseek.database.records import (
    MoleculeRecord,
    RecordsAt,
    describe_records,
    fingerprint_bytes,
    packed,
    part_schema,
)

from .conftest import METHANES, NAMELESS


def described(*texts: str, kind: str = "morgan2", first: int = 0):
    records = [MoleculeRecord(f"line {n}", text) for n, text in enumerate(texts, 1)]
    return describe_records(RecordsAt(records, first), kind)


def unpacked(table) -> np.ndarray:
    rows = [np.frombuffer(each, np.uint8) for each in table["fingerprint"].to_pylist()]
    return np.unpackbits(np.array(rows), axis=1)


@pytest.mark.parametrize("kind", FINGERPRINTS)
def test_rows_say_what_the_chemistry_room_says(kind: str, pool: list[str]) -> None:
    table = described(*pool[:40], kind=kind).table
    assert table.schema == part_schema(kind)
    assert table["smiles"].to_pylist() == [Chem.CanonSmiles(smiles) for smiles in pool[:40]]
    for row in table.select(["key", "smiles", "formula", "mass"]).to_pylist():
        assert row["key"] == inchikey_block(row["smiles"])
        assert row["formula"] == formula(row["smiles"])
        assert row["mass"] == round(exact_mass(row["smiles"]), 6)
    bits = unpacked(table)
    dense = fingerprints(pool[:40], kind).toarray()
    assert (bits[:, : dense.shape[1]] == dense).all()
    assert not bits[:, dense.shape[1] :].any()
    assert table["bits"].to_pylist() == dense.sum(axis=1).tolist()


@pytest.mark.parametrize("kind", FINGERPRINTS)
def test_fingerprints_are_whole_words(kind: str) -> None:
    width = fingerprint_bytes(kind)
    assert width % 8 == 0
    assert 0 <= 8 * width - FINGERPRINTS[kind].bits < 64


def test_salts_charges_and_stereo_are_dropped() -> None:
    table = described("C[C@H](N)C(=O)[O-].[Na+]", "C[C@@H](N)C(=O)O", "CC(N)C(=O)O").table
    assert set(table["smiles"].to_pylist()) == {"CC(N)C(=O)O"}
    assert len(set(table["key"].to_pylist())) == 1


def test_isotopologues_have_one_key_and_three_masses() -> None:
    table = described(*METHANES).table
    assert set(table["key"].to_pylist()) == {inchikey_block("C")}
    assert np.diff(table["mass"].to_numpy()) == pytest.approx([1.006277] * 2)


def test_what_inchi_cannot_name_has_its_smiles_as_key() -> None:
    row = described(NAMELESS).table.to_pylist()[0]
    assert row["key"] == "SMILES=" + row["smiles"]
    assert row["mass"] == pytest.approx(exact_mass(NAMELESS), abs=1e-6)


def test_bad_molecules_are_set_aside_with_their_places() -> None:
    found = described("CCO", "C1CC", "CCN", "*CC", "not SMILES", first=70)
    assert found.table["place"].to_pylist() == [70, 72]
    assert [where for where, _ in found.skipped] == ["line 2", "line 4", "line 5"]
    reasons = [reason for _, reason in found.skipped]
    assert "not valid SMILES" in reasons[0]
    assert "atom of no element" in reasons[1]
    assert "white space" in reasons[2]


def test_a_batch_without_a_good_molecule_is_an_empty_table() -> None:
    for texts in ((), ("C1CC",)):
        found = described(*texts)
        assert found.table.num_rows == 0
        assert found.table.schema == part_schema("morgan2")


def test_inchi_and_mol_blocks_are_read() -> None:
    caffeine = Chem.MolFromSmiles("Cn1c(=O)c2c(ncn2C)n(C)c1=O")
    records = [
        MoleculeRecord("a", Chem.MolToInchi(caffeine)),
        MoleculeRecord("b", Chem.MolToMolBlock(caffeine), is_block=True),
        MoleculeRecord("c", "InChI=1S/nonsense"),
        MoleculeRecord("d", "no block", is_block=True),
        MoleculeRecord("e", Chem.MolToInchi(caffeine).removeprefix("InChI=")),
    ]
    found = describe_records(RecordsAt(records, 0), "morgan2")
    assert found.table["smiles"].to_pylist() == ["Cn1c(=O)c2c(ncn2C)n(C)c1=O"] * 3
    assert [where for where, _ in found.skipped] == ["c", "d"]
    assert found.skipped[1][1] == "the MOL block cannot be read as a molecule"


def test_sources_identifiers_and_names_are_lists() -> None:
    records = [
        MoleculeRecord("a", "CCO", "702", "ethanol", "pubchem"),
        MoleculeRecord("b", "CCO", "702", "", ""),
        MoleculeRecord("c", "CCO", "", "ethanol", "mine"),
    ]
    table = describe_records(RecordsAt(records, 0), "morgan2").table
    assert table["sources"].to_pylist() == [["pubchem"], [], ["mine"]]
    assert table["identifiers"].to_pylist() == [["pubchem:702"], ["702"], []]
    assert table["names"].to_pylist() == [["ethanol"], [], ["ethanol"]]


def test_packed_bits_come_back() -> None:
    rows = [np.array(bits, np.uint16) for bits in ([0, 7, 8, 4095], [], [63, 64])]
    column = packed(rows, "morgan2")
    assert len(column) == 3
    back = np.unpackbits(np.array([np.frombuffer(b, np.uint8) for b in column.to_pylist()]), axis=1)
    assert [np.flatnonzero(row).tolist() for row in back] == [row.tolist() for row in rows]
    assert len(packed([], "morgan2")) == 0
