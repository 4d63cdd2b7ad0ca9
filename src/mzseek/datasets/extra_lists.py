"""Candidate lists added to a prepared folder: hard negatives, and their new molecules."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mzseek.core.errors import CacheError, DatabaseError
from mzseek.core.ragged import pointers
from mzseek.database import Database
from mzseek.database.negatives import Truth, mine
from mzseek.database.records import packed
from mzseek.datasets.layout import SAME_FINGERPRINT, SAME_INCHIKEY
from mzseek.datasets.molecules import FingerprintedMolecule, MoleculeTable, describe_batch
from mzseek.datasets.prepare import append_segment, held_for_lists
from mzseek.datasets.prepared import CandidateLists, Prepared
from mzseek.parallel import Engine, LocalEngine, Progress, silent

Ints = npt.NDArray[np.int64]
_BATCH = 500
_UNPACKED_AT_ONCE = 65_536


def standard_forms(
    prepared: Prepared,
    *,
    keep_stereo: bool = False,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> dict[int, FingerprintedMolecule]:
    """Standardise every measured molecule of a folder as a database would; by molecule number.

    Those that cannot be standardised, which no database has, are left out; `CacheError` if none
    can. ``keep_stereo`` as the database does; all cores of this machine are used by default.
    """
    measured = np.unique(np.asarray(prepared.molecule)).tolist()
    smiles = [prepared.smiles[molecule] for molecule in measured]
    batches = [smiles[start : start + _BATCH] for start in range(0, len(smiles), _BATCH)]
    kind = str(prepared.manifest["options"]["fingerprint"])
    work = partial(describe_batch, kind=kind, standard=True, keep_stereo=keep_stereo)
    forms: list[FingerprintedMolecule | str] = []
    for batch in (engine or LocalEngine()).results(work, batches):
        forms += batch
        progress("standardising", len(forms), len(smiles))
    by_number = {
        number: form
        for number, form in zip(measured, forms, strict=True)
        if not isinstance(form, str)
    }
    if not by_number:
        raise CacheError(f"{prepared.folder}: none of its molecules can be standardised")
    return by_number


def truths_of(forms: dict[int, FingerprintedMolecule], kind: str) -> list[Truth]:
    """Make the truths to mine for, with packed fingerprints of this kind."""
    rows = packed([form.bits for form in forms.values()], kind).to_pylist()
    return [
        Truth(number, molecule.rounded_mass, molecule.formula, molecule.key, row)
        for (number, (molecule, _)), row in zip(forms.items(), rows, strict=True)
    ]


class ExtraMolecules:
    """Molecules of a folder, and new ones of added lists, numbered after them."""

    def __init__(self, prepared: Prepared, database: Database) -> None:
        self.database = database
        self.number_of = {smiles: number for number, smiles in enumerate(prepared.smiles)}
        self.first_new = len(prepared.masses)
        self.rows: list[int] = []
        self.forms: list[FingerprintedMolecule] = []

    def numbers_of_rows(self, rows: Ints) -> npt.NDArray[np.int32]:
        """Return numbers of molecules of the database; call it before any form is numbered."""
        distinct, inverse = np.unique(rows, return_inverse=True)
        numbers = np.empty(len(distinct), np.int32)
        texts = self.database.rows(distinct, ["smiles"])["smiles"].to_pylist()
        for index, smiles in enumerate(texts):
            new = self.first_new + len(self.rows)
            numbers[index] = self.number_of.setdefault(smiles, new)
            if numbers[index] == new:
                self.rows.append(int(distinct[index]))
        return numbers[inverse]

    def numbers_of_truths(
        self, own_rows: Ints, forms: Sequence[FingerprintedMolecule]
    ) -> npt.NDArray[np.int32]:
        """Return numbers of measured molecules as in the database, or else in standard form.

        ``own_rows`` are their rows in the database, -1 where it does not have one.
        """
        numbers = np.empty(len(own_rows), np.int32)
        numbers[own_rows >= 0] = self.numbers_of_rows(own_rows[own_rows >= 0])
        for index in np.flatnonzero(own_rows < 0).tolist():
            new = self.first_new + len(self.rows) + len(self.forms)
            numbers[index] = self.number_of.setdefault(forms[index].described.smiles, new)
            if numbers[index] == new:
                self.forms.append(forms[index])
        return numbers

    def new_molecules(self) -> MoleculeTable:
        """Return the molecules that are new to the folder, in the order of their numbers."""
        columns = ["smiles", "formula", "mass", "key", "fingerprint"]
        new = self.database.rows(np.array(self.rows, np.int64), columns)
        counts, bits = set_bits(new["fingerprint"])
        described = [form.described for form in self.forms]
        keys = [*new["key"].to_pylist(), *(molecule.key for molecule in described)]
        masses = np.array([molecule.rounded_mass for molecule in described], np.float64)
        sizes = np.array([len(form.bits) for form in self.forms], np.int64)
        return MoleculeTable(
            kind=self.database.fingerprint,
            smiles=[*new["smiles"].to_pylist(), *(molecule.smiles for molecule in described)],
            formulas=[*new["formula"].to_pylist(), *(molecule.formula for molecule in described)],
            inchikey14=np.array([key[:14] if "=" not in key else "" for key in keys], dtype="S14"),
            masses=np.concatenate([new["mass"].to_numpy(), masses]),
            fingerprint_indptr=pointers(np.concatenate([counts, sizes])),
            fingerprint_bits=np.concatenate([bits, *(form.bits for form in self.forms)]),
        )


def check_same_fingerprints(prepared: Prepared, database: Database) -> None:
    """Refuse a database whose fingerprints are of another kind than the folder's."""
    kind = str(prepared.manifest["options"]["fingerprint"])
    if kind != database.fingerprint:
        raise DatabaseError(
            f"{database.folder}: has {database.fingerprint} fingerprints, and "
            f"{prepared.folder} has {kind}; build one with --fingerprint {kind}"
        )


def set_bits(packed: pa.ChunkedArray) -> tuple[Ints, npt.NDArray[np.uint16]]:
    """Return how many bits are set in each packed fingerprint, and which, rising."""
    counts, bits = [np.empty(0, np.int64)], [np.empty(0, np.uint16)]
    width = packed.type.byte_width
    for first in range(0, len(packed), _UNPACKED_AT_ONCE):
        data = b"".join(packed.slice(first, _UNPACKED_AT_ONCE).to_pylist())
        table = np.frombuffer(data, np.uint8).reshape(-1, width)
        row, column = np.nonzero(table)  # most bytes are 0: only the others are unpacked
        which, bit = np.nonzero(np.unpackbits(table[row, column][:, None], axis=1))
        counts.append(np.bincount(row[which], minlength=len(table)))
        bits.append((8 * column[which] + bit).astype(np.uint16))
    return np.concatenate(counts), np.concatenate(bits)


def negatives_name(kind: str, by: str, keep: int) -> str:
    """Return the name of lists of negatives.

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
    stay valid, and processes that have the folder open go on reading it.

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
    metadata : dict
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
        forms = standard_forms(
            prepared, keep_stereo=database.keep_stereo, engine=engine, progress=progress
        )
        results = mine(
            database, truths_of(forms, database.fingerprint), by=by, keep=keep - 1, kind=kind,
            ppm=ppm, seed=seed, engine=engine, progress=progress,
        )  # fmt: skip
        mined = sorted(results, key=lambda negatives: negatives.number)
        progress("adding", 0)
        table = ExtraMolecules(prepared, database)
        others = table.numbers_of_rows(np.concatenate([negatives.rows for negatives in mined]))
        own_rows = np.array([negatives.row for negatives in mined], np.int64)
        numbers = [negatives.number for negatives in mined]
        truths = table.numbers_of_truths(own_rows, [forms[number] for number in numbers])
        indptr = pointers([1 + len(negatives.rows) for negatives in mined])
        molecules = np.empty(int(indptr[-1]), np.int32)
        identity = np.full(len(molecules), SAME_FINGERPRINT | SAME_INCHIKEY, np.uint8)
        is_other = np.ones(len(molecules), bool)
        is_other[indptr[:-1]] = False
        molecules[indptr[:-1]] = truths
        molecules[is_other] = others
        # The store's key is the identity; a molecule that the folder has as the truth's SMILES
        # under another key cannot be: equal SMILES have equal keys.
        similarities = np.concatenate([negatives.similarities for negatives in mined])
        identity[is_other] = np.where(similarities == 1, SAME_FINGERPRINT, 0)
        list_of = np.full(prepared.base_molecules, -1, np.int32)
        list_of[numbers] = np.arange(len(mined))
        lists = CandidateLists(indptr, molecules, identity, list_of)
        metadata = {
            "lists": len(mined),
            "candidates": len(molecules),
            "median": float(np.median(lists.sizes)),
            "mean": float(lists.sizes.mean()),
            "largest": int(lists.sizes.max()),
            "molecules_without": prepared.manifest["counts"]["measured_molecules"] - len(mined),
            "alone": int((lists.sizes == 1).sum()),
            "truths_in_other_form": int((truths != numbers).sum()),
            "negatives": {
                "by": by, "kind": kind, "keep": keep, "ppm": ppm, "seed": seed, "form": "database",
                "database": database.manifest["files"]["molecules.parquet"]["sha256"],
            },
        }  # fmt: skip
        added = append_segment(prepared, name, lists, table.new_molecules(), metadata)
    return added, {"name": name, **metadata}
