"""Fragments on disk are those that are found."""

from pathlib import Path

import numpy as np
import pytest

from mzseek.core.errors import AnnotationError
from mzseek.fragments import FragmentTable, fragment_table, join_tables
from mzseek.fragments.table import FILES, MASSES, STARTS, FragmentIndex, fragment_writer

FIRST, SECOND = ["CCO", "c1ccccc1C(=O)O", "[2H]OC"], ["CN1C=NC2=C1C(=O)N(C)C(=O)N2C"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with fragment_writer(tmp_path) as writer:
        writer.add(fragment_table(FIRST, jobs=1))
        writer.add(fragment_table(SECOND, jobs=1))
    return tmp_path


def opened(folder: Path, molecules: int = 4) -> FragmentIndex:
    return FragmentIndex(folder, molecules, AnnotationError, "make it again")


def same(one: FragmentTable, other: FragmentTable) -> bool:
    names = ("starts", "masses", "codes", "hydrogens", "electrons", "breaks")
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        and getattr(one, name).dtype == getattr(other, name).dtype
        for name in names
    )


def test_pieces_are_those_that_were_found(folder: Path) -> None:
    whole = join_tables([fragment_table(FIRST, jobs=1), fragment_table(SECOND, jobs=1)])
    index = opened(folder)
    assert len(index) == 4
    assert same(index.table(np.arange(4)), whole)


def test_any_order_and_more_than_once(folder: Path) -> None:
    asked = [3, 0, 0, 2]
    found = opened(folder).table(np.array(asked))
    assert same(found, fragment_table([[*FIRST, *SECOND][at] for at in asked], jobs=1))
    assert len(opened(folder).table(np.empty(0, np.int64))) == 0


def test_other_numbers_of_molecules_are_refused(folder: Path) -> None:
    with pytest.raises(AnnotationError, match=r"pieces\.starts\.npy.*make it again"):
        opened(folder, 5)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(AnnotationError, match=name):
        opened(folder)


def test_damage_is_seen(folder: Path) -> None:
    starts = np.load(folder / STARTS)
    starts[1:3] = starts[2:0:-1]
    np.save(folder / STARTS, starts)
    with pytest.raises(AnnotationError, match="do not rise"):
        opened(folder)
    np.save(folder / STARTS, np.sort(starts))
    np.save(folder / MASSES, np.load(folder / MASSES)[:-1])
    with pytest.raises(AnnotationError, match="masses"):
        opened(folder)
