"""Build a database: describe molecules in parts, sort, merge, write.

Sorting and merging are written here, by slices of mass: memory stays bounded, and the bytes of a
store depend neither on chunks nor on processes, which no parallel sort of a library promises.
"""

import hashlib
import json
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rdkit import rdBase

from mzseek.chem.fingerprinting import fingerprint_kind, manifest_version
from mzseek.core.errors import DatabaseError, InputError, WriteError
from mzseek.core.ragged import pointers
from mzseek.database.nearest import build_index
from mzseek.database.records import (
    DescribedBatch,
    MoleculeRecord,
    RecordsAt,
    Sources,
    describe_records,
    part_schema,
)
from mzseek.database.store import (
    COLUMNS,
    KIND,
    MANIFEST,
    MASSES,
    MOLECULES,
    Database,
    build_entries,
)
from mzseek.io import StrPath, atomic_directory, atomic_file, content_hash, read_object, sole_writer
from mzseek.io.arrays import save_array
from mzseek.io.manifest import SourceGuard, check_fields, ensure_replaceable
from mzseek.io.skipped import SKIPPED_FILE, reporter, write_skipped
from mzseek.io.writing import disk_errors
from mzseek.parallel import Engine, LocalEngine, Progress, silent
from mzseek.version import __version__

BATCH = 1_000
CHUNK = 20 * BATCH
ROWS = 512  # that are read at a time when chunks are merged
ROW_GROUP = 4_096
_SLICE = 50_000  # rows that are sorted and merged at a time
_SAMPLE = 512
_LISTS = ("sources", "identifiers", "names")
_PLAN = "plan.json"
Floats = npt.NDArray[np.float64]
_PART_FIELDS = {
    "plan": str, "chunk": int, "records": int, "molecules": int, "sha256": str, "rejects": [[str]],
}  # fmt: skip


class Part(NamedTuple):
    """Described molecules, sorted by mass.

    Attributes
    ----------
    masses : float64 array
        Rising.
    rows : callable of (start, end)
        Reads the molecules of these rows.
    """

    masses: Floats
    rows: Callable[[int, int], pa.Table]


def _arrow_part(path: Path) -> Part:
    """Open a described chunk on disk."""

    def opened(options: Any = None) -> Any:
        # Not memory-mapped: pages that were read would count as this process's own.
        return pa.ipc.open_file(pa.OSFile(str(path), "rb"), options=options)

    def rows(start: int, end: int) -> pa.Table:
        first = start // ROWS
        with _readable(path):
            file = opened()
            batches = [file.get_batch(number) for number in range(first, -(-end // ROWS))]
            return pa.Table.from_batches(batches, file.schema).slice(
                start - first * ROWS, end - start
            )

    with _readable(path):
        column = [opened().schema.get_field_index("mass")]
        masses = opened(pa.ipc.IpcReadOptions(included_fields=column)).read_all()["mass"]
    return Part(masses.to_numpy(), rows)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        raise DatabaseError(f"{path}: cannot be read ({error})") from error


def _stored_part(store: Database) -> Part:
    """Return the molecules of a store as a part that precedes all others."""
    schema = part_schema(store.fingerprint)

    def rows(start: int, end: int) -> pa.Table:
        table = store.range(start, end, [*COLUMNS, "bits", "fingerprint"])
        table = table.append_column("place", pa.array([-1] * table.num_rows, pa.int64()))
        return table.select(schema.names).cast(schema)

    return Part(store.masses, rows)


class Parts:
    """Folder of an unfinished build, with the described molecules of each chunk.

    The plan names sources, options and versions: parts of another plan are removed.
    """

    def __init__(self, folder: Path, plan: dict[str, Any]) -> None:
        self.folder = folder
        self.key = hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()
        path = folder / _PLAN
        try:
            folder.mkdir(parents=True, exist_ok=True)
            try:
                written_plan = read_object(path, DatabaseError)
            except DatabaseError:
                written_plan = None
            if written_plan != plan:
                for old in folder.iterdir():
                    shutil.rmtree(old) if old.is_dir() else old.unlink()
                with atomic_file(path) as written:
                    written.write_text(json.dumps(plan), encoding="utf-8")
        except OSError as error:
            raise WriteError(folder, f"cannot be made ({error.strerror})") from error

    def arrow(self, chunk: int) -> Path:
        """Return the path of a chunk's molecules."""
        return self.folder / f"part-{chunk:06d}.arrow"

    def skipped_path(self, chunk: int) -> Path:
        """Return the path of a chunk's skipped records and metadata."""
        return self.folder / f"part-{chunk:06d}.rejects.json"

    def done(self, chunk: int, records: int) -> bool:
        """Whether a chunk of so many records has been described and is intact."""
        try:
            metadata = self._metadata(chunk)
        except DatabaseError:  # a kill while parts were being removed may have left either file
            return False
        accounted = metadata["molecules"] + len(metadata["rejects"])
        return (
            metadata["records"] == accounted == records
            and self.arrow(chunk).is_file()
            and content_hash(self.arrow(chunk)) == metadata["sha256"]
        )

    def write(self, chunk: int, batches: list[DescribedBatch]) -> None:
        """Write a chunk."""
        table = pa.concat_tables([batch.table for batch in batches]).combine_chunks()
        table = table.take(pc.sort_indices(table, [("mass", "ascending"), ("place", "ascending")]))
        skipped = [list(reject) for batch in batches for reject in batch.skipped]
        with atomic_file(self.arrow(chunk)) as path:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table, max_chunksize=ROWS)
            metadata = {
                "plan": self.key,
                "chunk": chunk,
                "records": table.num_rows + len(skipped),
                "molecules": table.num_rows,
                "sha256": content_hash(path),
                "rejects": skipped,
            }
            with atomic_file(self.skipped_path(chunk)) as beside:
                beside.write_text(json.dumps(metadata), encoding="utf-8")

    def read(self, chunk: int) -> Part:
        """Open a chunk's molecules."""
        return _arrow_part(self.arrow(chunk))

    def read_skipped(self, chunks: int) -> Iterator[tuple[str, str]]:
        """Yield skipped records in the order of the sources."""
        for chunk in range(chunks):
            yield from ((where, reason) for where, reason in self._metadata(chunk)["rejects"])

    def _metadata(self, chunk: int) -> dict[str, Any]:
        path, again = self.skipped_path(chunk), "build it again"
        metadata = read_object(path, DatabaseError, again)
        check_fields(metadata, _PART_FIELDS, path, DatabaseError, again)
        if (metadata["plan"], metadata["chunk"]) != (self.key, chunk):
            raise DatabaseError(f"{path}: is a part of another build; {again}")
        if any(len(pair) != 2 for pair in metadata["rejects"]):
            raise DatabaseError(f"{path}: is damaged (rejects without a reason); {again}")
        return metadata


def describe_all(
    records: Iterable[MoleculeRecord],
    kind: str,
    parts: Parts,
    engine: Engine,
    progress: Progress,
    total: int | None = None,
    *,
    keep_stereo: bool = False,
    before_writing: Callable[[], None] = lambda: None,
) -> tuple[int, int]:
    """Describe every record into parts; return the numbers of chunks and of records.

    Chunks that an earlier, interrupted build has described are skipped.
    """
    submitted: deque[tuple[int, bool]] = deque()  # chunk of each batch, and if it is the last
    chunks = done = read = 0

    def batches() -> Iterator[RecordsAt]:
        nonlocal chunks, done, read
        stream = iter(records)
        while chunk_records := list(islice(stream, CHUNK)):
            chunk, chunks, read = chunks, chunks + 1, read + len(chunk_records)
            if parts.done(chunk, len(chunk_records)):
                done += len(chunk_records)
                continue
            for start in range(0, len(chunk_records), BATCH):
                submitted.append((chunk, start + BATCH >= len(chunk_records)))
                yield RecordsAt(chunk_records[start : start + BATCH], chunk * CHUNK + start)

    gathered: list[DescribedBatch] = []
    work = partial(describe_records, kind=kind, keep_stereo=keep_stereo)
    for result in engine.results(work, batches()):
        chunk, is_last = submitted.popleft()
        gathered.append(result)
        done += result.table.num_rows + len(result.skipped)
        progress("molecules", done, total)
        if is_last:
            before_writing()
            parts.write(chunk, gathered)
            gathered = []
    return chunks, read


def merge_parts(parts: Sequence[Part], schema: pa.Schema, path: Path, progress: Progress) -> Floats:
    """Write the molecules of all parts, which have this schema, into one Parquet file.

    Molecules with the same key and mass are one, described as by the record that came first, with
    the sources, identifiers and names of all. Returns their masses.
    """
    schema = schema.remove(schema.get_field_index("place"))
    masses = [part.masses for part in parts]
    total, seen = sum(map(len, masses)), 0
    written: list[Floats] = []
    waiting = schema.empty_table()
    with pq.ParquetWriter(
        path, schema, compression="zstd", compression_level=6, write_page_index=True,
        use_dictionary=["formula", "sources.list.element"],
        write_statistics=["mass", "formula", "key"],
    ) as writer:  # fmt: skip
        for low, high in _slices(masses, total):
            runs = [np.searchsorted(of_part, [low, high]).tolist() for of_part in masses]
            rows = [part.rows(*run) for part, run in zip(parts, runs, strict=True)]
            piece = merge_equal(pa.concat_tables(rows)).drop_columns(["place"])
            written.append(piece["mass"].to_numpy())
            waiting = pa.concat_tables([waiting, piece]).combine_chunks()
            whole = waiting.num_rows - waiting.num_rows % ROW_GROUP
            if whole:
                writer.write_table(waiting.slice(0, whole), row_group_size=ROW_GROUP)
                waiting = waiting.slice(whole).combine_chunks()
            seen += sum(end - start for start, end in runs)
            progress("merging", seen, total)
        if waiting.num_rows:
            writer.write_table(waiting, row_group_size=ROW_GROUP)
    if seen != total:  # masses that do not rise, or are no numbers, fall between the slices
        raise DatabaseError(
            f"{seen:,} of {total:,} described molecules were merged; build it again"
        )
    return np.concatenate([np.empty(0), *written])


def merge_equal(table: pa.Table) -> pa.Table:
    """Sort rows by mass, key and place, and merge those of one key and mass."""
    order = [("mass", "ascending"), ("key", "ascending"), ("place", "ascending")]
    table = table.take(pc.sort_indices(table, order)).combine_chunks()
    if table.num_rows < 2:
        return table
    mass = table["mass"].to_numpy()
    key = table["key"].combine_chunks()
    same_key = pc.equal(key[1:], key[:-1]).to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(np.concatenate([[True], ~same_key | (np.diff(mass) != 0)]))
    if len(starts) == table.num_rows:
        return table
    first = table.take(starts).combine_chunks()
    borders = np.append(starts, table.num_rows)
    for name in _LISTS:
        lists = _joined(table[name].combine_chunks(), borders)
        first = first.set_column(
            first.schema.get_field_index(name), first.schema.field(name), lists
        )
    return first


def _joined(lists: pa.ListArray, borders: npt.NDArray[np.int64]) -> pa.ListArray:
    """Concatenate the lists of each run of rows, without duplicates."""
    offsets = lists.offsets.to_numpy()[borders].astype(np.int64)
    values = lists.values
    several = np.flatnonzero((np.diff(borders) > 1) & (np.diff(offsets) > 1))
    if len(several):
        keep = np.ones(len(values), bool)
        for run in several:
            low, high = int(offsets[run]), int(offsets[run + 1])
            seen: set[str] = set()
            for index, value in enumerate(values[low:high].to_pylist(), low):
                keep[index] = value not in seen
                seen.add(value)
        kept_before = pointers(keep)
        offsets, values = kept_before[offsets], values.filter(pa.array(keep))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def _slices(masses: Sequence[Floats], total: int) -> Iterator[tuple[float, float]]:
    """Yield ranges of mass with about equally many rows; equal masses are never separated."""
    sample = np.sort(np.concatenate([np.empty(0), *(of_part[::_SAMPLE] for of_part in masses)]))
    parts = max(1, -(-total // _SLICE))
    cuts: list[float] = []
    if len(sample):
        cuts = np.unique(sample[(np.arange(1, parts) * len(sample)) // parts]).tolist()
    yield from pairwise([-np.inf, *cuts, np.inf])


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

    An interrupted build continues when it is called again with the same sources and options:
    described molecules are in a folder beside ``out`` until the store is complete.

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
        In SMILES, as in the first record of a molecule. The identity of molecules does not change.
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
        options = {"fingerprint": fingerprint, "nearest": nearest, "keep_stereo": keep_stereo}
        return _make(sources, out, None, options, engine or LocalEngine(), progress)


def add_molecules(
    database: Database,
    sources: Sources,
    *,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> Database:
    """Add molecules to a store: a new one is made beside it and replaces it when it is complete.

    Processes that have the old one open continue to read it.

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
        database.check((MOLECULES, SKIPPED_FILE))  # what is copied gets a new checksum
        names = ("fingerprint", "nearest", "keep_stereo")
        options = {name: manifest["options"][name] for name in names}
        return _make(sources, folder, database, options, engine or LocalEngine(), progress)


def _make(
    sources: Sources,
    out: Path,
    old: Database | None,
    options: dict[str, Any],
    engine: Engine,
    progress: Progress,
) -> Database:
    """Describe the molecules of sources, merge them with an old store's, write the new store."""
    unread: list[tuple[str, str]] = []
    guard = SourceGuard(sources.files)
    # Opens the files, so that unusable ones are refused before anything is written.
    records = sources.read(reporter(unread))
    fingerprint = str(options["fingerprint"])
    plan = {
        "fingerprint": fingerprint,
        "keep_stereo": options["keep_stereo"],
        "sources": [{"name": path.name, "sha256": guard.hashes[path]} for path in sources.files],
        "reading": sources.options,
        "versions": {
            "mzseek": __version__, "rdkit": rdBase.rdkitVersion, **manifest_version(fingerprint),
        },
        "on": old.manifest["files"][MOLECULES]["sha256"] if old else None,
    }  # fmt: skip
    out = out.resolve()
    working = out.with_name(f".{out.name}.building")
    try:
        with disk_errors(out):
            parts = Parts(working, plan)
            total = None if progress is silent else _count(sources, progress)
            chunks, read = describe_all(
                records, fingerprint, parts, engine, progress, total,
                keep_stereo=options["keep_stereo"], before_writing=guard.ensure_unchanged,
            )  # fmt: skip
            refused = list(parts.read_skipped(chunks))
            described = [parts.read(chunk) for chunk in range(chunks)]
            new = sum(len(part.masses) for part in described)
            if new + len(refused) != read:
                raise DatabaseError(
                    f"{out}: its parts hold {new:,} molecules and {len(refused):,} rejects, and "
                    f"{read:,} records were read; build it again"
                )
            skipped = [*unread, *refused]
            if not new and not old:
                first = f" (first: {skipped[0][0]}: {skipped[0][1]})" if skipped else ""
                raise DatabaseError(f"no molecule could be read{first}")
            with atomic_directory(out) as folder:
                _write(folder, described, new, old, options, plan, skipped, progress)
                guard.ensure_unchanged()
    except WriteError:
        raise  # described molecules are kept until there is room
    except (DatabaseError, InputError):
        shutil.rmtree(working, ignore_errors=True)  # the next attempt would fail as well
        raise
    shutil.rmtree(working, ignore_errors=True)
    return Database.open(out)


def _count(sources: Sources, progress: Progress) -> int:
    count = 0
    for count, _ in enumerate(sources.read(lambda where, reason: None), 1):
        if count % 10_000 == 0:  # of a hundred million it takes minutes
            progress("counting", count)
    return count


def _write(
    folder: Path,
    parts: Sequence[Part],
    new: int,
    old: Database | None,
    options: dict[str, Any],
    plan: dict[str, Any],
    skipped: Sequence[tuple[str, str]],
    progress: Progress,
) -> None:
    """Write all files of a store."""
    molecules = folder / MOLECULES
    schema = part_schema(options["fingerprint"])
    stored = [_stored_part(old)] if old else []
    masses = merge_parts([*stored, *parts], schema, molecules, progress)
    save_array(folder / MASSES, masses)
    build_entries(molecules, folder, progress)
    write_skipped(folder / SKIPPED_FILE, [*(old.skipped if old else ()), *skipped])
    if options["nearest"]:
        build_index(molecules, folder, progress)
    before = old.manifest["counts"] if old else {"records": 0, "rejects": 0}
    records = new + len(skipped) + before["records"]
    skipped_count = before["rejects"] + len(skipped)
    metadata = {
        "options": {**options, "fingerprint_bits": fingerprint_kind(options["fingerprint"]).bits},
        "sources": [*(old.manifest["sources"] if old else []), *plan["sources"]],
        "versions": plan["versions"],
        "counts": {
            "molecules": len(masses),
            "records": records,
            "merged": records - skipped_count - len(masses),
            "rejects": skipped_count,
        },
    }
    MANIFEST.write(folder, metadata)
    Database.open(folder).check_form()
