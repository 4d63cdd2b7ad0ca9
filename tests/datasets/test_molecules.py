import numpy as np
import pytest

from mzseek.chem import exact_mass, fingerprints, formula, inchikey_block
from mzseek.datasets.molecules import build_molecule_table, row_classes

SMILES = ["CCO", "OCC", "not one", "c1ccccc1", "N[C@@H](C)C(=O)O", "C[C@H](N)C(=O)O", ""]


def test_same_molecules_are_one_row() -> None:
    table = build_molecule_table(SMILES)
    assert table.index.tolist() == [0, 0, -1, 1, 2, 2, -1]
    assert set(table.faults) == {2, 6}
    for place, smiles in ((0, "CCO"), (1, "c1ccccc1"), (2, "C[C@H](N)C(=O)O")):
        assert table.formulas[place] == formula(smiles)
        assert table.masses[place] == pytest.approx(exact_mass(smiles))
        assert bytes(table.inchikey14[place]).decode() == inchikey_block(smiles)
    assert (table.fingerprints() != fingerprints(["CCO", "c1ccccc1", "C[C@H](N)C(=O)O"])).nnz == 0


def test_processes_change_nothing() -> None:
    many = [f"{'C' * n}O" for n in range(1, 60)] * 40
    one, two = (build_molecule_table(many, jobs=jobs) for jobs in (1, 2))
    assert one.smiles == two.smiles
    assert np.array_equal(one.index, two.index)
    assert np.array_equal(one.fingerprint_bits, two.fingerprint_bits)


def test_progress_ends_at_the_total() -> None:
    seen: list[tuple[str, int, int | None]] = []
    build_molecule_table(["C", "CC"], progress=lambda *step: seen.append(step))
    assert seen[-1] == ("molecules", 2, 2)


def test_classes_are_equal_exactly_for_equal_rows() -> None:
    rows = [[1, 2], [3], [], [1, 2], [1], [], [2, 1]]
    values = np.array([v for r in rows for v in r], np.uint16)
    indptr = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
    classes = row_classes(values, indptr)
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            assert (classes[i] == classes[j]) == (one == other)


def test_molecules_without_a_key_are_nobodys_twin() -> None:
    table = build_molecule_table(["C", "[Og]", "[Ts]"])
    table.inchikey14 = np.array([b"AAAA", b"", b""], dtype="S14")
    assert len(set(table.inchikey_classes.tolist())) == 3
