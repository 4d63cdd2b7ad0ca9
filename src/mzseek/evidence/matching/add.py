"""Lists whose decoys a blind scorer cannot tell from measured molecules, added to prepared folders.

Measured molecules differ from what databases hold. Where decoys are whatever a database has, a
scorer that never sees the spectrum finds the truth far more often than chance. Here they are drawn
so that it does not: by the score of a blind scorer that was fitted on truths against all that the
database has, and that learned nothing from the molecule whose list it draws, or from its like.

Scorers learn from the train fold alone. So lists of val and test are drawn by what train has
taught, and nothing in the lists that models learn from depends on a molecule that they are
measured on. (If test molecules taught, the decoys of train would be drawn to look like them, and a
scorer trained on these would learn to rank their like last.)
"""

from typing import Any

import numpy as np

from mzseek.choices import EQUAL_IN, FOLDS
from mzseek.database import Database
from mzseek.errors import CacheError, DatabaseError
from mzseek.evidence.blind import Ints
from mzseek.evidence.matching.drawing import LEAST, effective_size, probabilities
from mzseek.evidence.matching.lists import Flags, structure_groups
from mzseek.evidence.matching.pool import Pool, pool_of
from mzseek.evidence.matching.rounds import Matched, Roles, matched_lists
from mzseek.metrics import hit_rate
from mzseek.prepared.layout import SAME_BLOCK, SAME_FINGERPRINT, own_count
from mzseek.prepared.newcomers import Newcomers, check_same_fingerprints
from mzseek.prepared.reader import CandidateLists, Prepared
from mzseek.prepared.segment import append_segment, held_for_lists
from mzseek.ragged import pointers
from mzseek.registry import check_name
from mzseek.work import Engine, Progress, silent

POOL = 512
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")


def matched_name(by: str) -> str:
    """What matched lists are called where nobody says.

    Examples
    --------
    >>> matched_name("mass"), matched_name("formula")
    ('matched', 'matched-formula')
    """
    return "matched" if by == EQUAL_IN[0] else f"matched-{by}"


def add_matched(
    prepared: Prepared,
    database: Database,
    *,
    by: str = "mass",
    name: str | None = None,
    keep: int = 256,
    ppm: float = 10.0,
    pool: int = POOL,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> tuple[Prepared, dict[str, Any]]:
    """Draw matched lists for every measured molecule, and add them to the prepared folder.

    They lie in a segment of their own, as negatives do. Models are trained on them and measured on
    them, on every fold.

    Parameters
    ----------
    prepared : Prepared
    database : Database
        With fingerprints of the same kind.
    by : "mass" or "formula"
        What decoys are equal in.
    name : str, optional
        Of the lists; see `matched_name`. Matched lists that had it are replaced.
    keep : int
        Members of a list at the most, the truth among them.
    pool : int
        Molecules at the most that a list is drawn from; of more, so many are taken at random.
    ppm, seed, engine, progress
        As in `mzseek.prepared.negatives.add_negatives`.

    Returns
    -------
    prepared : Prepared
        The folder, opened again.
    facts : dict
        Of the new lists: ``name``, ``lists``, their lengths, how many molecules have none and why
        (``set_aside``), ``truths_in_other_form``, and in ``matched`` how they were drawn, and what
        a blind scorer trained on them reaches (``blind``, by fold).

    Raises
    ------
    DatabaseError, CacheError, EvidenceError, BusyError, WriteError
        The two do not fit together, the folder has changed since it was written, has too few
        molecules to learn from, is being written, or cannot be written.
    """
    name = matched_name(by) if name is None else name
    _check(prepared, database, name, by, min(keep, pool))
    how = {"by": by, "ppm": ppm, "keep": keep, "pool": pool, "seed": seed, "form": "database",
           "database": database.manifest["files"]["molecules.parquet"]["sha256"]}  # fmt: skip
    with held_for_lists(prepared, "adding matched lists"):
        found = pool_of(
            prepared, database, by=by, most=pool, ppm=ppm, seed=seed, engine=engine,
            progress=progress,
        )  # fmt: skip
        return _matched(prepared, database, name, found, how, progress)


def _check(prepared: Prepared, database: Database, name: str, by: str, size: int) -> None:
    """Refuse what can be seen before any work."""
    check_name(EQUAL_IN, by, "matched lists by", DatabaseError)
    _check_name(prepared, name)
    if size < LEAST:
        raise DatabaseError(f"lists of {size} molecules, expected at least {LEAST}")
    check_same_fingerprints(prepared, database)


def _matched(
    prepared: Prepared,
    database: Database,
    name: str,
    pool: Pool,
    how: dict[str, Any],
    progress: Progress,
) -> tuple[Prepared, dict[str, Any]]:
    """The folder with lists drawn from a pool, and their facts."""
    folds = _folds(prepared, pool.numbers)
    matched = matched_lists(
        pool.lists, _roles(pool, folds), pool.numbers, seed=how["seed"], most=how["keep"],
        progress=progress,
    )  # fmt: skip
    if not len(matched.drawn.which):
        raise CacheError(f"{prepared.folder}: no list can be drawn, {_why(matched)}")
    progress("adding", 0)
    return _added(prepared, database, name, pool, matched, how | _told(pool, matched, folds))


def _check_name(prepared: Prepared, name: str) -> None:
    if not name or not _SAFE.issuperset(name):
        raise CacheError(
            f"--name is {name!r}, expected small letters, digits, - and _: files are named by it"
        )
    facts = prepared.manifest["candidates"].get(name)
    if facts is not None and "matched" not in facts:
        raise CacheError(
            f"{prepared.folder}: has lists {name!r} that are no matched ones; give another --name"
        )


def _folds(prepared: Prepared, numbers: Ints) -> dict[str, Flags]:
    """Which of the molecules each fold has spectra of."""
    return {
        fold: np.isin(numbers, np.asarray(prepared.molecule)[prepared.in_fold(fold)])
        for fold in FOLDS
    }


def _roles(pool: Pool, folds: dict[str, Flags]) -> Roles:
    """Who teaches: the train fold, or all where there is none."""
    teaches = folds["train"] if folds["train"].any() else np.ones(len(pool.numbers), bool)
    return Roles.of(structure_groups(pool.structures, teaches), teaches, folds["val"] & ~teaches)


def _why(matched: Matched) -> str:
    return "; ".join(f"{count:,}: {why}" for why, count in matched.drawn.reasons.items())


def _told(pool: Pool, matched: Matched, folds: dict[str, Flags]) -> dict[str, Any]:
    """What the manifest says of the drawing, and of what a blind scorer makes of it."""
    scores = np.split(matched.scores, pool.lists.ragged.starts[1:])
    sizes = [effective_size(probabilities(of_list)) for of_list in scores]
    blind = {}
    for fold in ("val", "test"):
        lists = matched.lists.only(np.flatnonzero(folds[fold][matched.drawn.which]))
        if matched.fresh is None or not len(lists):
            continue
        hits = hit_rate(lists.scores(matched.fresh), lists.counts, lists.labels, 1)
        blind[fold] = {
            "lists": len(lists), "mean": float(lists.counts.mean()),
            "hit_rate@1": float(hits.mean()), "random": float((1 / lists.counts).mean()),
        }  # fmt: skip
    return {
        "l2": matched.l2,
        "rounds": matched.rounds,
        "pool_mean": float(pool.lists.counts.mean()),
        "effective_mean": float(np.mean(sizes)),
        "blind": blind,
    }


def _added(
    prepared: Prepared,
    database: Database,
    name: str,
    pool: Pool,
    matched: Matched,
    how: dict[str, Any],
) -> tuple[Prepared, dict[str, Any]]:
    """The folder with the lists, and their facts."""
    table = Newcomers(prepared, database)
    lists, truths = _in_folder(prepared, table, pool, matched)
    numbers = pool.numbers[matched.drawn.which]
    measured = int(prepared.manifest["counts"]["measured_molecules"])
    facts = {
        "lists": len(lists),
        "candidates": len(lists.molecules),
        "median": float(np.median(lists.sizes)),
        "mean": float(lists.sizes.mean()),
        "largest": int(lists.sizes.max()),
        "molecules_without": measured - len(lists),
        "set_aside": {
            **({"cannot be standardised": lost} if (lost := measured - len(pool.numbers)) else {}),
            **matched.drawn.reasons,
        },
        "truths_in_other_form": int((truths != numbers).sum()),
        "matched": how,
    }
    added = append_segment(prepared, name, lists, table.new_molecules(), facts)
    return added, {"name": name, **facts}


def _in_folder(
    prepared: Prepared, table: Newcomers, pool: Pool, matched: Matched
) -> tuple[CandidateLists, Ints]:
    """The drawn lists by the folder's molecules, and their truths."""
    which, places = matched.drawn.which, matched.drawn.candidates
    labels = pool.lists.labels[places]
    rivals = table.places_of_rows(pool.rows[pool.lists.members[places[~labels]]])
    forms = [pool.forms[each] for each in which.tolist()]
    truths = table.places_of_truths(pool.own[which], forms).astype(np.int64)
    molecules = np.empty(len(places), np.int32)
    molecules[labels], molecules[~labels] = truths, rivals
    identity = np.where(labels, SAME_FINGERPRINT | SAME_BLOCK, 0).astype(np.uint8)
    list_of = np.full(own_count(prepared.manifest, "molecules"), -1, np.int32)
    list_of[pool.numbers[which]] = np.arange(len(which))
    indptr = pointers(matched.lists.counts)
    return CandidateLists(indptr, molecules, identity, list_of), truths
