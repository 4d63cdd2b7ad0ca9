"""Hard negatives: the most similar molecules of equal mass or formula that the store has."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from mzseek.core.errors import DatabaseError
from mzseek.core.registry import EQUAL_IN, MINED, check_name
from mzseek.database.store import MOLECULES, SAME_MASS, Database
from mzseek.parallel import Engine, LocalEngine, OpenedOnce, Progress, silent

_AT_A_TIME = 64
_SHARED = 16


class Truth(NamedTuple):
    """A molecule to mine negatives for.

    Attributes
    ----------
    number : int
        Chosen by the caller; also seeds a random choice.
    mass : float
    formula, key : str
        Formula, and first InChIKey block.
    fingerprint : bytes
        Packed, of the store's kind; that of the store is used for a molecule that it has.
    """

    number: int
    mass: float
    formula: str
    key: str
    fingerprint: bytes


class Mined(NamedTuple):
    """Negatives of one molecule.

    Attributes
    ----------
    number : int
        The molecule's.
    rows : int64 array
        Rows in the store, the most similar first (or in random order).
    similarities : float64 array
        Tanimoto to the molecule.
    total : int
        Number of molecules that were chosen from.
    row : int
        Row of the molecule itself in the store, -1 where it is not there. Similarities are to the
        form that it has there.
    """

    number: int
    rows: npt.NDArray[np.int64]
    similarities: npt.NDArray[np.float64]
    total: int
    row: int


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
    """Mine negatives for many molecules.

    Parameters
    ----------
    database : Database
    truths : sequence of Truth
    by : "mass" or "formula"
        Of equal mass within ``ppm``, or of equal formula.
    keep : int
        At most so many a molecule.
    kind : "hardest" or "random"
        The most similar by Tanimoto (equal ones in the store's order), or any.
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
    check_name(EQUAL_IN, by, "negatives by", DatabaseError)
    check_name(MINED, kind, "kind of negatives", DatabaseError)
    if keep < 1:
        raise DatabaseError(f"keep is {keep}, expected at least 1")
    ordered = sorted(truths, key=lambda truth: (truth.mass, truth.number))
    batches = [ordered[start : start + _AT_A_TIME] for start in range(0, len(ordered), _AT_A_TIME)]
    engine = engine or LocalEngine()
    version = str(database.manifest["files"][MOLECULES]["sha256"])
    mine_batch = partial(_mine_batch, by=by, keep=keep, kind=kind, ppm=ppm, seed=seed)
    work = OpenedOnce(mine_batch, _opened, str(database.folder), version)
    done = 0
    for mined in engine.results(work, batches):
        done += len(mined)
        progress("mining", done, len(ordered))
        yield from mined


def _opened(folder: str, version: str) -> Database:
    """Open the database of this version; another one that has replaced it is refused."""
    database = Database.open(folder)
    if database.manifest["files"][MOLECULES]["sha256"] != version:
        raise DatabaseError(f"{folder}: was replaced since it was opened; open it again")
    database.check_order()
    return database


def _mine_batch(
    database: Database,
    truths: Sequence[Truth],
    *,
    by: str,
    keep: int,
    kind: str,
    ppm: float,
    seed: int,
) -> list[Mined]:
    """Mine for neighbours in mass: rows that their windows share are read once."""
    masses = np.array([truth.mass for truth in truths])
    # Of one formula all have one mass, up to how it was summed and rounded.
    width = masses * ppm * 1e-6 if by == "mass" else np.full(len(masses), SAME_MASS)
    low = np.searchsorted(database.masses, masses - width, side="left")
    high = np.searchsorted(database.masses, masses + width, side="right")
    base = int(low.min())
    columns = ["key", "formula"] if by == "formula" else ["key"]
    table = database.range(base, int(high.max()), columns)
    own_rows, is_other = np.full(len(truths), -1, np.int64), []
    for index, truth in enumerate(truths):
        window = table.slice(low[index] - base, high[index] - low[index])
        same_key = pc.equal(window["key"], truth.key)
        rows = low[index] + np.flatnonzero(same_key.to_numpy())
        # Labelled forms of a molecule have its key, too.
        rows = rows[np.abs(database.masses[rows] - truth.mass) <= SAME_MASS]
        if len(rows):
            own_rows[index] = rows[0]
        other = pc.invert(same_key)
        if by == "formula":
            other = pc.and_(other, pc.equal(window["formula"], truth.formula))
        is_other.append(np.flatnonzero(other.to_numpy()))
    queries = np.array([np.frombuffer(truth.fingerprint, "<u8") for truth in truths])
    queries[own_rows >= 0] = database.nearest.fingerprints(own_rows[own_rows >= 0])
    mined = []
    for first, last in _shared_windows(low, high):
        start, end = int(low[first:last].min()), int(high[first:last].max())
        values = database.nearest.similarities(queries[first:last], start, end)
        for index in range(first, last):
            rows = is_other[index]
            similarities = values[index - first, int(low[index]) - start + rows]
            if kind == "hardest":
                order = np.argsort(-similarities, kind="stable")[:keep]
            else:
                rng = np.random.default_rng([seed, truths[index].number])
                order = rng.permutation(len(rows))[:keep]
            chosen = rows[order] + int(low[index])
            number, total = truths[index].number, len(rows)
            mined.append(Mined(number, chosen, similarities[order], total, int(own_rows[index])))
    return mined


def _shared_windows(
    low: npt.NDArray[np.integer], high: npt.NDArray[np.integer]
) -> Iterator[tuple[int, int]]:
    """Yield runs of neighbours with similar windows, which are compared at once."""
    first = 0
    for index in range(1, len(low) + 1):
        if index < len(low):
            union = high[index] - low[first]
            smaller = min(high[first] - low[first], high[index] - low[index])
            if union <= 1.25 * smaller + 16 and index - first < _SHARED:
                continue
        yield first, index
        first = index
