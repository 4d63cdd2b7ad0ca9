"""Damage to a library is told in one line, and says what to do."""

import shutil

import numpy as np
import pytest

from mzseek.errors import LibraryError
from mzseek.library import Library
from mzseek.library.folder import MANIFEST, MOLECULE_OF, POINTERS, RECORDS, LibraryFolder


def reopened(library: Library) -> LibraryFolder:
    return LibraryFolder(library.folder, library.manifest)


def test_arrays_of_another_form_are_refused(library: Library) -> None:
    np.save(library.folder / POINTERS, np.zeros(3, np.int64))
    with pytest.raises(LibraryError, match=r"pointers.npy: holds int64 .* build it again$"):
        reopened(library)


def test_molecules_out_of_range_are_refused(library: Library) -> None:
    np.save(library.folder / MOLECULE_OF, np.full(len(library), 99, np.int32))
    with pytest.raises(LibraryError, match=r"molecule_of.npy: is damaged .* build it again$"):
        reopened(library)


def test_a_damaged_or_other_table_is_refused(library: Library) -> None:
    shutil.copy(library.folder / "molecules.parquet", library.folder / RECORDS)
    with pytest.raises(LibraryError, match="has other columns or rows than expected"):
        reopened(library)
    (library.folder / RECORDS).write_bytes(b"PAR1")
    with pytest.raises(LibraryError, match=r"records\.parquet: cannot be read"):
        reopened(library)


def test_a_folder_of_another_kind_is_refused(tmp_path) -> None:
    with pytest.raises(LibraryError, match="there is no such folder"):
        MANIFEST.read(tmp_path / "none")
    (tmp_path / "manifest.json").write_text('{"kind": "molecule database"}')
    with pytest.raises(LibraryError, match="is a molecule database, expected a spectral library"):
        MANIFEST.read(tmp_path)
