"""Building a store, and adding to one."""

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rdkit import rdBase

from mzseek.chem.fingerprinting import fingerprint_kind
from mzseek.chem.fingerprinting.registry import kept_version
from mzseek.database.folder import (
    COLUMNS,
    KIND,
    MANIFEST,
    MASSES,
    MOLECULES,
    REJECTS,
)
from mzseek.database.merge import MergedPart, merge_parts
from mzseek.database.nearest import build_index
from mzseek.database.parts import Parts, describe_all
from mzseek.database.places import build_places
from mzseek.database.record import Sources
from mzseek.database.rows import part_schema
from mzseek.database.store import Database
from mzseek.errors import DatabaseError, InputError, WriteError
from mzseek.files import StrPath, atomic_directory, sole_writer
from mzseek.files.arrays import save_array
from mzseek.files.fault import naming_output
from mzseek.files.owned import ensure_replaceable
from mzseek.files.steady import SteadySources
from mzseek.files.streams.cells import free_cell
from mzseek.version import __version__
from mzseek.work import Engine, LocalEngine, Progress, silent


def build_database(
    sources: Sources,
    out: StrPath,
    *,
    fingerprint: str = "morgan2",
    nearest: bool = True,
    keep_stereo: bool = False,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> Database:
    """Build a store from lists of molecules.

    Interrupted, it goes on where it was when it is called again with the same sources and options:
    described molecules lie in a folder beside ``out`` until the store is whole.

    Parameters
    ----------
    sources : Sources
    out : Path
        Folder to make; one that mzseek has made is replaced.
    fingerprint : str
    nearest : bool
        Also make the index of bits for nearest neighbours and mining: 514 bytes a molecule, and
        up to 65,535 molecules more, to fill its last block.
    keep_stereo : bool
        In SMILES, as the first record of a molecule has it. What is one molecule does not change.
    engine : Engine
        Where molecules are described; all cores of this machine by default.
    progress : callable of (stage, done, total)

    Returns
    -------
    Database

    Raises
    ------
    DatabaseError, InputError
        No molecule could be read, or a source has changed while it was read.
    BusyError, WriteError
        Another process is writing the folder, it cannot be written, or the disk is full.
    """
    out = Path(out)
    fingerprint_kind(fingerprint)
    with sole_writer(out, "building a database"):
        ensure_replaceable(out, KIND, sources.files)
        options = _StoreOptions(fingerprint, nearest, keep_stereo)
        return _make(sources, out, None, options, engine or LocalEngine(), progress)


def add_molecules(
    database: Database,
    sources: Sources,
    *,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> Database:
    """Add molecules to a store: a new one is made beside it, and takes its place when it is whole.

    Whoever has the old one open goes on reading it.

    Returns
    -------
    Database
        The store with both.

    Raises
    ------
    DatabaseError, InputError, BusyError, WriteError
        As in `build_database`; or the store is damaged, or another one has taken its place since
        it was opened.
    """
    manifest, folder = database.manifest, database.folder
    with sole_writer(folder, "adding molecules"):
        if Database.open(folder).manifest != manifest:
            raise DatabaseError(f"{folder}: was replaced since it was opened; open it again")
        database.check((MOLECULES, REJECTS))  # what is copied gets a new checksum
        has_index = bool(manifest["options"]["nearest"])
        options = _StoreOptions(database.fingerprint, has_index, database.keep_stereo)
        return _make(sources, folder, database, options, engine or LocalEngine(), progress)


@dataclass(frozen=True)
class _StoreOptions:
    fingerprint: str
    nearest: bool
    keep_stereo: bool


def _make(
    sources: Sources,
    out: Path,
    old: Database | None,
    options: _StoreOptions,
    engine: Engine,
    progress: Progress,
) -> Database:
    unread: list[tuple[str, str]] = []
    steady = SteadySources(sources.files)
    # Files are looked into here: those that will not do leave no trace.
    records = sources.read(lambda where, reason: unread.append((where, reason)))
    plan = {
        "fingerprint": options.fingerprint,
        "keep_stereo": options.keep_stereo,
        "sources": [{"name": path.name, "sha256": steady.hashes[path]} for path in sources.files],
        "reading": sources.options,
        "versions": {
            "mzseek": __version__, "rdkit": rdBase.rdkitVersion,
            **kept_version(options.fingerprint),
        },
        "on": old.manifest["files"][MOLECULES]["sha256"] if old else None,
    }  # fmt: skip
    out = out.resolve()
    working = out.with_name(f".{out.name}.building")
    try:
        with naming_output(out):
            parts = Parts(working, plan)
            total = None if progress is silent else _count(sources, progress)
            chunks, read = describe_all(
                records, options.fingerprint, parts, engine, progress, total,
                keep_stereo=options.keep_stereo, before_writing=steady.ensure_unchanged,
            )  # fmt: skip
            rejects = [*unread, *parts.read_rejects(chunks)]
            with atomic_directory(out) as folder:
                described = [parts.read(chunk) for chunk in range(chunks)]
                new = _counted(described, read, len(rejects) - len(unread), out)
                _fill(folder, described, new, old, options, plan, rejects, progress)
                steady.ensure_unchanged()
    except WriteError:
        raise  # what has been described is kept for when there is room
    except (DatabaseError, InputError):
        shutil.rmtree(working, ignore_errors=True)  # it would not do the next time either
        raise
    shutil.rmtree(working, ignore_errors=True)
    return Database.open(out)


def _count(sources: Sources, progress: Progress) -> int:
    count = 0
    for count, _ in enumerate(sources.read(_unheard), 1):
        if count % 10_000 == 0:  # of a hundred million it takes minutes
            progress("counting", count)
    return count


def _counted(parts: Sequence[MergedPart], records: int, rejects: int, out: Path) -> int:
    """Molecules in the parts, which must hold what was read, no more and no less."""
    described = sum(len(part.masses) for part in parts)
    if described + rejects != records:
        raise DatabaseError(
            f"{out}: its parts hold {described:,} molecules and {rejects:,} rejects, and "
            f"{records:,} records were read; build it again"
        )
    return described


def _unheard(where: str, reason: str) -> None:
    """Counting, not reading."""


def _fill(
    folder: Path,
    parts: Sequence[MergedPart],
    new: int,
    old: Database | None,
    options: _StoreOptions,
    plan: dict[str, Any],
    rejects: Sequence[tuple[str, str]],
    progress: Progress,
) -> None:
    pieces: list[MergedPart] = [*([_StoredPart(old)] if old else []), *parts]
    if not new and not old:
        first = f" (first: {rejects[0][0]}: {rejects[0][1]})" if rejects else ""
        raise DatabaseError(f"no molecule could be read{first}")
    molecules = folder / MOLECULES
    masses = merge_parts(pieces, part_schema(options.fingerprint), molecules, progress)
    save_array(folder / MASSES, masses)
    build_places(molecules, folder, progress)
    before = old.manifest["counts"] if old else {"records": 0, "rejects": 0}
    listed = old.rejects_text() if old else "where\treason\n"
    listed += "".join(f"{free_cell(where)}\t{free_cell(why)}\n" for where, why in rejects)
    (folder / REJECTS).write_text(listed, encoding="utf-8")
    records = new + len(rejects) + before["records"]
    set_aside = before["rejects"] + len(rejects)
    if options.nearest:
        build_index(molecules, folder, progress)
    counts = {
        "molecules": len(masses),
        "records": records,
        "merged": records - set_aside - len(masses),
        "rejects": set_aside,
    }
    _write_manifest(folder, options, plan, counts, old.manifest["sources"] if old else [])
    Database.open(folder).check_form()


def _write_manifest(
    folder: Path,
    options: _StoreOptions,
    plan: dict[str, Any],
    counts: dict[str, int],
    earlier: list[Any],
) -> None:
    facts = {
        "options": {
            **asdict(options),
            "fingerprint_bits": fingerprint_kind(options.fingerprint).bits,
        },
        "sources": [*earlier, *plan["sources"]],
        "versions": plan["versions"],
        "counts": counts,
    }
    MANIFEST.write(folder, facts)


class _StoredPart:
    """The molecules of a store as one more part, before all others."""

    def __init__(self, store: Database) -> None:
        self._store = store

    @property
    def masses(self) -> npt.NDArray[np.float64]:
        return self._store.masses

    def rows(self, start: int, end: int) -> pa.Table:
        table = self._store.range(start, end, [*COLUMNS, "bits", "fingerprint"])
        schema = part_schema(self._store.fingerprint)
        table = table.append_column("place", pa.array([-1] * table.num_rows, pa.int64()))
        return table.select(schema.names).cast(schema)
