"""Damage to a library is told in one line, and says what to do."""

import shutil

import numpy as np
import pytest

from mzseek.core.errors import LibraryError
from mzseek.library import Library
from mzseek.library.library import MANIFEST, MOLECULE_OF, POINTERS, RECORDS, LibraryFolder


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


def test_a_library_of_what_is_at_hand_finds_what_the_folder_finds(
    library: Library, spectra
) -> None:
    from_arrays = Library.from_arrays(
        library.folder, library.peaks, library.ions, library.molecule_of, library.records,
        library.molecules,
    )  # fmt: skip
    own, again = (each.search(spectra, "cosine", top=3) for each in (library, from_arrays))
    assert own.records.tolist() == again.records.tolist()
    assert own.scores.tolist() == again.scores.tolist()
    assert from_arrays.to_table().columns["count"][:3] == library.to_table().columns["count"][:3]


def test_parts_at_hand_that_do_not_fit_are_refused(library: Library) -> None:
    own = (library.peaks, library.ions, library.molecule_of, library.records, library.molecules)
    for place, wrong, message in (
        (1, library.ions._replace(modes=library.ions.modes[:-1]), "arrays of other lengths"),
        (2, np.full(len(library), 99), "is damaged"),
        (3, library.records.slice(1), "other columns or rows"),
        (4, library.records, "other columns or rows"),
    ):
        parts = [*own[:place], wrong, *own[place + 1 :]]
        with pytest.raises(LibraryError, match=message):
            Library.from_arrays(library.folder, *parts)
