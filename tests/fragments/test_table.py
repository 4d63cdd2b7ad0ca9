import numpy as np
import pytest

from mzseek.core.errors import MoleculeError
from mzseek.fragments import fragment_table, pieces


def test_a_table_has_each_molecule_as_alone() -> None:
    smiles = ["CCO", "c1ccccc1O", "C"]
    table = fragment_table(smiles)
    assert len(table) == 3
    for place, text in enumerate(smiles):
        own, alone = table.of(place), pieces(text)
        for name in ("masses", "codes", "hydrogens", "electrons"):
            assert np.array_equal(getattr(own, name), getattr(alone, name))
        assert (own.cleavages, own.truncated) == (3, False)


def test_batches_in_processes_come_in_order() -> None:
    smiles = ["C" * (1 + place % 9) + "O" for place in range(1100)]
    told: list[int] = []
    table = fragment_table(
        smiles, jobs=2, progress=lambda stage, done, total=None: told.append(done)
    )
    assert told == [500, 1000, 1100]
    for place in (0, 499, 500, 1099):
        assert np.array_equal(table.of(place).masses, pieces(smiles[place]).masses)


def test_what_is_no_molecule_is_reported_or_raises() -> None:
    rejects: list[tuple[str, str]] = []
    table = fragment_table(["CCO", "C(", "CO"], rejects=rejects)
    assert [where for where, _ in rejects] == ["C("]
    assert table.cleavages.tolist() == [3, -1, 3]
    assert len(table.of(1)) == 0
    assert not table.truncated.any()
    with pytest.raises(MoleculeError, match="not valid SMILES"):
        fragment_table(["CCO", "C("])


def test_what_is_cut_is_said_for_each() -> None:
    table = fragment_table(["C" * 2500, "CCO"])
    assert table.truncated.tolist() == [True, False]
    assert table.cleavages.tolist() == [1, 3]


def test_nothing_makes_an_empty_table() -> None:
    assert len(fragment_table([])) == 0
