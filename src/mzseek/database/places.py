"""Where in the store the molecules of a text are: small sorted arrays of hashes and places.

An entry is one number of 64 bits: a checksum (CRC-32) of the text in its upper half, the molecule's
row in its lower. Sorted, all rows of one text stand together. Texts may share a checksum, so that
the text in the table is compared, too; of two million, one look-up in two thousand meets another.

``keys.npy`` has an entry for every molecule and its key. ``labelled.npy`` has one, of its formula,
for each molecule that does not weigh what its formula says, since it has isotope labels: all
others are found by the mass of the formula.
"""

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from mzseek.chem.formulas import parse_formula
from mzseek.errors import DatabaseError, MoleculeError
from mzseek.files.arrays import save_array
from mzseek.work import Progress

KEYS, LABELLED = "keys.npy", "labelled.npy"
FILES = (KEYS, LABELLED)
# Further from the mass of its formula than this no unlabelled molecule is: masses are rounded to
# six digits, and the lightest label weighs a thousand times as much.
SAME_MASS = 1e-4
_ROW_BITS = np.uint64(32)
_ROWS = np.uint64((1 << 32) - 1)
Entries = npt.NDArray[np.uint64]


def build_places(molecules: Path, folder: Path, progress: Progress) -> None:
    """Write the entries of a Parquet file of molecules: 8 bytes a molecule in memory, and on disk.

    Parameters
    ----------
    molecules : Path
        With the columns ``key``, ``formula`` and ``mass``.
    folder : Path
        Where the two files go.
    progress : callable of (stage, done, total)
    """
    file = pq.ParquetFile(molecules)
    total = file.metadata.num_rows
    keys = np.empty(total, np.uint64)
    labelled: list[Entries] = []
    done = 0
    for batch in file.iter_batches(8_192, columns=["key", "formula", "mass"]):
        rows = np.arange(done, done + batch.num_rows)
        done += batch.num_rows
        keys[rows] = entries(batch["key"].to_pylist(), rows)
        formulas = batch["formula"].to_pylist()
        weights = {formula: _mass(formula) for formula in set(formulas)}
        away = batch["mass"].to_numpy() - np.array([weights[formula] for formula in formulas])
        other = np.flatnonzero(~(np.abs(away) <= SAME_MASS))
        labelled.append(entries([formulas[place] for place in other], rows[other]))
        progress("keys", done, total)
    keys.sort()
    save_array(folder / KEYS, keys)
    save_array(folder / LABELLED, np.sort(np.concatenate([np.empty(0, np.uint64), *labelled])))


def entries(texts: Sequence[str], rows: npt.NDArray[np.integer]) -> Entries:
    """Entries of texts and their rows, in the order given."""
    sums = np.array([zlib.crc32(text.encode()) for text in texts], np.uint64)
    return (sums << _ROW_BITS) | rows.astype(np.uint64)


def rows_of(text: str, index: Entries) -> npt.NDArray[np.int64]:
    """Rows, rising, of all texts with the checksum of this one."""
    first = np.uint64(zlib.crc32(text.encode())) << _ROW_BITS
    start = np.searchsorted(index, first, side="left")
    end = np.searchsorted(index, first | _ROWS, side="right")
    return (index[start:end] & _ROWS).astype(np.int64)


def has_checksum(texts: Sequence[str], text: str) -> bool:
    """Whether texts that an index has led to have the checksum of the one that was looked up."""
    wanted = zlib.crc32(text.encode())
    return all(zlib.crc32(of_row.encode()) == wanted for of_row in texts)


def check_entries(index: Entries, molecules: int, where: object, remedy: str) -> None:
    """Make sure that entries rise and point into a store of so many molecules.

    Raises
    ------
    DatabaseError
        They do not: a look-up would miss molecules, or find what is not there.
    """
    if not len(index):
        return
    rises = bool((index[1:] > index[:-1]).all())
    if not rises or int((index & _ROWS).max()) >= molecules:
        raise DatabaseError(f"{where}: is damaged (places that do not rise); {remedy}")


def _mass(formula: str) -> float:
    """Mass of a formula; no number for one that `parse_formula` does not read."""
    try:
        return parse_formula(formula).mass
    except MoleculeError:
        return float("nan")
