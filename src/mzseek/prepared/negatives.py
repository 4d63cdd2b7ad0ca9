"""Candidate lists of hard negatives, added to a prepared folder for training.

They are named after how they were made, ``hard-mass-256`` or ``random-formula-64``. Models are
trained on them and measured on the lists that came with the data. Truths stand in them in the form
of the database: see `mzseek.prepared.truths`.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mzseek.database import Database
from mzseek.database.negatives import Mined, mine
from mzseek.errors import CacheError, DatabaseError
from mzseek.files import sole_writer
from mzseek.files.owned import ensure_replaceable
from mzseek.prepared.layout import (
    KIND,
    SAME_BLOCK,
    SAME_FINGERPRINT,
    is_leftover,
    own_count,
)
from mzseek.prepared.reader import CandidateLists, Prepared
from mzseek.prepared.segment import NewMolecules, append_segment
from mzseek.prepared.truths import StandardForm, standard_forms, truths_of
from mzseek.ragged import pointers
from mzseek.work import Engine, Progress, silent

Ints = npt.NDArray[np.int64]
_AT_A_TIME = 65_536


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
    _check_fit(prepared, database, name)
    with sole_writer(prepared.folder, "adding negatives"):
        ensure_replaceable(prepared.folder, KIND, [], is_leftover)
        if Prepared.open(prepared.folder).manifest != prepared.manifest:
            raise CacheError(f"{prepared.folder}: was replaced since it was opened; open it again")
        prepared.verify()  # lists that are mined for damaged molecules would be wrong
        return _added(prepared, database, name, by, keep, kind, ppm, seed, engine, progress)


def _check_fit(prepared: Prepared, database: Database, name: str) -> None:
    own = str(prepared.manifest["options"]["fingerprint"])
    if own != database.fingerprint:
        raise DatabaseError(
            f"{database.folder}: has {database.fingerprint} fingerprints, and "
            f"{prepared.folder} has {own}; build one with --fingerprint {own}"
        )
    if name in prepared.measured_settings:
        raise CacheError(
            f"{prepared.folder}: has lists {name!r} that came with the data; name another --keep"
        )


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
    table = _Table(prepared, database)
    negatives = table.places_of_rows(np.concatenate([of_molecule.rows for of_molecule in mined]))
    truths = _places_of_truths(table, mined, forms)
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


class _Table:
    """The folder's molecules, and those that lists bring: of the store, and truths it lacks."""

    def __init__(self, prepared: Prepared, database: Database) -> None:
        self.database = database
        self.place_of = {smiles: place for place, smiles in enumerate(prepared.smiles)}
        self.old = len(prepared.masses)
        self.rows: list[int] = []
        self.forms: list[StandardForm] = []

    def places_of_rows(self, rows: Ints) -> npt.NDArray[np.int32]:
        """Where molecules of the store are; before any form is asked for."""
        wanted, inverse = np.unique(rows, return_inverse=True)
        places = np.empty(len(wanted), np.int32)
        for index, smiles in enumerate(
            self.database.rows(wanted, ["smiles"])["smiles"].to_pylist()
        ):
            place = self.place_of.get(smiles)
            if place is None:
                place = self.place_of[smiles] = self.old + len(self.rows)
                self.rows.append(int(wanted[index]))
            places[index] = place
        return places[inverse]

    def place_of_form(self, form: StandardForm) -> int:
        """Where a standardised molecule is."""
        place = self.place_of.get(form.described.smiles)
        if place is None:
            new = len(self.rows) + len(self.forms)
            place = self.place_of[form.described.smiles] = self.old + new
            self.forms.append(form)
        return place

    def new_molecules(self) -> NewMolecules:
        """What the folder does not have yet, in the order of their places."""
        columns = ["smiles", "formula", "mass", "key", "fingerprint"]
        new = self.database.rows(np.array(self.rows, np.int64), columns)
        counts, bits = _set_bits(new["fingerprint"])
        described = [form.described for form in self.forms]
        keys = [*new["key"].to_pylist(), *(molecule.key for molecule in described)]
        masses = [molecule.rounded_mass for molecule in described]
        sizes = np.array([len(form.bits) for form in self.forms], np.int64)
        return NewMolecules(
            smiles=[*new["smiles"].to_pylist(), *(molecule.smiles for molecule in described)],
            formulas=[*new["formula"].to_pylist(), *(molecule.formula for molecule in described)],
            masses=np.concatenate([new["mass"].to_numpy(), np.array(masses, np.float64)]),
            blocks=np.array([key[:14] if "=" not in key else "" for key in keys], dtype="S14"),
            bit_counts=np.concatenate([counts, sizes]),
            bits=np.concatenate([bits, *(form.bits for form in self.forms)]),
        )


def _places_of_truths(
    table: _Table, mined: list[Mined], forms: dict[int, StandardForm]
) -> npt.NDArray[np.int32]:
    """The truth of each list as the store has it, or standardised as its molecules are."""
    own = np.array([of_molecule.own for of_molecule in mined], np.int64)
    places = np.empty(len(mined), np.int32)
    places[own >= 0] = table.places_of_rows(own[own >= 0])
    for index in np.flatnonzero(own < 0).tolist():
        places[index] = table.place_of_form(forms[mined[index].number])
    return places


def _set_bits(packed: pa.ChunkedArray) -> tuple[Ints, npt.NDArray[np.uint16]]:
    """How many bits are set in each packed fingerprint, and which, rising."""
    counts, bits = [np.empty(0, np.int64)], [np.empty(0, np.uint16)]
    width = packed.type.byte_width
    for first in range(0, len(packed), _AT_A_TIME):
        data = b"".join(packed.slice(first, _AT_A_TIME).to_pylist())
        table = np.frombuffer(data, np.uint8).reshape(-1, width)
        # Most bytes are 0: only the others are taken apart.
        row, column = np.nonzero(table)
        which, bit = np.nonzero(np.unpackbits(table[row, column][:, None], axis=1))
        counts.append(np.bincount(row[which], minlength=len(table)))
        bits.append((8 * column[which] + bit).astype(np.uint16))
    return np.concatenate(counts), np.concatenate(bits)


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
