"""Molecules that lists bring into a prepared folder: of a database, and truths that it lacks."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mzseek.database import Database
from mzseek.errors import DatabaseError
from mzseek.prepared.reader import Prepared
from mzseek.prepared.segment import NewMolecules
from mzseek.prepared.truths import StandardForm

Ints = npt.NDArray[np.int64]
_AT_A_TIME = 65_536


class Newcomers:
    """The folder's molecules, and those that lists bring, numbered after them.

    Parameters
    ----------
    prepared : Prepared
    database : Database
    """

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

    def places_of_truths(self, own: Ints, forms: Sequence[StandardForm]) -> npt.NDArray[np.int32]:
        """Where measured molecules are as the store has them, or else in their standard form.

        Parameters
        ----------
        own : int64 array, shape (molecules,)
            Places in the store, -1 where it does not have one.
        forms : sequence of StandardForm
        """
        places = np.empty(len(own), np.int32)
        places[own >= 0] = self.places_of_rows(own[own >= 0])
        for index in np.flatnonzero(own < 0).tolist():
            places[index] = self.place_of_form(forms[index])
        return places

    def new_molecules(self) -> NewMolecules:
        """What the folder does not have yet, in the order of their places."""
        columns = ["smiles", "formula", "mass", "key", "fingerprint"]
        new = self.database.rows(np.array(self.rows, np.int64), columns)
        counts, bits = set_bits(new["fingerprint"])
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


def check_same_fingerprints(prepared: Prepared, database: Database) -> None:
    """Refuse a database whose fingerprints are of another kind than the folder's.

    Raises
    ------
    DatabaseError
        They are.
    """
    own = str(prepared.manifest["options"]["fingerprint"])
    if own != database.fingerprint:
        raise DatabaseError(
            f"{database.folder}: has {database.fingerprint} fingerprints, and "
            f"{prepared.folder} has {own}; build one with --fingerprint {own}"
        )


def set_bits(packed: pa.ChunkedArray) -> tuple[Ints, npt.NDArray[np.uint16]]:
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
