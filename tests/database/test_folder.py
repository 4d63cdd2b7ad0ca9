import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from mzseek.core.errors import DatabaseError
from mzseek.database import Database
from mzseek.database.store import COLUMNS, MASSES, MOLECULES, REJECTS, read_manifest
from mzseek.io.manifest import Manifest

from .conftest import build, write_table


@pytest.fixture
def store(pool: list[str], tmp_path: Path) -> Path:
    path = write_table(tmp_path / "m.tsv", [(s, str(n)) for n, s in enumerate(pool[:60])])
    return build(path, tmp_path / "store").folder


def edit(folder: Path, **changes: object) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_rows_ranges_and_batches_are_of_one_table(store: Path) -> None:
    database = Database.open(store)
    whole = database.range(0, len(database)).to_pylist()
    places = np.array([5, 0, len(whole) - 1, 5])
    found = database.rows(places).drop_columns(["row"]).to_pylist()
    assert found == [whole[place] for place in places]
    batches = [row for batch in database.batches(size=7) for row in batch.to_pylist()]
    assert batches == whole
    assert set(whole[0]) == set(COLUMNS)
    assert [row["mass"] for row in whole] == database.masses.tolist()
    database.check_form()
    database.check_order()


@pytest.mark.parametrize("name", [MOLECULES, MASSES, REJECTS, "nearest.words.npy"])
def test_a_file_that_the_manifest_does_not_name_is_missed(store: Path, name: str) -> None:
    files = read_manifest(store)["files"]
    edit(store, files={key: value for key, value in files.items() if key != name})
    with pytest.raises(DatabaseError, match=f"lacks 'files.{name}'; build it again"):
        Database.open(store)


def test_bits_that_are_not_the_fingerprints_are_refused(store: Path) -> None:
    options = read_manifest(store)["options"]
    edit(store, options=options | {"fingerprint_bits": 17})
    with pytest.raises(DatabaseError, match=r"fingerprint_bits is 17, expected 4096"):
        Database.open(store)


@pytest.mark.parametrize("kind", ["map4", "morgan6", "morgan8"])
def test_fingerprints_of_earlier_bits_are_refused(pool: list[str], tmp_path: Path, kind) -> None:
    path = write_table(tmp_path / "m.tsv", [(s, str(n)) for n, s in enumerate(pool[:5])])
    folder = build(path, tmp_path / "store", fingerprint=kind).folder
    versions = read_manifest(folder)["versions"]
    edit(folder, versions={name: each for name, each in versions.items() if kind not in name})
    expected = rf"store: has {kind} fingerprints of version 1, expected \d: .*; build it again"
    with pytest.raises(DatabaseError, match=expected):
        Database.open(folder)
    assert len(build(path, folder, fingerprint=kind)) == 5  # which it can be, in its place


def test_only_the_files_asked_for_are_read(store: Path) -> None:
    (store / REJECTS).write_bytes(bytes((store / REJECTS).stat().st_size))
    database = Database.open(store)
    database.check((MOLECULES, MASSES))
    with pytest.raises(DatabaseError, match=r"rejects\.tsv has changed; build it again"):
        database.check((MOLECULES, REJECTS))
    with pytest.raises(DatabaseError, match=r"rejects\.tsv has changed; build it again"):
        database.check()


def test_masses_that_fall_are_noticed_once_they_are_searched_in(store: Path, resign) -> None:
    masses = np.load(store / MASSES)
    np.save(store / MASSES, masses[::-1])
    with pytest.raises(DatabaseError, match=r"masses\.npy has changed; build it again"):
        Database.open(store).many_by_mass([200.0])
    resign(store)
    with pytest.raises(DatabaseError, match=r"masses\.npy does not rise; build it again"):
        Database.open(store).many_by_mass([200.0])


def test_a_store_that_is_replaced_while_it_is_opened_is_opened_whole(
    store: Path, pool: list[str], tmp_path: Path, monkeypatch
) -> None:
    more = write_table(tmp_path / "n.tsv", [(s, str(n)) for n, s in enumerate(pool[60:160])])
    build(more, tmp_path / "other")
    swapped: list[bool] = []

    def swap(*arguments: object, **options: object) -> None:
        if not swapped:
            swapped.append(True)
            store.rename(tmp_path / "away")
            (tmp_path / "other").rename(store)

    monkeypatch.setattr(Manifest, "check_files", swap)  # between the manifest and the files
    database = Database.open(store)
    assert database.manifest == read_manifest(store)
    assert len(database.masses) == len(database) != len(Database.open(tmp_path / "away"))
    shutil.rmtree(tmp_path / "away")
