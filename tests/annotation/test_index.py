"""What is computed of a database's molecules is kept beside it, and checked when it is read."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from mzseek.annotation.candidates import StoreSource
from mzseek.annotation.index import MoleculeIndex, index_path, index_store
from mzseek.core.errors import DatabaseError
from mzseek.database import Database, build_database, file_sources
from mzseek.evidence.queries import Molecules

KINDS = ("morgan2", "rdkit")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 alkanes in the order of their mass: two blocks of checksums, which ethanol begins."""
    folder = tmp_path_factory.mktemp("indexed")
    smiles = ["C" * length for length in range(4, 83)]
    (folder / "mine.smi").write_text("\n".join(["CCO", *smiles]) + "\n")
    build_database(file_sources([folder / "mine.smi"]), folder / "db", nearest=False)
    index_store(folder / "db", KINDS, jobs=1)
    return folder / "db"


@pytest.fixture
def copied(store: Path, tmp_path: Path) -> Database:
    """A copy whose index a test may damage."""
    shutil.copytree(index_path(store), tmp_path / "db.index")
    return Database.open(shutil.copytree(store, tmp_path / "db"))


def test_all_that_is_read_is_what_would_be_computed(store: Path) -> None:
    source = StoreSource.open(store)
    assert source.index is not None
    rows = np.array([4, 1, 1])
    smiles = Database.open(store).rows(rows)["smiles"].to_pylist()
    kept = Molecules(smiles, jobs=1, index=source.index, index_rows=rows)
    fresh = Molecules(smiles, jobs=1)
    for kind in (*KINDS, "maccs"):  # the last is not kept
        assert np.array_equal(kept.words(kind), fresh.words(kind))
    assert np.array_equal(kept.fragments.masses, fresh.fragments.masses)
    assert np.array_equal(kept.fragments.starts, fresh.fragments.starts)


def test_nothing_is_parsed_that_is_kept(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = StoreSource.open(store)
    monkeypatch.setattr("mzseek.evidence.queries.parse_molecule", lambda text: 1 / 0)
    table = Molecules(["never read"], jobs=1, index=source.index, index_rows=np.array([0]))
    table.compute(KINDS, fragments=True)
    assert len(table.fragments) == 1


def test_molecules_know_their_rows(store: Path) -> None:
    [found] = StoreSource.open(store).within(46.041865, 0.0005)
    assert Database.open(store).rows(np.array([found.row]))["smiles"].to_pylist() == ["CCO"]


def test_a_store_may_have_none_but_not_that_of_other_molecules(store: Path, tmp_path: Path) -> None:
    (tmp_path / "other.smi").write_text("CCCC\n")
    build_database(file_sources([tmp_path / "other.smi"]), tmp_path / "other", nearest=False)
    assert StoreSource.open(tmp_path / "other").index is None
    shutil.copytree(index_path(store), tmp_path / "other.index")
    with pytest.raises(DatabaseError, match=r"other\.index: is the index of other molecules"):
        StoreSource.open(tmp_path / "other")


def changed(store: Database, name: str, place: int) -> None:
    """Change a number of an array of the index by 1."""
    path = index_path(store.folder) / name
    array = np.load(path)
    array.reshape(-1)[place] += array.dtype.type(1)
    np.save(path, array)


def test_damage_is_found_when_it_is_opened(copied: Database) -> None:
    folder = index_path(copied.folder)
    changed(copied, "sums.npy", 0)
    with pytest.raises(DatabaseError, match=r"sums\.npy has changed; make it again"):
        MoleculeIndex.open(copied)
    file = folder / "words.rdkit.npy"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(DatabaseError, match=r"words\.rdkit\.npy"):
        MoleculeIndex.open(copied)
    (folder / "manifest.json").write_text(json.dumps({"kind": "something"}))
    with pytest.raises(DatabaseError):
        MoleculeIndex.open(copied)


@pytest.mark.parametrize("name", ["pieces.masses.npy", "pieces.codes.npy", "pieces.breaks.npy"])
def test_changed_fragments_are_refused_when_they_are_read(copied: Database, name: str) -> None:
    changed(copied, name, -1)
    index = MoleculeIndex.open(copied)
    assert len(index.fragments(np.array([0, 63]))) == 2  # another block, which is as it was
    message = r"db\.index: pieces\.\*\.npy has changed; make it again with `mzseek database index`"
    with pytest.raises(DatabaseError, match=message):
        index.fragments(np.array([0, 79]))


def test_changed_fingerprints_are_refused_when_they_are_read(copied: Database) -> None:
    changed(copied, "words.rdkit.npy", 0)
    index = MoleculeIndex.open(copied)
    assert len(index.words("morgan2", np.array([0]))) == 1
    with pytest.raises(DatabaseError, match=r"words\.rdkit\.npy has changed; make it again"):
        index.words("rdkit", np.array([3]))


def test_an_index_without_sums_of_blocks_is_read_whole(copied: Database, resign) -> None:
    folder = index_path(copied.folder)
    (folder / "sums.npy").unlink()
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["files"]["sums.npy"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert len(MoleculeIndex.open(copied).fragments(np.array([4]))) == 1
    changed(copied, "pieces.masses.npy", 0)
    with pytest.raises(DatabaseError, match=r"pieces\.masses\.npy has changed; make it again"):
        MoleculeIndex.open(copied)
    np.save(folder / "pieces.codes.npy", np.full_like(np.load(folder / "pieces.codes.npy"), 77))
    resign(folder)
    with pytest.raises(DatabaseError, match=r"pieces\.codes\.npy: is damaged .*holds 77.*index"):
        MoleculeIndex.open(copied).fragments(np.array([0]))
