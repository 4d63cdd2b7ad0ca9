"""Candidate lists added to a prepared folder: hard negatives, extra molecules."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rdkit.Chem import Mol

from mzseek.chem.fingerprint_kinds import molecule_rows
from mzseek.chem.molecules import DescribedMolecule, describe_molecules, parse_molecule, standardise
from mzseek.core.errors import CacheError, DatabaseError, MoleculeError
from mzseek.core.ragged import pointers
from mzseek.database import Database
from mzseek.database.negatives import Mined, Truth, mine
from mzseek.database.records import packed
from mzseek.datasets.layout import SAME_FINGERPRINT, SAME_INCHIKEY, base_count
from mzseek.datasets.prepare import NewMolecules, append_segment, held_for_lists
from mzseek.datasets.prepared import CandidateLists, Prepared
from mzseek.parallel import Engine, LocalEngine, Progress, silent

_BATCH = 500


@dataclass(frozen=True)
class StandardForm:
    """A measured molecule, standardised.

    Attributes
    ----------
    described : DescribedMolecule
    bits : uint16 array
        Set bits of its fingerprint, rising.
    """

    described: DescribedMolecule
    bits: npt.NDArray[np.uint16]


def standard_forms(
    prepared: Prepared,
    *,
    keep_stereo: bool = False,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> dict[int, StandardForm]:
    """Every measured molecule of a folder as a database would have it, by its number.

    Those that cannot be standardised, which no database has, are left out.

    Parameters
    ----------
    prepared : Prepared
    keep_stereo : bool
        As the database does.
    engine : Engine
        Where the work is done; all cores of this machine by default.
    progress : callable of (stage, done, total)

    Raises
    ------
    CacheError
        None can be.
    """
    measured = np.unique(np.asarray(prepared.molecule)).tolist()
    smiles = [prepared.smiles[molecule] for molecule in measured]
    batches = [smiles[start : start + _BATCH] for start in range(0, len(smiles), _BATCH)]
    kind = str(prepared.manifest["options"]["fingerprint"])
    work = partial(_standardised, kind=kind, keep_stereo=keep_stereo)
    forms: list[StandardForm | None] = []
    for batch in (engine or LocalEngine()).results(work, batches):
        forms += batch
        progress("standardising", len(forms), len(smiles))
    known = {m: form for m, form in zip(measured, forms, strict=True) if form is not None}
    if not known:
        raise CacheError(f"{prepared.folder}: none of its molecules can be standardised")
    return known


def truths_of(forms: dict[int, StandardForm], kind: str) -> list[Truth]:
    """Molecules as mining takes them.

    Parameters
    ----------
    forms : dict of int to StandardForm
    kind : str
        Fingerprint.
    """
    rows = packed([form.bits for form in forms.values()], kind).to_pylist()
    described = [form.described for form in forms.values()]
    return [
        Truth(number, molecule.rounded_mass, molecule.formula, molecule.key, row)
        for number, molecule, row in zip(forms, described, rows, strict=True)
    ]


def _standardised(smiles: Sequence[str], kind: str, keep_stereo: bool) -> list[StandardForm | None]:
    molecules: list[Mol | None] = []
    for text in smiles:
        try:
            molecules.append(standardise(parse_molecule(text), keep_stereo=keep_stereo))
        except MoleculeError:
            molecules.append(None)
    rows = molecule_rows(molecules, kind, threads=1)
    described = iter(describe_molecules([each for each in molecules if each is not None]))
    return [
        None if molecule is None else StandardForm(next(described), row)
        for molecule, row in zip(molecules, rows, strict=True)
    ]


Ints = npt.NDArray[np.int64]
_AT_A_TIME = 65_536


class ExtraMolecules:
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
            inchikey14=np.array([key[:14] if "=" not in key else "" for key in keys], dtype="S14"),
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
    table = ExtraMolecules(prepared, database)
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
    identity = np.full(len(molecules), SAME_FINGERPRINT | SAME_INCHIKEY, np.uint8)
    is_other = np.ones(len(molecules), bool)
    is_other[indptr[:-1]] = False
    molecules[indptr[:-1]] = truths
    molecules[is_other] = negatives
    # The store's key is the identity; a molecule that the folder has as the truth's SMILES
    # under another key cannot be: equal SMILES have equal keys.
    alike = np.concatenate([of_molecule.similarities for of_molecule in mined])
    identity[is_other] = np.where(alike == 1, SAME_FINGERPRINT, 0)
    list_of = np.full(base_count(prepared.manifest, "molecules"), -1, np.int32)
    list_of[[of_molecule.number for of_molecule in mined]] = np.arange(len(mined))
    return CandidateLists(indptr, molecules, identity, list_of)
