"""Hard negatives: for a molecule, what the store has of equal mass or formula, most alike first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from mzseek.core.errors import DatabaseError
from mzseek.core.registry import EQUAL_IN, MINED, check_name
from mzseek.database.store import MOLECULES, SAME_MASS, Database
from mzseek.parallel import Engine, LocalEngine, OpenedOnce, Progress, silent

_AT_A_TIME = 64
_TOGETHER = 16


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
        Packed, of the store's kind; for a molecule that the store has, its own is taken.
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
    own : int
        Place of the molecule itself in the store, -1 where it is not there. Likeness is to the
        form that it has there.
    """

    number: int
    rows: npt.NDArray[np.int64]
    similarities: npt.NDArray[np.float64]
    total: int
    own: int


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
    """The store, if it is still the one that was meant."""
    database = Database.open(folder)
    if database.manifest["files"][MOLECULES]["sha256"] != version:
        raise DatabaseError(f"{folder}: was replaced since it was opened; open it again")
    database.check_order()
    return database


def _mine_batch(database: Database, truths: Sequence[Truth], **how: Any) -> list[Mined]:
    """Negatives of molecules that are neighbours in mass: what their windows share is read once."""
    masses = np.array([truth.mass for truth in truths])
    # Of one formula all have one mass, up to how it was summed and rounded.
    width = masses * how["ppm"] * 1e-6 if how["by"] == "mass" else np.full(len(masses), SAME_MASS)
    low = np.searchsorted(database.masses, masses - width, side="left")
    high = np.searchsorted(database.masses, masses + width, side="right")
    names = _Names(database, int(low.min()), int(high.max()), how["by"])
    own = np.array([names.own(*window) for window in zip(truths, low, high, strict=True)])
    queries = np.array([np.frombuffer(truth.fingerprint, "<u8") for truth in truths])
    queries[own >= 0] = database.nearest.fingerprints(own[own >= 0])
    mined = []
    for first, last in _alike(low, high):
        start, end = int(low[first:last].min()), int(high[first:last].max())
        values = database.nearest.similarities(queries[first:last], start, end)
        for place in range(first, last):
            here = slice(int(low[place]) - start, int(high[place]) - start)
            others = names.others(truths[place], int(low[place]), int(high[place]))
            alike = values[place - first, here]
            mined.append(_choose(truths[place], own[place], alike, others, low[place], **how))
    return mined


class _Names:
    """Keys and formulas of a range of the store, to tell a molecule from its negatives."""

    def __init__(self, database: Database, start: int, end: int, by: str) -> None:
        columns = ["key", "formula"] if by == "formula" else ["key"]
        self.start, self.table = start, database.range(start, end, columns)
        self.masses = database.masses

    def own(self, truth: Truth, low: int, high: int) -> int:
        """Where the molecule itself is in a range; its labelled forms have its key, too."""
        keys = self.table["key"].slice(low - self.start, high - low)
        rows = int(low) + np.flatnonzero(pc.equal(keys, truth.key).to_numpy())
        rows = rows[np.abs(self.masses[rows] - truth.mass) <= SAME_MASS]
        return int(rows[0]) if len(rows) else -1

    def others(self, truth: Truth, low: int, high: int) -> npt.NDArray[np.bool_]:
        """Which rows are other molecules, of the same formula where that is asked for."""
        part = self.table.slice(low - self.start, high - low)
        chosen = pc.not_equal(part["key"], truth.key)
        if "formula" in part.column_names:
            chosen = pc.and_(chosen, pc.equal(part["formula"], truth.formula))
        return np.asarray(chosen.to_numpy())


def _alike(
    low: npt.NDArray[np.integer], high: npt.NDArray[np.integer]
) -> Iterator[tuple[int, int]]:
    """Runs of neighbours with much the same window: comparing all with all wastes little."""
    first = 0
    for place in range(1, len(low) + 1):
        if place < len(low):
            union = high[place] - low[first]
            own = min(high[first] - low[first], high[place] - low[place])
            if union <= 1.25 * own + 16 and place - first < _TOGETHER:
                continue
        yield first, place
        first = place


def _choose(
    truth: Truth,
    own: int,
    similarities: npt.NDArray[np.float64],
    others: npt.NDArray[np.bool_],
    offset: int,
    *,
    keep: int,
    kind: str,
    seed: int,
    **_: Any,
) -> Mined:
    rows = np.flatnonzero(others)
    alike = similarities[rows]
    if kind == "hardest":
        order = np.argsort(-alike, kind="stable")[:keep]
    else:
        order = np.random.default_rng([seed, truth.number]).permutation(len(rows))[:keep]
    return Mined(truth.number, rows[order] + int(offset), alike[order], len(rows), int(own))
