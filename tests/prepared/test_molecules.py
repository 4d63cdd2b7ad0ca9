import numpy as np
import pytest
from scipy.sparse import csr_array

from mzseek.core.ragged import pointers
from mzseek.datasets.layout import Array
from mzseek.datasets.prepared import Molecules

BITS = 40


def tables(sizes: list[int], rng: np.random.Generator) -> tuple[Molecules, np.ndarray, list[str]]:
    """Molecules in so many tables, and the same as one dense matrix and one list."""
    arrays, texts, rows, names = {}, {}, [], []
    for number, size in enumerate(sizes):
        prefix = f"segment-{number}." if number else ""
        dense = rng.random((size, BITS)) < 0.2
        matrix = csr_array(dense.astype(np.int8))
        arrays[f"{prefix}{Array.FINGERPRINT_POINTERS}"] = pointers(dense.sum(axis=1))
        arrays[f"{prefix}{Array.FINGERPRINT_BITS}"] = matrix.indices.astype(np.uint16)
        arrays[f"{prefix}{Array.MASS}"] = rng.random(size)
        arrays[f"{prefix}{Array.BLOCK}"] = np.array([b"A"] * size, "S14")
        mine = [f"{number}-{place}" for place in range(size)]
        texts[f"{prefix}{Array.SMILES}"] = texts[f"{prefix}{Array.FORMULA}"] = mine
        rows.append(dense)
        names += mine
    made = Molecules(arrays.__getitem__, texts.__getitem__, len(sizes) - 1, BITS)
    return made, np.concatenate(rows), names


@pytest.mark.parametrize("sizes", [[7], [7, 4], [5, 0, 6], [1, 1, 1, 1]])
def test_several_tables_are_read_as_one(sizes: list[int]) -> None:
    rng = np.random.default_rng(len(sizes))
    molecules, dense, names = tables(sizes, rng)
    assert len(molecules) == len(names) == len(molecules.masses) == len(molecules.inchikey14)
    assert list(molecules.smiles) == list(molecules.formulas) == names
    assert molecules.smiles[len(names) - 1] == names[-1]
    assert molecules.fingerprint_sizes.tolist() == dense.sum(axis=1).tolist()
    for asked in (np.arange(len(names)), rng.integers(0, len(names), 30), np.empty(0, np.int64)):
        rows = molecules.fingerprint_rows(asked)
        assert rows.has_canonical_format
        np.testing.assert_array_equal(rows.toarray(), dense[asked])


def test_own_fingerprints_are_those_of_the_first_table() -> None:
    molecules, dense, _ = tables([4, 3], np.random.default_rng(0))
    indptr, bits = molecules.base_fingerprints()
    assert len(indptr) == 5
    assert bits.tolist() == np.nonzero(dense[:4])[1].tolist()
