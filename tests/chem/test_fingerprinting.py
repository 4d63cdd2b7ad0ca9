import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem, rdBase
from rdkit.Chem import MACCSkeys, rdFingerprintGenerator

from mzseek.chem import FINGERPRINTS, fingerprints
from mzseek.chem.fingerprint_kinds import map4_bits
from mzseek.chem.fingerprinting import (
    PAPER_FINGERPRINTS,
    check_version,
    fingerprint_kind,
    manifest_version,
)
from mzseek.core.errors import MoleculeError
from mzseek.similarity.packed import pack_words

# More bonds than any carbon has: RDKit writes its SMILES, and refuses to read it.
IMPOSSIBLE = "CC(C)(C)(C)C"
SMILES = ["CCO", "Cn1c(=O)c2c(ncn2C)n(C)c1=O", "O=C(O)c1ccccc1O", "C", "NC(Cc1ccccc1)C(=O)O"]

OF_RDKIT = [kind for kind in FINGERPRINTS if kind != "map4"]  # compared with its original below


def rows_of(rows) -> list[list[int]]:
    return [part.tolist() for part in np.split(rows.indices, rows.indptr[1:-1])]


def rdkit_bits(kind: str, molecule: Chem.Mol) -> list[int]:
    """RDKit's own call for one molecule."""
    if "-" in kind:  # one after the other
        first, second = kind.split("-")
        after = FINGERPRINTS[first].bits
        return rdkit_bits(first, molecule) + [after + n for n in rdkit_bits(second, molecule)]
    if kind.startswith("morgan"):
        generator = rdFingerprintGenerator.GetMorganGenerator(radius=int(kind[6:]), fpSize=4096)
        return list(generator.GetFingerprint(molecule).GetOnBits())
    if kind in ("rdkit", "rdkit4"):
        most = int(kind[5:] or 7)
        generator = rdFingerprintGenerator.GetRDKitFPGenerator(fpSize=4096, maxPath=most)
        return list(generator.GetFingerprint(molecule).GetOnBits())
    return list(MACCSkeys.GenMACCSKeys(molecule).GetOnBits())


@pytest.mark.parametrize("kind", OF_RDKIT)
def test_bits_are_rdkits_own(kind: str) -> None:
    rows = fingerprints(SMILES, kind)
    assert rows.shape == (len(SMILES), FINGERPRINTS[kind].bits)
    for bits, smiles in zip(rows_of(rows), SMILES, strict=True):
        assert bits == rdkit_bits(kind, Chem.MolFromSmiles(smiles))
    assert set(rows.data.tolist()) <= {1}


@pytest.mark.parametrize("kind", FINGERPRINTS)
def test_words_hold_the_same_bits(kind: str) -> None:
    molecules = [Chem.MolFromSmiles(smiles) for smiles in SMILES]
    words = FINGERPRINTS[kind].words(molecules)
    assert np.array_equal(words, pack_words(fingerprints(SMILES, kind)))
    assert FINGERPRINTS[kind].words([]).shape == (0, words.shape[1])


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("kind", OF_RDKIT)
def test_bits_of_a_thousand_real_molecules(shared: Path, kind: str) -> None:
    with gzip.open(shared / "data" / "molecules.tsv.gz", "rt") as stream:
        next(stream)
        smiles = [line.split("\t")[2] for n, line in enumerate(stream) if n % 2167 == 5][:1000]
    assert len(smiles) == 1000
    for bits, text in zip(rows_of(fingerprints(smiles, kind)), smiles, strict=True):
        assert bits == rdkit_bits(kind, Chem.MolFromSmiles(text)), text


def test_threads_and_batches_change_nothing() -> None:
    many = SMILES * 900  # more than one batch
    assert (fingerprints(many, threads=1) != fingerprints(many, threads=2)).nnz == 0


def test_products_count_common_bits_without_overflow() -> None:
    rows = fingerprints(["c1ccc2c(c1)Cc1ccccc1C2NCCCCCCCCC(=O)OCC"] * 2, "rdkit")
    common = (rows @ rows.T).toarray()
    assert common[0, 1] == rows.sum(axis=1)[0] > 255


def test_what_is_no_list_of_smiles_is_refused() -> None:
    assert fingerprints([], "map4").shape == (0, 4096)
    with pytest.raises(MoleculeError, match="'ecfp' is unknown, expected one of: morgan2, morgan4"):
        fingerprints(["C"], "ecfp")
    with pytest.raises(MoleculeError, match="expected a list of SMILES"):
        fingerprints("CCO")
    with pytest.raises(MoleculeError, match="molecule 1: None is no SMILES"):
        fingerprints(["CCO", None])  # type: ignore[list-item]
    with pytest.raises(MoleculeError, match=r"molecule 1: SMILES 'xyz'"):
        fingerprints(["C", "xyz"])


def test_names_are_those_of_the_kinds_and_load_no_library() -> None:
    assert {name: kind.name for name, kind in FINGERPRINTS.items()} == {n: n for n in FINGERPRINTS}
    assert set(PAPER_FINGERPRINTS) < set(FINGERPRINTS)
    assert fingerprint_kind("rdkit") is FINGERPRINTS["rdkit"]
    code = (
        "import sys, mzseek.chem.fingerprinting as r; list(r.FINGERPRINTS); "
        "sys.exit(bool({'numpy', 'rdkit'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("kind", FINGERPRINTS)
def test_manifests_state_the_expected_version(kind: str) -> None:
    versions = {"rdkit": "2026.3", **manifest_version(kind)}
    check_version(kind, {"versions": versions}, Path("here"), MoleculeError, "again")
    other = {"versions": {f"{kind} fingerprints": 9}}
    with pytest.raises(MoleculeError, match=f"here: has {kind} fingerprints of version 9, expecte"):
        check_version(kind, other, Path("here"), MoleculeError, "again")


@pytest.mark.shared
def test_rows_are_those_of_the_original_calculator(shared: Path) -> None:
    with gzip.open(shared / "golden" / "map4_rows.tsv.gz", "rt") as rows:
        expected = dict(line.rstrip("\n").split("\t") for line in rows.readlines()[1:])
    computed = fingerprints(list(expected), kind="map4")
    assert len(expected) == 1000
    for smiles, bits in zip(expected, rows_of(computed), strict=True):
        assert sorted(bits) == [int(bit) for bit in expected[smiles].split()], smiles


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
