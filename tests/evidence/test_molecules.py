"""Tables of molecules, each read once."""

import numpy as np
import pytest

from mzseek.chem import fingerprints
from mzseek.chem.molecules import DESCRIPTORS, descriptors
from mzseek.core.errors import MoleculeError
from mzseek.evidence import queries as molecules
from mzseek.evidence.queries import Molecules
from mzseek.fragments import fragment_table

SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "[Na+].[Cl-]", "CCCCC"]


@pytest.mark.parametrize("batch", [2, 100])
def test_what_is_read_at_once_is_what_is_read_apart(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(molecules, "_BATCH", batch)
    table = Molecules(SMILES, jobs=1)
    table.read(["morgan2", "maccs", "rdkit"], fragments=True)
    wanted = np.array([4, 0, 0])
    for kind in ("morgan2", "maccs", "rdkit", "morgan4"):  # the last was not read beforehand
        expected = fingerprints([SMILES[each] for each in wanted], kind).toarray()
        assert np.array_equal(table.fingerprints(wanted, kind).toarray(), expected)
    expected_fragments = fragment_table(SMILES, jobs=1)
    assert np.array_equal(table.fragments.starts, expected_fragments.starts)
    assert np.array_equal(table.fragments.masses, expected_fragments.masses)
    assert np.array_equal(table.fragments.codes, expected_fragments.codes)


def test_nothing_is_computed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    parse = molecules.parse_molecule
    monkeypatch.setattr(
        molecules, "parse_molecule", lambda text: parsed.append(text) or parse(text)
    )
    table = Molecules(SMILES, jobs=1)
    table.read(["morgan4", "rdkit", "rdkit"], fragments=True)
    table.read(["rdkit"], fragments=True)
    assert table.fragments is table.fragments
    table.words("morgan4")
    assert parsed == SMILES


def test_stored_fingerprints_are_looked_up_once() -> None:
    stored, asked = fingerprints(SMILES, "maccs"), []
    table = Molecules(SMILES, "maccs", lambda wanted: asked.append(wanted) or stored[wanted], 1)
    table.read(["maccs"])
    assert np.array_equal(
        table.fingerprints(np.array([2, 1])).toarray(), stored[np.array([2, 1])].toarray()
    )
    assert table.words("maccs").shape == (5, 3)
    assert len(asked) == 1


def test_an_empty_table_has_nothing() -> None:
    table = Molecules([], jobs=1)
    table.read(["rdkit"], fragments=True)
    assert table.words("rdkit").shape == (0, 64)
    assert len(table.fragments) == 0
    assert table.fingerprints(np.empty(0, np.int64)).shape == (0, 4096)


def test_what_is_no_molecule_is_named() -> None:
    with pytest.raises(MoleculeError, match="SMILES 'nothing'"):
        Molecules(["CCO", "nothing"], jobs=1).read(["rdkit"])


def test_descriptors_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    smiles = ["CCO", "c1ccccc1", "CN"]
    asked: list[str] = []

    def counted(texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        return descriptors(texts)

    monkeypatch.setattr("mzseek.evidence.queries.descriptors", counted)
    table = Molecules(smiles, jobs=1)
    assert np.array_equal(table.descriptors(np.array([1, 0, 1])), descriptors(smiles)[[1, 0, 1]])
    assert np.array_equal(table.descriptors(np.array([2, 1])), descriptors(smiles)[[2, 1]])
    assert asked == ["c1ccccc1", "CCO", "CN"]
    assert table.descriptors(np.empty(0, np.int64)).shape == (0, len(DESCRIPTORS))
