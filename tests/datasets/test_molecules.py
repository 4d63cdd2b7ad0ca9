import json
import math
from pathlib import Path

import numpy as np
import pytest

from mzseek.chem import exact_mass, fingerprints, formula, inchikey_block
from mzseek.core.errors import DatasetError
from mzseek.datasets.molecules import SmilesLists, build_molecule_table, collect, row_classes

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


HEADER = "identifier\tmzs\tintensities\tsmiles\tprecursor_mz\tadduct\tfold\tcollision_energy\n"
ROWS = [
    "a\t50.5,80\t1,0.5\tCCO\t47.05\t[M+H]+\ttrain\t30 eV\n",
    "b\t60\t1\tOCC\t69.03\t[M+Na]+\ttest\t\n",
    "c\t70\t1\tCCO\t47.05\t[M+H]+\tval\tramp\n",
    "far\t5000\t1\tCCN\t46.06\t[M+H]+\ttrain\t\n",
]


@pytest.fixture
def spectra(tmp_path: Path) -> Path:
    (tmp_path / "spectra.tsv").write_text(HEADER + "".join(ROWS))
    return tmp_path / "spectra.tsv"


def test_what_is_read_stands_side_by_side(spectra: Path) -> None:
    found = collect(spectra, {})
    assert found.identifiers == ["a", "b", "c"]
    assert found.smiles == {"CCO": 0, "OCC": 1}
    assert list(found.spectrum_smiles) == [0, 1, 0]
    assert list(found.folds) == [0, 2, 1]
    assert [found.adducts[code] for code in found.adduct_codes] == ["[M+H]+", "[M+Na]+", "[M+H]+"]
    assert list(found.peak_counts) == [2, 1, 1]
    assert list(found.mz) == [50.5, 80, 60, 70]
    assert found.energies[0] == 30
    assert all(math.isnan(energy) for energy in found.energies[1:])


def test_a_spectrum_without_a_peak_in_the_range_is_skipped(spectra: Path) -> None:
    [(where, reason)] = collect(spectra, {}).skipped
    assert where.endswith(": far")
    assert "has no peak between m/z" in reason
    with pytest.raises(DatasetError, match=r"no spectrum could be used \(the first: has no peak"):
        collect(spectra, {}, low=900, high=950)


def test_lists_share_the_numbers_of_the_spectra_s_smiles(spectra: Path, tmp_path: Path) -> None:
    (tmp_path / "lists.json").write_text(json.dumps({"CCO": ["CCO", "CCC"], "OCC": ["CCC"]}))
    told: list[tuple] = []
    found = collect(
        spectra, {"mass": tmp_path / "lists.json"}, progress=lambda *step: told.append(step)
    )
    numbers = {number: smiles for smiles, number in found.smiles.items()}
    lists = found.lists["mass"]
    assert [numbers[key] for key in lists.keys] == ["CCO", "OCC"]
    assert list(lists.counts) == [2, 1]
    assert [numbers[member] for member in lists.members] == ["CCO", "CCC", "CCC"]
    assert [step[:2] for step in told] == [("spectra", 3), ("mass candidates", 2)]


# Ethanol twice, no molecule, benzene, and two acids of the same MACCS keys.
TWINS = ["CCO", "OCC", "not one", "c1ccccc1", "CCCCCCCC(=O)O", "CCCCCCCCC(=O)O"]


@pytest.mark.parametrize(
    ("keys", "members", "truths", "molecules", "identity"),
    [
        ([0, 3], [[3, 1], [0]], [0, 1], [[1, 0], [0]], [0, 3, 0]),
        ([0, 2], [[2, 0], [0, 3]], [0, -1], [[0], []], [3]),  # of what is no molecule
        ([4], [[4, 5]], [2], [[2, 3]], [3, 1]),  # twins by their fingerprint alone
    ],
)
def test_smiles_of_lists_become_rows_of_the_table(
    keys, members, truths, molecules, identity
) -> None:
    counts, flat = [len(each) for each in members], [number for each in members for number in each]
    table = build_molecule_table(TWINS, kind="maccs")
    found = SmilesLists("", *(np.array(part, np.int32) for part in (keys, counts, flat)))
    resolved = found.resolve(table)
    assert resolved[0].tolist() == truths
    assert resolved[1].counts.tolist() == [len(each) for each in molecules]
    assert resolved[2].tolist() == [number for each in molecules for number in each]
    assert resolved[3].tolist() == identity
