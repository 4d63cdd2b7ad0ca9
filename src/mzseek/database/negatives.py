"""Hard negatives: for a molecule, what the store has of equal mass or formula, most alike first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.database.store import Database
from mzseek.errors import DatabaseError
from mzseek.similarity import tanimoto_of
from mzseek.work import Engine, LocalEngine, Progress, silent

BY = ("mass", "formula")
KINDS = ("hardest", "random")
_AT_A_TIME = 64


@dataclass(frozen=True)
class Truth:
    """A molecule that negatives are wanted for.

    Attributes
    ----------
    number : int
        The caller's own; also seeds a random choice.
    mass : float
    formula, key : str
        Formula, and first InChIKey block.
    fingerprint : bytes
        Packed, of the store's kind.
    """

    number: int
    mass: float
    formula: str
    key: str
    fingerprint: bytes


@dataclass(frozen=True)
class Mined:
    """Negatives of one molecule.

    Attributes
    ----------
    number : int
        The molecule's.
    rows : int64 array
        Places in the store, the most alike first (or in random order).
    similarities : float64 array
        Tanimoto to the molecule.
    total : int
        How many there were to choose from.
    """

    number: int
    rows: npt.NDArray[np.int64]
    similarities: npt.NDArray[np.float64]
    total: int


def mine(
    database: Database,
    truths: Sequence[Truth],
    *,
    by: str = "mass",
    keep: int = 255,
    kind: str = "hardest",
    ppm: float = 10.0,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> Iterator[Mined]:
    """Negatives for many molecules.

    Parameters
    ----------
    database : Database
    truths : sequence of Truth
    by : "mass" or "formula"
        Of equal mass within ``ppm``, or of equal formula.
    keep : int
        At most so many a molecule.
    kind : "hardest" or "random"
        The most alike by Tanimoto (equal ones in the store's order), or any.
    ppm : float
    seed : int
        For a random choice.
    engine : Engine
        Where the work is done; all cores of this machine by default.
    progress : callable of (stage, done, total)

    Yields
    ------
    Mined
        One for each molecule, in the order of their masses. The molecule itself (same first
        InChIKey block) is not among its negatives.
    """
    if by not in BY or kind not in KINDS:
        raise DatabaseError(
            f"negatives by {by!r} of kind {kind!r}: expected by {' or '.join(BY)}, "
            f"{' or '.join(KINDS)}"
        )
    if keep < 1:
        raise DatabaseError(f"keep is {keep}, expected at least 1")
    ordered = sorted(truths, key=lambda truth: (truth.mass, truth.number))
    batches = [ordered[start : start + _AT_A_TIME] for start in range(0, len(ordered), _AT_A_TIME)]
    engine = engine or LocalEngine()
    work = partial(
        _mine_batch, str(database.folder), by=by, keep=keep, kind=kind, ppm=ppm, seed=seed
    )
    done = 0
    for mined in engine.results(work, batches):
        done += len(mined)
        progress("mining", done, len(ordered))
        yield from mined


_opened: dict[str, Database] = {}


def _mine_batch(folder: str, truths: Sequence[Truth], **how: Any) -> list[Mined]:
    """Negatives of molecules that are neighbours in mass: their windows are read once."""
    if folder not in _opened:
        _opened.clear()
        _opened[folder] = Database.open(folder)
    database = _opened[folder]
    ppm, by = how["ppm"], how["by"]
    masses = np.array([truth.mass for truth in truths])
    # Of one formula all have one mass, up to how it was summed and rounded.
    width = masses * ppm * 1e-6 if by == "mass" else np.full(len(masses), 1e-4)
    low = np.searchsorted(database.masses, masses - width, side="left")
    high = np.searchsorted(database.masses, masses + width, side="right")
    found = []
    for first, last in _runs(low, high):
        start, end = int(low[first:last].min()), int(high[first:last].max())
        columns = ["key", "formula", "bits", "fingerprint"]
        table = database.rows(np.arange(start, end), columns)
        words = _words(table["fingerprint"], len(truths[0].fingerprint))
        bits = table["bits"].to_numpy()
        keys = np.array(table["key"].to_pylist(), dtype=object)
        formulas = np.array(table["formula"].to_pylist(), dtype=object)
        for place in range(first, last):
            here = slice(int(low[place]) - start, int(high[place]) - start)
            rows = words[here], bits[here], keys[here], formulas[here]
            found.append(_mine_one(truths[place], *rows, int(low[place]), **how))
    return found


def _runs(
    low: npt.NDArray[np.integer], high: npt.NDArray[np.integer], most_rows: int = 100_000
) -> Iterator[tuple[int, int]]:
    """Neighbours whose windows together are not too long to be read at once."""
    first = 0
    for place in range(1, len(low) + 1):
        if place == len(low) or high[first : place + 1].max() - low[first] > most_rows:
            yield first, place
            first = place


def _mine_one(
    truth: Truth,
    words: npt.NDArray[np.uint64],
    bits: npt.NDArray[np.integer],
    keys: npt.NDArray[Any],
    formulas: npt.NDArray[Any],
    offset: int,
    *,
    by: str,
    keep: int,
    kind: str,
    ppm: float,
    seed: int,
) -> Mined:
    others = keys != truth.key
    if by == "formula":
        others &= formulas == truth.formula
    rows = np.flatnonzero(others)
    query = np.frombuffer(truth.fingerprint, "<u8")
    used = np.flatnonzero(query)
    common = np.bitwise_count(words[rows[:, None], used] & query[used]).sum(axis=1, dtype=np.uint16)
    size = float(np.bitwise_count(query).sum())
    alike = tanimoto_of(common.astype(np.float64), size, bits[rows].astype(np.float64))
    if kind == "hardest":
        order = np.argsort(-alike, kind="stable")[:keep]
    else:
        order = np.random.default_rng([seed, truth.number]).permutation(len(rows))[:keep]
    return Mined(truth.number, rows[order] + offset, alike[order], len(rows))


def _words(column: Any, width: int) -> npt.NDArray[np.uint64]:
    """Packed fingerprints as words, shape (rows, width / 8)."""
    parts = [np.empty((0, width // 8), "<u8")]
    for chunk in column.chunks:
        buffer = np.frombuffer(chunk.buffers()[1], np.uint8)
        start = chunk.offset * width
        parts.append(buffer[start : start + len(chunk) * width].view("<u8").reshape(-1, width // 8))
    return np.concatenate(parts)
