"""What decoys are drawn from: each measured molecule, and what a database has of equal mass."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.chem.descriptors import descriptors
from mzseek.chem.fingerprinting import fingerprint_kind, fingerprints
from mzseek.database import Database
from mzseek.database.negatives import mine
from mzseek.evidence.blind import Ints, blind_rows
from mzseek.evidence.matching.lists import BlindLists
from mzseek.prepared.newcomers import set_bits
from mzseek.prepared.reader import Prepared
from mzseek.prepared.truths import StandardForm, standard_forms, truths_of
from mzseek.ragged import pointers
from mzseek.work import Engine, LocalEngine, Progress, silent

_BATCH = 1000


@dataclass(frozen=True, eq=False)
class Pool:
    """Measured molecules, each with all that may stand in its list.

    Attributes
    ----------
    numbers : int64 array, shape (lists,)
        Measured molecules, by their places in the prepared folder.
    forms : list of StandardForm
        Their standard forms.
    own : int64 array, shape (lists,)
        Their places in the database, -1 where it does not have one.
    rows : int64 array
        Places in the database of the first rows of ``lists``; the others are ``forms`` that the
        database does not have.
    structures : CSR of 0/1, shape (lists, bits)
        Morgan fingerprints of the measured molecules, whatever the folder has: a likeness of 0.6 is
        another one by other fingerprints.
    lists : BlindLists
        The truth is the first of each list.
    """

    numbers: Ints
    forms: list[StandardForm]
    own: Ints
    rows: Ints
    structures: csr_array
    lists: BlindLists


def pool_of(
    prepared: Prepared,
    database: Database,
    *,
    by: str,
    most: int,
    ppm: float = 10.0,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> Pool:
    """All that may stand in the lists of measured molecules.

    What is equal to a truth is not among its rivals: of its first InChIKey block, or of its
    fingerprint. Truths are there in the form of the database, as in
    `mzseek.prepared.negatives.add_negatives`.

    Parameters
    ----------
    prepared : Prepared
    database : Database
        With fingerprints of the same kind, and the index for nearest neighbours.
    by : "mass" or "formula"
    most : int
        Rivals of a molecule at the most; of more, so many are drawn at random.
    ppm, seed, engine
        As in `mzseek.database.negatives.mine`.
    progress : callable of (stage, done, total)
    """
    engine = engine or LocalEngine()
    forms = standard_forms(
        prepared, keep_stereo=database.keep_stereo, engine=engine, progress=progress
    )
    found = mine(
        database, truths_of(forms, database.fingerprint), by=by, keep=most, kind="random", ppm=ppm,
        seed=seed, engine=engine, progress=progress,
    )  # fmt: skip
    mined = sorted(found, key=lambda of_molecule: of_molecule.number)
    own = np.array([of_molecule.own for of_molecule in mined], np.int64)
    ordered = [forms[of_molecule.number] for of_molecule in mined]
    rivals = [of_molecule.rows[of_molecule.similarities < 1] for of_molecule in mined]
    rows = np.unique(np.concatenate([own[own >= 0], *rivals]))
    added = [form for form, place in zip(ordered, own.tolist(), strict=True) if place < 0]
    bits = _bits(database, rows, added)
    table = _described(database, rows, added, engine, progress)
    truths = np.where(own >= 0, np.searchsorted(rows, own), 0)
    truths[own < 0] = len(rows) + np.arange(len(added))
    return Pool(
        numbers=np.array([of_molecule.number for of_molecule in mined], np.int64),
        forms=ordered, own=own, rows=rows,
        structures=fingerprints([form.described.smiles for form in ordered], "morgan2"),
        lists=_lists(blind_rows(bits, table), rows, truths, rivals),
    )  # fmt: skip


def _lists(rows: csr_array, known: Ints, truths: Ints, rivals: list[Ints]) -> BlindLists:
    """The truths, each followed by its rivals."""
    counts = np.array([1 + len(each) for each in rivals], np.int64)
    labels = np.zeros(int(counts.sum()), bool)
    labels[pointers(counts)[:-1]] = True
    members = np.empty(len(labels), np.int64)
    members[labels] = truths
    members[~labels] = np.searchsorted(known, np.concatenate(rivals))
    return BlindLists(rows, members, counts, labels)


def _bits(database: Database, rows: Ints, added: list[StandardForm]) -> csr_array:
    """Fingerprints of molecules of the store, and of others after them."""
    counts, bits = set_bits(database.rows(rows, ["fingerprint"])["fingerprint"])
    sizes = np.concatenate([counts, [len(form.bits) for form in added]]).astype(np.int64)
    columns = np.concatenate([bits, *(form.bits for form in added)]).astype(np.int32)
    shape = (len(sizes), fingerprint_kind(database.fingerprint).bits)
    return csr_array((np.ones(len(columns), np.int32), columns, pointers(sizes)), shape=shape)


def _described(
    database: Database,
    rows: Ints,
    added: list[StandardForm],
    engine: Engine,
    progress: Progress,
) -> npt.NDArray[np.float32]:
    """Descriptors of the same molecules."""
    smiles = database.rows(rows, ["smiles"])["smiles"].to_pylist()
    smiles += [form.described.smiles for form in added]
    batches = [smiles[start : start + _BATCH] for start in range(0, len(smiles), _BATCH)]
    tables, done = [], 0
    for table in engine.results(descriptors, batches):
        tables.append(table)
        done += len(table)
        progress("describing", done, len(smiles))
    return np.concatenate(tables)
