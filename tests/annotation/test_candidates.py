"""What is read of a store's molecules is kept beside it, and changes no annotation."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from mzseek.annotation.candidates import MoleculeIndex, build_index, index_path, read_formulas
from mzseek.annotation.sources import StoreSource, index_store
from mzseek.core.errors import DatabaseError, InputError
from mzseek.database import Database, build_database, file_sources
from mzseek.evidence.queries import Molecules

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
    kept = Molecules(chosen, jobs=1, index=source.index, index_rows=places)
    fresh = Molecules(chosen, jobs=1)
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
    with pytest.raises(DatabaseError, match=r"other\.index: is the index of other molecules"):
        StoreSource.open(tmp_path / "other")


def test_damage_and_other_folders_are_refused(store: Path, tmp_path: Path) -> None:
    made = build_index([SMILES[:2], SMILES[2:]], 5, tmp_path / "kept", "a list", KINDS, jobs=1)
    assert made.kinds == KINDS
    file = tmp_path / "kept" / "words.rdkit.npy"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(DatabaseError, match=r"words\.rdkit\.npy"):
        MoleculeIndex.open(tmp_path / "kept", "a list", 5)
    (tmp_path / "kept" / "manifest.json").write_text(json.dumps({"kind": "something"}))
    with pytest.raises(DatabaseError):
        MoleculeIndex.open(tmp_path / "kept", "a list", 5)


def changed(folder: Path, name: str, place: int) -> None:
    """Change a number of an array by as little as a trial of hostile changes did."""
    array = np.load(folder / name)
    array.reshape(-1)[place] += array.dtype.type(1)
    np.save(folder / name, array)


@pytest.mark.parametrize("name", ["pieces.masses.npy", "pieces.codes.npy", "pieces.breaks.npy"])
def test_changed_pieces_are_refused_when_they_are_read(tmp_path: Path, name: str) -> None:
    many = ["C" * length for length in range(1, 81)]
    build_index([many], 80, tmp_path / "kept", "a list", KINDS, jobs=1)
    changed(tmp_path / "kept", name, -1)
    index = MoleculeIndex.open(tmp_path / "kept", "a list", 80)
    assert len(index.fragments(np.array([0, 63]))) == 2  # another block, which is as it was
    said = r"kept: pieces\.\*\.npy has changed; make it again with `mzseek database index`"
    with pytest.raises(DatabaseError, match=said):
        index.fragments(np.array([0, 79]))


def test_changed_fingerprints_and_sums_are_refused(tmp_path: Path) -> None:
    build_index([SMILES], 5, tmp_path / "kept", "a list", KINDS, jobs=1)
    changed(tmp_path / "kept", "words.rdkit.npy", 0)
    index = MoleculeIndex.open(tmp_path / "kept", "a list", 5)
    assert len(index.words("morgan2", np.array([0]))) == 1
    with pytest.raises(DatabaseError, match=r"words\.rdkit\.npy has changed; make it again"):
        index.words("rdkit", np.array([3]))
    changed(tmp_path / "kept", "sums.npy", 0)
    with pytest.raises(DatabaseError, match=r"sums\.npy has changed; make it again"):
        MoleculeIndex.open(tmp_path / "kept", "a list", 5)


def test_an_index_without_sums_of_blocks_is_read_whole(tmp_path: Path, resign) -> None:
    folder = tmp_path / "kept"
    build_index([SMILES], 5, folder, "a list", KINDS, jobs=1)
    (folder / "sums.npy").unlink()
    facts = json.loads((folder / "manifest.json").read_text())
    del facts["files"]["sums.npy"]
    (folder / "manifest.json").write_text(json.dumps(facts))
    assert len(MoleculeIndex.open(folder, "a list", 5).fragments(np.array([4]))) == 1
    changed(folder, "pieces.masses.npy", 0)
    with pytest.raises(DatabaseError, match=r"pieces\.masses\.npy has changed; make it again"):
        MoleculeIndex.open(folder, "a list", 5)
    np.save(folder / "pieces.codes.npy", np.full_like(np.load(folder / "pieces.codes.npy"), 77))
    index = MoleculeIndex.open(resign(folder), "a list", 5)
    with pytest.raises(DatabaseError, match=r"pieces\.codes\.npy: is damaged .*holds 77.*index"):
        index.fragments(np.array([0]))


def written(tmp_path, text):
    path = tmp_path / "formulas.csv"
    path.write_text(text)
    return path


def test_read_in_any_order_of_elements(tmp_path):
    path = written(tmp_path, "Feature ID,molecularFormula\n7,OC2H6\n8,C8H10N4O2\n9,\n")
    assert read_formulas(path) == {"7": "C2H6O", "8": "C8H10N4O2"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("feature,mass\n7,1\n", "expected a table with columns feature and formula"),
        ("feature,formula\n7,Xx\n", "line 2: formula 'Xx'"),
        ("feature,formula\n7,CH4\n7,C2H6\n", "line 3: feature '7' has two formulas"),
        ("feature,formula\n7,\n", "names no formula"),
    ],
)
def test_refused(tmp_path, text, reason):
    with pytest.raises(InputError, match=reason):
        read_formulas(written(tmp_path, text))
