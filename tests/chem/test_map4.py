"""MAP4 against rows of the original calculator, and its invariance to how a molecule is written."""

import gzip
from pathlib import Path

import pytest
from rdkit import Chem, rdBase

from mzseek.chem import fingerprints
from mzseek.chem.fingerprint_kinds import map4_bits
from mzseek.chem.fingerprinting import FINGERPRINTS

# More bonds than any carbon has: RDKit writes its SMILES, and refuses to read it.
IMPOSSIBLE = "CC(C)(C)(C)C"


@pytest.mark.shared
def test_rows_are_those_of_the_original_calculator(shared: Path) -> None:
    with gzip.open(shared / "golden" / "map4_rows.tsv.gz", "rt") as rows:
        expected = dict(line.rstrip("\n").split("\t") for line in rows.readlines()[1:])
    computed = fingerprints(list(expected), kind="map4")
    different = [
        smiles
        for smiles, start, stop in zip(
            expected, computed.indptr[:-1], computed.indptr[1:], strict=True
        )
        if sorted(computed.indices[start:stop].tolist())
        != [int(b) for b in expected[smiles].split()]
    ]
    assert (len(expected), different) == (1000, [])


def test_environments_are_in_alphabetical_order() -> None:
    # By length, 501 and 1024 would be set instead of 491 and 837.
    assert map4_bits(Chem.MolFromSmiles("NCCO")).tolist() == [
        491, 680, 787, 831, 837, 967, 1529, 1875, 1888, 3219, 3598, 3875
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "otherwise"),
    [
        ("N[C@@H](C)C(=O)O", "OC(=O)[C@H](C)N"),
        ("C/C=C/C", "CC=CC"),
        ("[13CH3]CO", "OCC"),
        ("Cn1c(=O)c2c(ncn2C)n(C)c1=O", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C"),
    ],
)
def test_stereo_isotopes_of_heavy_atoms_and_atom_order_change_nothing(
    written: str, otherwise: str
) -> None:
    rows = fingerprints([written, otherwise], kind="map4").toarray()
    assert rows[0].tolist() == rows[1].tolist()
    assert rows[0].any()


def test_rows_are_folded_by_the_remainder() -> None:
    molecule = Chem.MolFromSmiles("Cn1c(=O)c2c(ncn2C)n(C)c1=O")
    folded = sorted({bit % 64 for bit in map4_bits(molecule, 4096).tolist()})
    assert map4_bits(molecule, 64).tolist() == folded


def test_a_molecule_that_rdkit_cannot_read_again_has_a_row(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with rdBase.BlockLogs():
        assert Chem.MolFromSmiles(IMPOSSIBLE) is None
    molecule = Chem.MolFromSmiles(IMPOSSIBLE, sanitize=False)
    molecule.UpdatePropertyCache(strict=False)
    reordered = Chem.RenumberAtoms(molecule, [3, 1, 5, 0, 2, 4])
    rows = FINGERPRINTS["map4"].rows([molecule, reordered])
    assert rows[0].tolist() == rows[1].tolist() != []
    assert capfd.readouterr().err == ""
