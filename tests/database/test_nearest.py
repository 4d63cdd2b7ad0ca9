import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rdkit import DataStructs

from mzseek.core.errors import DatabaseError
from mzseek.database import nearest as module
from mzseek.database.nearest import COUNTS, FILES, WORDS, Nearest, build_index
from mzseek.parallel import silent

WIDTH = 16  # bytes: two words


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 4)


def index(fingerprints: np.ndarray, folder: Path) -> Nearest:
    """Index of 0/1 rows."""
    folder.mkdir(parents=True, exist_ok=True)
    packed = [row.tobytes() for row in np.packbits(fingerprints, axis=1)]
    table = pa.table(
        {"bits": pa.array(fingerprints.sum(axis=1), pa.uint16()),
         "fingerprint": pa.array(packed, pa.binary(fingerprints.shape[1] // 8))}
    )  # fmt: skip
    pq.write_table(table, folder / "m.parquet", row_group_size=5)
    build_index(folder / "m.parquet", folder, silent)
    return Nearest(folder)


def scanned(
    fingerprints: np.ndarray, query: np.ndarray, count: int, least: float = 0.0
) -> list[tuple[int, float]]:
    """All rows compared by RDKit, the best kept; two empty fingerprints are equal."""
    vectors = [DataStructs.CreateFromBitString("".join(map(str, row))) for row in fingerprints]
    asked = DataStructs.CreateFromBitString("".join(map(str, query)))
    found = [
        (row, 1.0 if not query.any() and not fingerprints[row].any() else
         DataStructs.TanimotoSimilarity(asked, vector))
        for row, vector in enumerate(vectors)
    ]  # fmt: skip
    kept = [(row, value) for row, value in found if value >= least]
    return sorted(kept, key=lambda each: (-each[1], each[0]))[:count]


def searched(nearest: Nearest, query: np.ndarray, *how) -> list[tuple[int, float]]:
    rows, values = nearest.search(np.packbits(query), *how)
    return list(zip(rows.tolist(), values.tolist(), strict=True))


def random_rows(count: int, seed: int = 0) -> np.ndarray:
    """Rows of very different bit counts, some of them equal, some empty."""
    rng = np.random.default_rng(seed)
    share = rng.uniform(0, 0.6, (count, 1))
    rows = (rng.uniform(size=(count, 8 * WIDTH)) < share).astype(np.uint8)
    rows[rng.integers(0, count, count // 5)] = rows[rng.integers(0, count)]
    rows[rng.integers(0, count, count // 10)] = 0
    return rows


def test_blocks_hold_word_by_word_in_the_order_of_the_store(tmp_path: Path) -> None:
    rows = random_rows(10)
    nearest = index(rows, tmp_path)
    assert nearest.counts.tolist() == rows.sum(axis=1).tolist()
    assert nearest.words.shape == (3, WIDTH // 8, 4)
    words = np.packbits(rows, axis=1).view("<u8")
    flat = np.concatenate([block.T for block in nearest.words])
    assert (flat[:10] == words).all()
    assert not flat[10:].any()
    assert sorted(os.listdir(tmp_path)) == sorted(["m.parquet", *FILES])
    assert index(rows[:3], tmp_path).words.shape == (
        1,
        WIDTH // 8,
        3,
    )  # of the size of a small store


@pytest.mark.parametrize("small", [0, 2_048])
def test_similarities_of_any_range(tmp_path: Path, monkeypatch, small: int) -> None:
    monkeypatch.setattr(module, "_SMALL", small)
    rows = random_rows(30)
    queries = np.concatenate([rows[:5], np.ones((1, 8 * WIDTH), np.uint8)])
    nearest = index(rows, tmp_path)
    words = np.packbits(queries, axis=1).view("<u8")
    for start, end in ((0, 30), (3, 5), (4, 8), (7, 29), (29, 30), (11, 11)):
        found = nearest.similarities(words, start, end)
        assert found.shape == (6, end - start)
        for query, values in zip(queries, found.tolist(), strict=True):
            by_row = dict(scanned(rows, query, 30))
            assert values == [by_row[row] for row in range(start, end)]


def test_more_than_255_bits_in_common_are_counted(tmp_path: Path) -> None:
    rows = np.ones((9, 512), np.uint8)
    rows[3:, 300:] = 0
    assert searched(index(rows, tmp_path), rows[0], 9) == scanned(rows, rows[0], 9)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    size=st.integers(1, 30), seed=st.integers(0, 10_000), count=st.integers(1, 40),
    least=st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]), own=st.booleans(),
)  # fmt: skip
def test_a_search_finds_what_a_scan_finds(
    tmp_path_factory: pytest.TempPathFactory, size, seed, count, least, own
) -> None:
    rows = random_rows(size, seed)
    query = rows[seed % size] if own else random_rows(1, seed + 1)[0]
    nearest = index(rows, tmp_path_factory.mktemp("nearest"))
    assert searched(nearest, query, count, least) == scanned(rows, query, count, least)


def test_blocks_that_cannot_qualify_are_not_read(tmp_path: Path, monkeypatch) -> None:
    rows = np.tri(64, 8 * WIDTH, dtype=np.uint8)  # 1 to 64 bits: each in the next
    nearest = index(rows, tmp_path)
    read: list[int] = []
    whole = Nearest._of_block
    monkeypatch.setattr(
        Nearest, "_of_block", lambda self, *how: read.append(how[-1]) or whole(self, *how)
    )
    monkeypatch.setattr(module.os, "cpu_count", lambda: 1)
    assert searched(nearest, rows[31], 3) == scanned(rows, rows[31], 3)
    assert len(read) <= 4
    read.clear()
    assert searched(nearest, rows[31], 64, 0.9) == scanned(rows, rows[31], 64, 0.9)
    assert set(read) == {7, 8}


def test_a_damaged_index_is_one_line(tmp_path: Path) -> None:
    index(random_rows(9), tmp_path)
    (tmp_path / COUNTS).write_bytes(b"nonsense")
    with pytest.raises(DatabaseError, match=r"nearest\.counts\.npy: cannot be read"):
        Nearest(tmp_path)
    (tmp_path / WORDS).unlink()
    with pytest.raises(DatabaseError, match="cannot be read"):
        Nearest(tmp_path)


def test_fingerprints_come_back_as_they_were(tmp_path: Path) -> None:
    rows = random_rows(23)
    wanted = np.array([22, 0, 4, 3, 4])
    words = index(rows, tmp_path).fingerprints(wanted)
    assert (np.unpackbits(words.view(np.uint8), axis=1) == rows[wanted]).all()
    assert index(rows, tmp_path).fingerprints(wanted[:0]).shape == (0, WIDTH // 8)
