"""Candidate lists of hard negatives, added to a prepared folder for training.

They are named after how they were made, ``hard-mass-256`` or ``random-formula-64``. Models are
trained on them and measured on the lists that came with the data.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rdkit import Chem
from scipy.sparse import csr_array

from mzseek.chem import pack_rows
from mzseek.chem.standard import standardise
from mzseek.database import Database
from mzseek.database.negatives import Mined, Truth, mine
from mzseek.database.rows import fingerprint_bytes
from mzseek.errors import CacheError, DatabaseError
from mzseek.files import atomic_directory, sole_writer
from mzseek.files.arrays import save_array
from mzseek.files.owned import ensure_replaceable
from mzseek.prepared.layout import KIND, MANIFEST
from mzseek.prepared.reader import SAME_BLOCK, SAME_FINGERPRINT, Prepared
from mzseek.prepared.text_column import TextColumn
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

    The folder is replaced by one that has the same arrays, longer where molecules were added, so
    that runs made with it stay valid.

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
    own = str(prepared.manifest["options"]["fingerprint"])
    if own != database.fingerprint:
        raise DatabaseError(
            f"{database.folder}: has {database.fingerprint} fingerprints, and "
            f"{prepared.folder} has {own}; build one with --fingerprint {own}"
        )
    if keep < 2:
        raise DatabaseError(f"--keep is {keep}, expected at least 2: the truth and a negative")
    name = negatives_name(kind, by, keep)
    if name in prepared.measured_settings:
        raise CacheError(
            f"{prepared.folder}: has lists {name!r} that came with the data; name another --keep"
        )
    with sole_writer(prepared.folder, "adding negatives"):
        ensure_replaceable(prepared.folder, KIND, [])
        if Prepared.open(prepared.folder).manifest != prepared.manifest:
            raise CacheError(f"{prepared.folder}: was replaced since it was opened; open it again")
        prepared.verify()  # what is copied into the new folder gets a new checksum
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
    measured = np.unique(np.asarray(prepared.molecule)).astype(np.int64)
    found = mine(
        database, truths_of(prepared, measured), by=by, keep=keep - 1, kind=kind, ppm=ppm,
        seed=seed, engine=engine, progress=progress,
    )  # fmt: skip
    mined = sorted(found, key=lambda each: each.number)
    added, place_of_row = _new_molecules(prepared, database, mined)
    lists = _lists(prepared, mined, place_of_row, added)
    facts = {
        "lists": len(mined),
        "candidates": int(lists["indptr"][-1]),
        "median": float(np.median(np.diff(lists["indptr"]))),
        "mean": float(np.diff(lists["indptr"]).mean()),
        "largest": int(np.diff(lists["indptr"]).max()),
        "molecules_without": 0,
        "alone": int((np.diff(lists["indptr"]) == 1).sum()),
        "negatives": {
            "by": by, "kind": kind, "keep": keep, "ppm": ppm, "seed": seed,
            "database": database.manifest["files"]["molecules.parquet"]["sha256"],
        },
    }  # fmt: skip
    _write(prepared, name, lists, added, facts)
    return Prepared.open(prepared.folder), {"name": name, **facts}


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
        where = prepared.folder / "molecules.block.npy"
        raise CacheError(f"{where}: entry {molecule:,} is no text") from error
    return block or f"SMILES={Chem.MolToSmiles(standardise(prepared.smiles[molecule]))}"


def _new_molecules(
    prepared: Prepared, database: Database, mined: list[Mined]
) -> tuple[dict[str, Any], dict[int, int]]:
    """Molecules of the store that the folder does not have yet, and where each row is in it."""
    rows = np.unique(np.concatenate([np.empty(0, np.int64), *(each.rows for each in mined)]))
    table = database.rows(rows, ["smiles", "formula", "mass", "key", "fingerprint", "bits"])
    known = {smiles: place for place, smiles in enumerate(prepared.smiles)}
    places: dict[int, int] = {}
    fresh: list[int] = []
    for index, (row, smiles) in enumerate(
        zip(rows.tolist(), table["smiles"].to_pylist(), strict=True)
    ):
        place = known.get(smiles)
        if place is None:
            place = len(known)
            known[smiles] = place
            fresh.append(index)
        places[row] = place
    new = table.take(np.array(fresh, np.int64))
    width = new.schema.field("fingerprint").type.byte_width
    data = b"".join(new["fingerprint"].to_pylist())
    packed = np.frombuffer(data, np.uint8).reshape(-1, width)
    bits = np.unpackbits(packed, axis=1) if len(packed) else np.empty((0, 8 * width), np.uint8)
    matrix = csr_array(bits)
    return {
        "smiles": new["smiles"].to_pylist(),
        "formulas": new["formula"].to_pylist(),
        "masses": new["mass"].to_numpy(),
        "blocks": np.array([key[:14] if "=" not in key else "" for key in
                            new["key"].to_pylist()], dtype="S14"),
        "bits": matrix.indices.astype(np.uint16),
        "counts": np.diff(matrix.indptr),
    }, places  # fmt: skip


def _lists(
    prepared: Prepared, mined: list[Mined], places: dict[int, int], added: dict[str, Any]
) -> dict[str, npt.NDArray[Any]]:
    """Lists with the truth first, and in what sense each candidate is it."""
    total = len(prepared.masses) + len(added["smiles"])
    molecules, identity, ends = [], [], [0]
    list_of = np.full(total, -1, np.int32)
    for number, each in enumerate(mined):
        members = [places[int(row)] for row in each.rows]
        # The store's key is the identity; a molecule that the folder has as the truth's SMILES
        # under another key cannot be: equal SMILES have equal keys.
        twin = each.similarities == 1
        molecules += [each.number, *members]
        identity += [SAME_FINGERPRINT | SAME_BLOCK, *np.where(twin, SAME_FINGERPRINT, 0).tolist()]
        ends.append(len(molecules))
        list_of[each.number] = number
    return {
        "indptr": np.array(ends, np.int64),
        "molecules": np.array(molecules, np.int32),
        "identity": np.array(identity, np.uint8),
        "list_of": list_of,
    }


def _write(
    prepared: Prepared,
    name: str,
    lists: dict[str, npt.NDArray[Any]],
    added: dict[str, Any],
    facts: dict[str, Any],
) -> None:
    old = prepared.folder
    changed = {
        "molecules.mass.npy", "molecules.block.npy", "molecules.smiles.data.npy",
        "molecules.smiles.ends.npy", "molecules.formula.data.npy", "molecules.formula.ends.npy",
        "fingerprints.indptr.npy", "fingerprints.bits.npy",
        *(f"candidates.{setting}.list_of.npy" for setting in prepared.settings),
    }  # fmt: skip
    with atomic_directory(old) as folder:
        for path in old.iterdir():
            # What is written anew must not be linked: it would be written into the old folder.
            is_anew = path.name in changed or path.name.startswith(f"candidates.{name}.")
            if path.name != MANIFEST.name and not is_anew:
                _link(path, folder / path.name)
        blocks = np.concatenate([np.asarray(prepared.blocks), added["blocks"]])
        save_array(folder / "molecules.mass.npy", np.append(prepared.masses, added["masses"]))
        save_array(folder / "molecules.block.npy", blocks)
        TextColumn.write(folder, "molecules.smiles", [*prepared.smiles, *added["smiles"]])
        TextColumn.write(folder, "molecules.formula", [*prepared.formulas, *added["formulas"]])
        ends = int(prepared.fingerprint_indptr[-1]) + np.cumsum(added["counts"])
        indptr = np.concatenate([prepared.fingerprint_indptr, ends])
        save_array(folder / "fingerprints.indptr.npy", indptr.astype(np.int64))
        bits = np.concatenate([prepared.fingerprint_bits, added["bits"]])
        save_array(folder / "fingerprints.bits.npy", bits)
        for setting in prepared.settings:
            longer = np.full(len(blocks), -1, np.int32)
            earlier = prepared.candidates(setting).list_of
            longer[: len(earlier)] = earlier
            save_array(folder / f"candidates.{setting}.list_of.npy", longer)
        for part, array in lists.items():
            save_array(folder / f"candidates.{name}.{part}.npy", array)
        manifest = json.loads(json.dumps(prepared.manifest))
        manifest["candidates"][name] = facts
        manifest["counts"]["molecules"] = len(blocks)
        manifest["counts"]["fingerprint_bits_set"] = len(bits)
        kept = {
            each: facts for each, facts in manifest["files"].items()
            if each not in changed and not each.startswith(f"candidates.{name}.")
        }  # fmt: skip
        MANIFEST.write(folder, manifest, known=kept)
        Prepared.open(folder).check_arrays()


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
