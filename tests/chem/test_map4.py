"""MAP4 against rows of the package of its authors, which ``benchmarks/published_map4.py`` wrote."""

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem, rdBase

from mzseek.chem.fingerprinting import FINGERPRINTS
from mzseek.chem.map4 import map4_bits

PUBLISHED = [
    line.split("\t")
    for line in Path(__file__).with_name("map4_rows.tsv").read_text().splitlines()[2:]
]
# More bonds than any carbon has: RDKit writes its SMILES, and refuses to read it.
IMPOSSIBLE = "CC(C)(C)(C)C"


def digest(bits: np.ndarray) -> str:
    return sha256(",".join(map(str, bits.tolist())).encode()).hexdigest()[:16]


def test_rows_are_the_published_ones() -> None:
    assert len(PUBLISHED) == 1000
    different = []
    for smiles, size, expected in PUBLISHED:
        bits = map4_bits(Chem.MolFromSmiles(smiles))
        if (str(len(bits)), digest(bits)) != (size, expected):
            different.append(smiles)
    assert not different


def test_few_of_a_thousand_molecules_share_a_row() -> None:
    rows = {digest(map4_bits(Chem.MolFromSmiles(smiles))) for smiles, _, _ in PUBLISHED}
    assert len(rows) > 980


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("N[C@@H](C)C(=O)O", "N[C@H](C)C(=O)O"),
        ("N[C@@H](C)C(=O)O", "NC(C)C(=O)O"),
        ("C/C=C/C", "C/C=C\\C"),
        ("C/C=C/C", "CC=CC"),
        ("[13CH3]CO", "CCO"),
    ],
)
def test_stereo_and_isotopes_say_nothing(one: str, other: str) -> None:
    rows = [map4_bits(Chem.MolFromSmiles(smiles)).tolist() for smiles in (one, other)]
    assert rows[0] == rows[1] != []


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
