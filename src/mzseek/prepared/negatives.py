"""Candidate lists of hard negatives, added to a prepared folder for training.

They are named after how they were made, ``hard-mass-256`` or ``random-formula-64``. Models are
trained on them and measured on the lists that came with the data. Truths stand in them in the form
of the database: see `mzseek.prepared.truths`.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.database import Database
from mzseek.database.negatives import Mined, mine
from mzseek.errors import CacheError, DatabaseError
from mzseek.prepared.layout import SAME_BLOCK, SAME_FINGERPRINT, own_count
from mzseek.prepared.newcomers import Newcomers, check_same_fingerprints
from mzseek.prepared.reader import CandidateLists, Prepared
from mzseek.prepared.segment import append_segment, held_for_lists
from mzseek.prepared.truths import standard_forms, truths_of
from mzseek.ragged import pointers
from mzseek.work import Engine, Progress, silent

Ints = npt.NDArray[np.int64]


def negatives_name(kind: str, by: str, keep: int) -> str:
    """What lists of negatives are called; that they are such, their manifest says.

    Examples
    --------
    >>> negatives_name("hardest", "mass", 256)
    'hard-mass-256'
    """
    return f"{'hard' if kind == 'hardest' else kind}-{by}-{keep}"


def add_negatives(
    prepared: Prepared,
    database: Database,
    *,
    by: str = "mass",
    keep: int = 256,
    kind: str = "hardest",
    ppm: float = 10.0,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> tuple[Prepared, dict[str, Any]]:
    """Mine negatives for every measured molecule, and add the lists to the prepared folder.

    They lie in a segment of their own: what was there is not touched, so that runs made with it
    stay valid, and whoever has the folder open goes on reading it.

    Parameters
    ----------
    prepared : Prepared
    database : Database
        With fingerprints of the same kind.
    by, kind, ppm, seed, engine
        As in `mzseek.database.negatives.mine`.
    keep : int
        Length of a list at the most, the truth included, which comes first.
    progress : callable of (stage, done, total)

    Returns
    -------
    prepared : Prepared
        The folder, opened again.
    facts : dict
        Of the new lists: ``name``, ``lists``, ``median``, ``mean``, ``largest``, ``alone``, and
        how many truths stand there in another form than in the data, ``truths_in_other_form``.

    Raises
    ------
    DatabaseError, CacheError
        The two do not fit together, the folder has changed since it was written, or another has
        taken its place since it was opened.
    BusyError, WriteError
        Another process is writing the folder, or it cannot be written.
    """
    if keep < 2:
        raise DatabaseError(f"--keep is {keep}, expected at least 2: the truth and a negative")
    name = negatives_name(kind, by, keep)
    check_same_fingerprints(prepared, database)
    if name in prepared.measured_settings:
        raise CacheError(
            f"{prepared.folder}: has lists {name!r} that came with the data; name another --keep"
        )
    with held_for_lists(prepared, "adding negatives"):
        return _added(prepared, database, name, by, keep, kind, ppm, seed, engine, progress)


def _added(
    prepared: Prepared,
    database: Database,
    name: str,
    by: str,
    keep: int,
    kind: str,
    ppm: float,
    seed: int,
    engine: Engine | None,
    progress: Progress,
) -> tuple[Prepared, dict[str, Any]]:
    forms = standard_forms(
        prepared, keep_stereo=database.keep_stereo, engine=engine, progress=progress
    )
    found = mine(
        database, truths_of(forms, database.fingerprint), by=by, keep=keep - 1, kind=kind, ppm=ppm,
        seed=seed, engine=engine, progress=progress,
    )  # fmt: skip
    mined = sorted(found, key=lambda of_molecule: of_molecule.number)
    progress("adding", 0)
    table = Newcomers(prepared, database)
    negatives = table.places_of_rows(np.concatenate([of_molecule.rows for of_molecule in mined]))
    own = np.array([of_molecule.own for of_molecule in mined], np.int64)
    truths = table.places_of_truths(own, [forms[of_molecule.number] for of_molecule in mined])
    lists = _lists(prepared, mined, truths, negatives)
    written = [of_molecule.number for of_molecule in mined]
    measured = int(prepared.manifest["counts"]["measured_molecules"])
    facts = {
        "lists": len(mined),
        "candidates": len(lists.molecules),
        "median": float(np.median(lists.sizes)),
        "mean": float(lists.sizes.mean()),
        "largest": int(lists.sizes.max()),
        "molecules_without": measured - len(mined),
        "alone": int((lists.sizes == 1).sum()),
        "truths_in_other_form": int((truths != written).sum()),
        "negatives": {
            "by": by, "kind": kind, "keep": keep, "ppm": ppm, "seed": seed, "form": "database",
            "database": database.manifest["files"]["molecules.parquet"]["sha256"],
        },
    }  # fmt: skip
    added = append_segment(prepared, name, lists, table.new_molecules(), facts)
    return added, {"name": name, **facts}


def _lists(
    prepared: Prepared,
    mined: list[Mined],
    truths: npt.NDArray[np.int32],
    negatives: npt.NDArray[np.int32],
) -> CandidateLists:
    """Lists with the truth first, and in what sense each candidate is it."""
    indptr = pointers([1 + len(of_molecule.rows) for of_molecule in mined])
    molecules = np.empty(int(indptr[-1]), np.int32)
    identity = np.full(len(molecules), SAME_FINGERPRINT | SAME_BLOCK, np.uint8)
    is_other = np.ones(len(molecules), bool)
    is_other[indptr[:-1]] = False
    molecules[indptr[:-1]] = truths
    molecules[is_other] = negatives
    # The store's key is the identity; a molecule that the folder has as the truth's SMILES
    # under another key cannot be: equal SMILES have equal keys.
    alike = np.concatenate([of_molecule.similarities for of_molecule in mined])
    identity[is_other] = np.where(alike == 1, SAME_FINGERPRINT, 0)
    list_of = np.full(own_count(prepared.manifest, "molecules"), -1, np.int32)
    list_of[[of_molecule.number for of_molecule in mined]] = np.arange(len(mined))
    return CandidateLists(indptr, molecules, identity, list_of)
