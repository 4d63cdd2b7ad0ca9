"""Tables of fragments in memory, and as an index on disk."""

from pathlib import Path

import numpy as np
import pytest

from mzseek.core.errors import AnnotationError, MoleculeError
from mzseek.fragments import FragmentTable, fragment_table, join_tables, pieces
from mzseek.fragments.table import FILES, MASSES, STARTS, FragmentIndex, fragment_writer

FIRST, SECOND = ["CCO", "c1ccccc1C(=O)O", "[2H]OC"], ["CN1C=NC2=C1C(=O)N(C)C(=O)N2C"]


def test_a_table_has_each_molecule_as_alone() -> None:
    table = fragment_table(FIRST, jobs=1)
    assert len(table) == 3
    for index, smiles in enumerate(FIRST):
        own, alone = table.of(index), pieces(smiles)
        for name in ("masses", "codes", "hydrogens", "electrons"):
            assert np.array_equal(getattr(own, name), getattr(alone, name))
        assert (own.cleavages, own.truncated) == (3, False)
    assert len(fragment_table([])) == 0


def test_batches_in_processes_come_in_order() -> None:
    smiles = ["C" * (1 + index % 9) + "O" for index in range(1100)]
    done: list[int] = []
    table = fragment_table(
        smiles, jobs=2, progress=lambda stage, count, total=None: done.append(count)
    )
    assert done == [500, 1000, 1100]
    for index in (0, 499, 500, 1099):
        assert np.array_equal(table.of(index).masses, pieces(smiles[index]).masses)


def test_what_is_no_molecule_is_reported_or_raises() -> None:
    rejects: list[tuple[str, str]] = []
    table = fragment_table(["CCO", "C(", "C" * 2500], rejects=rejects, jobs=1)
    assert [where for where, _ in rejects] == ["C("]
    assert table.cleavages.tolist() == [3, -1, 1]
    assert len(table.of(1)) == 0
    assert table.truncated.tolist() == [False, False, True]
    with pytest.raises(MoleculeError, match="not valid SMILES"):
        fragment_table(["CCO", "C("], jobs=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with fragment_writer(tmp_path) as writer:
        writer.add(fragment_table(FIRST, jobs=1))
        writer.add(fragment_table(SECOND, jobs=1))
    return tmp_path


def opened(folder: Path, molecules: int = 4) -> FragmentIndex:
    return FragmentIndex(folder, molecules, AnnotationError, "make it again")


def assert_same(one: FragmentTable, other: FragmentTable) -> None:
    for name in ("starts", "masses", "codes", "hydrogens", "electrons", "cleavages"):
        mine, its = getattr(one, name), getattr(other, name)
        assert np.array_equal(mine, its), name
        assert mine.dtype == its.dtype, name


def test_an_index_has_what_was_written_in_any_order(folder: Path) -> None:
    index = opened(folder)
    whole = join_tables([fragment_table(FIRST, jobs=1), fragment_table(SECOND, jobs=1)])
    assert len(index) == 4
    assert_same(index.table(np.arange(4)), whole)
    molecules = [3, 0, 0, 2]
    expected = fragment_table([[*FIRST, *SECOND][molecule] for molecule in molecules], jobs=1)
    assert_same(index.table(np.array(molecules)), expected)
    assert len(index.table(np.empty(0, np.int64))) == 0


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_and_another_number_of_molecules_are_refused(
    folder: Path, name: str
) -> None:
    with pytest.raises(AnnotationError, match=r"pieces\.starts\.npy.*make it again"):
        opened(folder, 5)
    (folder / name).unlink()
    with pytest.raises(AnnotationError, match=name):
        opened(folder)


def test_damage_is_found(folder: Path) -> None:
    starts = np.load(folder / STARTS)
    starts[1:3] = starts[2:0:-1]
    np.save(folder / STARTS, starts)
    with pytest.raises(AnnotationError, match="do not rise"):
        opened(folder)
    np.save(folder / STARTS, np.sort(starts))
    np.save(folder / MASSES, np.load(folder / MASSES)[:-1])
    with pytest.raises(AnnotationError, match="masses"):
        opened(folder)
