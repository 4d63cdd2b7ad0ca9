"""Candidate lists of hard negatives, added to a prepared folder for training.

They are named after how they were made, ``hard-mass-256`` or ``random-formula-64``. Models are
trained on them and measured on the lists that came with the data.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rdkit import Chem

from mzseek.chem import pack_rows
from mzseek.chem.standard import standardise
from mzseek.database import Database
from mzseek.database.negatives import Mined, Truth, mine
from mzseek.database.rows import fingerprint_bytes
from mzseek.errors import CacheError, DatabaseError
from mzseek.files import sole_writer
from mzseek.files.owned import ensure_replaceable
from mzseek.prepared.layout import (
    KIND,
    SAME_BLOCK,
    SAME_FINGERPRINT,
    Array,
    is_leftover,
    own_count,
    path_of,
)
from mzseek.prepared.reader import CandidateLists, Prepared
from mzseek.prepared.segment import NewMolecules, append_segment
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
        Of the new lists: ``name``, ``lists``, ``median``, ``mean``, ``largest``, ``alone``.

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
    measured = np.unique(np.asarray(prepared.molecule)).astype(np.int64)
    found = mine(
        database, truths_of(prepared, measured), by=by, keep=keep - 1, kind=kind, ppm=ppm,
        seed=seed, engine=engine, progress=progress,
    )  # fmt: skip
    mined = sorted(found, key=lambda of_molecule: of_molecule.number)
    rows = np.unique(
        np.concatenate([np.empty(0, np.int64), *(of_molecule.rows for of_molecule in mined)])
    )
    progress("adding", 0)
    molecules, places = _new_molecules(prepared, database, rows)
    lists = _lists(prepared, mined, rows, places)
    facts = {
        "lists": len(mined),
        "candidates": len(lists.molecules),
        "median": float(np.median(lists.sizes)),
        "mean": float(lists.sizes.mean()),
        "largest": int(lists.sizes.max()),
        "molecules_without": 0,
        "alone": int((lists.sizes == 1).sum()),
        "negatives": {
            "by": by, "kind": kind, "keep": keep, "ppm": ppm, "seed": seed,
            "database": database.manifest["files"]["molecules.parquet"]["sha256"],
        },
    }  # fmt: skip
    return append_segment(prepared, name, lists, molecules, facts), {"name": name, **facts}


def truths_of(prepared: Prepared, measured: Ints) -> list[Truth]:
    """Molecules of a prepared folder, as mining takes them."""
    rows = prepared.fingerprint_rows(measured)
    packed = pack_rows(rows)
    width = fingerprint_bytes(str(prepared.manifest["options"]["fingerprint"]))
    packed = np.pad(packed, ((0, 0), (0, width - packed.shape[1])))
    return [
        Truth(
            int(molecule),
            float(prepared.masses[molecule]),
            prepared.formulas[int(molecule)],
            _key(prepared, int(molecule)),
            packed[place].tobytes(),
        )
        for place, molecule in enumerate(measured)
    ]


def _key(prepared: Prepared, molecule: int) -> str:
    """The store's key of a molecule: where InChI has no name, its standardised SMILES."""
    try:
        block = bytes(prepared.blocks[molecule]).decode()
    except UnicodeDecodeError as error:
        where = path_of(prepared.folder, Array.BLOCK)
        raise CacheError(f"{where}: entry {molecule:,} is no text") from error
    return block or f"SMILES={Chem.MolToSmiles(standardise(prepared.smiles[molecule]))}"


def _new_molecules(
    prepared: Prepared, database: Database, rows: Ints
) -> tuple[NewMolecules, npt.NDArray[np.int32]]:
    """Molecules of the store that the folder does not have yet, and where each row is in it."""
    place_of = {smiles: place for place, smiles in enumerate(prepared.smiles)}
    places = np.empty(len(rows), np.int32)
    total = len(prepared.masses)
    fresh: list[int] = []
    for index, smiles in enumerate(database.rows(rows, ["smiles"])["smiles"].to_pylist()):
        place = place_of.get(smiles)
        if place is None:
            place = place_of[smiles] = total + len(fresh)
            fresh.append(index)
        places[index] = place
    new = database.rows(rows[fresh], ["smiles", "formula", "mass", "key", "fingerprint"])
    keys = new["key"].to_pylist()
    counts, bits = _set_bits(new["fingerprint"])
    molecules = NewMolecules(
        smiles=new["smiles"].to_pylist(),
        formulas=new["formula"].to_pylist(),
        masses=new["mass"].to_numpy(),
        blocks=np.array([key[:14] if "=" not in key else "" for key in keys], dtype="S14"),
        bit_counts=counts,
        bits=bits,
    )
    return molecules, places


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
    prepared: Prepared, mined: list[Mined], rows: Ints, places: npt.NDArray[np.int32]
) -> CandidateLists:
    """Lists with the truth first, and in what sense each candidate is it."""
    indptr = pointers([1 + len(of_molecule.rows) for of_molecule in mined])
    truth = np.array([of_molecule.number for of_molecule in mined], np.int64)
    molecules = np.empty(int(indptr[-1]), np.int32)
    identity = np.full(len(molecules), SAME_FINGERPRINT | SAME_BLOCK, np.uint8)
    is_other = np.ones(len(molecules), bool)
    is_other[indptr[:-1]] = False
    molecules[indptr[:-1]] = truth
    others = np.concatenate([np.empty(0, np.int64), *(of_molecule.rows for of_molecule in mined)])
    molecules[is_other] = places[np.searchsorted(rows, others)]
    # The store's key is the identity; a molecule that the folder has as the truth's SMILES
    # under another key cannot be: equal SMILES have equal keys.
    alike = np.concatenate([np.empty(0), *(of_molecule.similarities for of_molecule in mined)])
    identity[is_other] = np.where(alike == 1, SAME_FINGERPRINT, 0)
    list_of = np.full(own_count(prepared.manifest, "molecules"), -1, np.int32)
    list_of[truth] = np.arange(len(mined))
    return CandidateLists(indptr, molecules, identity, list_of)
