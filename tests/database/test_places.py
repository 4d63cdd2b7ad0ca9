import zlib
from pathlib import Path

import numpy as np
import pytest

from mzseek.chem import inchikey_block
from mzseek.core.errors import DatabaseError
from mzseek.database import Database
from mzseek.database.store import (
    FILES,
    KEYS,
    LABELLED,
    check_entries,
    entries,
    has_checksum,
    rows_of,
)

from .conftest import METHANES, all_rows

# Two texts with one CRC-32.
COLLIDING = ("plumless", "buckeroo")


def index_of(*texts: str) -> np.ndarray:
    return np.sort(entries(texts, np.arange(len(texts))))


def test_all_rows_of_a_text_are_found() -> None:
    texts = ["b", "a", "c", "b", "", "b"]
    for text in ("a", "b", "c", ""):
        expected = [row for row, each in enumerate(texts) if each == text]
        assert rows_of(text, index_of(*texts)).tolist() == expected
    assert rows_of("d", index_of(*texts)).tolist() == []
    assert rows_of("d", index_of()).tolist() == []


def test_texts_that_share_a_checksum_are_found_together() -> None:
    """The text itself is compared by whoever has the table."""
    assert zlib.crc32(COLLIDING[0].encode()) == zlib.crc32(COLLIDING[1].encode())
    assert rows_of(COLLIDING[0], index_of("x", *COLLIDING)).tolist() == [1, 2]
    assert has_checksum(COLLIDING, COLLIDING[0])
    assert not has_checksum([*COLLIDING, "x"], COLLIDING[0])


def test_the_last_row_that_fits_is_kept_apart_from_the_checksum() -> None:
    last = 2**32 - 1
    index = np.sort(entries(["a", "b"], np.array([last, last - 1])))
    assert rows_of("a", index).tolist() == [last]


def test_a_store_has_every_key_and_the_labelled_molecules(store: Database) -> None:
    rows = all_rows(store)
    assert len(store.keys) == len(rows)
    labelled = sorted(n for n, row in enumerate(rows) if "[2H]" in row["smiles"])
    assert len(labelled) == len(METHANES) - 1
    assert sorted((store.labelled & np.uint64(2**32 - 1)).tolist()) == labelled
    found = store.by_formula("CH4").table["smiles"].to_pylist()
    assert found == ["C", "[2H]C", "[2H]C[2H]"]


def test_charged_molecules_are_found_by_their_formula(make_store) -> None:
    store = make_store([("C[N+](C)(C)C",), ("C[N+](C)(C)[11CH3]",), ("CC(C)(C)N",)])
    assert len(store.by_formula("C4H12N+")) == 2
    assert len(store.labelled) == 1


@pytest.mark.parametrize(
    "index",
    [np.array([3, 2], np.uint64), np.array([2, 2], np.uint64), np.array([1, 9], np.uint64)],
)
def test_entries_that_fall_or_point_past_the_end_are_damage(index: np.ndarray) -> None:
    with pytest.raises(DatabaseError, match=r"x: is damaged .*; again"):
        check_entries(index, 9, "x", "again")
    check_entries(index[:1], 9, "x", "again")
    check_entries(index[:0], 0, "x", "again")


@pytest.mark.parametrize("name", FILES)
def test_an_index_of_another_store_is_noticed(make_store, name: str, resign) -> None:
    store = make_store([("CCO",), ("[2H]CO",), ("CCN",)])
    other = make_store([("N",), ("C",), ("[2H]CO",)], "other")
    (store.folder / name).write_bytes((other.folder / name).read_bytes())
    opened = Database.open(resign(store.folder))
    with pytest.raises(DatabaseError, match=f"{name} and molecules.parquet disagree"):
        if name == KEYS:
            opened.by_key(inchikey_block("N"))
        else:
            opened.by_formula("CH4O")


def test_files_are_of_eight_bytes_a_molecule(store: Database) -> None:
    size = Path(store.folder, KEYS).stat().st_size
    assert size == 8 * len(store) + 128  # the header
    assert Path(store.folder, LABELLED).stat().st_size < size
