"""What is read of a store's molecules is kept beside it, and changes no answer."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from mzseek.annotation.candidates.index import MoleculeIndex, build_index, index_path
from mzseek.annotation.candidates.store import StoreSource, index_store
from mzseek.database import Database, build_database, file_sources
from mzseek.errors import AnnotationError
from mzseek.evidence.molecules import Indexed, Molecules

SMILES = ["CCO", "COC", "CCC", "c1ccccc1O", "CC(=O)Oc1ccccc1C(=O)O"]
KINDS = ("morgan2", "rdkit")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("indexed")
    (folder / "mine.smi").write_text("\n".join(SMILES) + "\n")
    build_database(file_sources([folder / "mine.smi"]), folder / "db")
    index_store(folder / "db", KINDS, jobs=1)
    return folder / "db"


def test_all_that_is_read_is_what_would_be_computed(store: Path) -> None:
    source = StoreSource.open(store)
    assert source.index is not None
    smiles = Database.open(store).rows(np.arange(5))["smiles"].to_pylist()
    places = np.array([4, 1, 1])
    chosen = [smiles[at] for at in places]
    kept = Molecules(chosen, jobs=1, indexed=Indexed(source.index, places))
    fresh = Molecules(chosen, jobs=1)
    for kind in (*KINDS, "maccs"):  # the last is not kept
        assert np.array_equal(kept.words(kind), fresh.words(kind))
    assert np.array_equal(kept.pieces.masses, fresh.pieces.masses)
    assert np.array_equal(kept.pieces.starts, fresh.pieces.starts)


def test_nothing_is_parsed_that_is_kept(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = StoreSource.open(store)
    monkeypatch.setattr("mzseek.evidence.molecules.parse_molecule", lambda text: 1 / 0)
    table = Molecules(["never read"], jobs=1, indexed=Indexed(source.index, np.array([0])))
    table.read(KINDS, pieces=True)
    assert len(table.pieces) == 1


def test_molecules_know_their_rows(store: Path) -> None:
    found = StoreSource.open(store).within(46.041865, 0.0005)
    rows = Database.open(store).rows(np.array([each.row for each in found]))
    assert rows["smiles"].to_pylist() == [each.smiles for each in found]


def test_a_store_without_one(store: Path, tmp_path: Path) -> None:
    shutil.copytree(store, tmp_path / "alone")
    assert StoreSource.open(tmp_path / "alone").index is None


def test_the_index_of_other_molecules_is_refused(store: Path, tmp_path: Path) -> None:
    (tmp_path / "other.smi").write_text("CCCC\n")
    build_database(file_sources([tmp_path / "other.smi"]), tmp_path / "other")
    shutil.copytree(index_path(store), tmp_path / "other.index")
    with pytest.raises(AnnotationError, match=r"other\.index: is the index of other molecules"):
        StoreSource.open(tmp_path / "other")


def test_damage_and_other_folders_are_refused(store: Path, tmp_path: Path) -> None:
    made = build_index([SMILES[:2], SMILES[2:]], 5, tmp_path / "kept", "a list", KINDS, jobs=1)
    assert made.kinds == KINDS
    file = tmp_path / "kept" / "words.rdkit.npy"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(AnnotationError, match=r"words\.rdkit\.npy"):
        MoleculeIndex.open(tmp_path / "kept", "a list", 5)
    (tmp_path / "kept" / "manifest.json").write_text(json.dumps({"kind": "something"}))
    with pytest.raises(AnnotationError):
        MoleculeIndex.open(tmp_path / "kept", "a list", 5)
