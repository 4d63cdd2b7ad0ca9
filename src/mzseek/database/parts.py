"""The first half of a build: described molecules in files, so that a kill costs little.

Records are cut into chunks by their place in the sources, which is the same every time. A chunk
becomes one Arrow file, sorted by mass, written whole or not at all, and is not made again. Beside
it stands what was set aside, and of which plan and place the chunk is: no part of another build
can be taken for one of this.
"""

import hashlib
import json
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mzseek.database.record import MoleculeRecord
from mzseek.database.rows import DescribedBatch, RecordsAt, describe_records
from mzseek.errors import DatabaseError, WriteError
from mzseek.files import atomic_file, content_hash, read_object
from mzseek.files.json_file import check_fields
from mzseek.work import Engine, Progress

BATCH = 1_000
CHUNK = 20 * BATCH
ROWS = 512  # that are read at a time when chunks are merged
_PLAN = "plan.json"
_FACTS = {
    "plan": str, "chunk": int, "records": int, "molecules": int, "sha256": str, "rejects": [[str]],
}  # fmt: skip


class ArrowPart:
    """A described chunk on disk; what is read of it is let go of again.

    Parameters
    ----------
    path : Path
    plan : str
        Key of the plan that it must be of.
    chunk : int
        The place that it must have in it.
    """

    def __init__(self, path: Path, plan: str, chunk: int) -> None:
        self.path = path
        self._label = _label(plan, chunk)

    @property
    def masses(self) -> npt.NDArray[np.float64]:
        """Their masses, rising.

        Raises
        ------
        DatabaseError
            It is damaged, or a part of something else.
        """
        schema = self._open().schema
        if any((schema.metadata or {}).get(name) != v for name, v in self._label.items()):
            raise DatabaseError(f"{self.path}: is a part of another build; build it again")
        place = schema.get_field_index("mass")
        wanted = pa.ipc.IpcReadOptions(included_fields=[place])
        return np.asarray(self._open(wanted).read_all()["mass"].to_numpy())

    def rows(self, start: int, end: int) -> pa.Table:
        """Molecules from one place to another."""
        file = self._open()
        first, last = start // ROWS, max(-(-end // ROWS), start // ROWS)
        try:
            batches = [file.get_batch(number) for number in range(first, last)]
        except (OSError, pa.ArrowInvalid) as error:
            raise DatabaseError(f"{self.path}: cannot be read ({error})") from error
        table = pa.Table.from_batches(batches, file.schema).replace_schema_metadata(None)
        return table.slice(start - first * ROWS, end - start)

    def _open(self, options: Any = None) -> Any:
        try:
            # Not memory-mapped: pages that were read would count as this process's own.
            return pa.ipc.open_file(pa.OSFile(str(self.path), "rb"), options=options)
        except (OSError, pa.ArrowInvalid) as error:
            raise DatabaseError(f"{self.path}: cannot be read ({error})") from error


class Parts:
    """The folder of a build that goes on.

    Parameters
    ----------
    folder : Path
    plan : dict
        Sources, options and versions: parts of another plan are thrown away.
    """

    def __init__(self, folder: Path, plan: dict[str, Any]) -> None:
        self.folder = folder
        self.key = hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()
        path = folder / _PLAN
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if _plan_in(path) != plan:
                for old in folder.iterdir():
                    shutil.rmtree(old) if old.is_dir() else old.unlink()
                with atomic_file(path) as written:
                    written.write_text(json.dumps(plan), encoding="utf-8")
        except OSError as error:
            raise WriteError(folder, f"cannot be made ({error.strerror})") from error

    def arrow(self, chunk: int) -> Path:
        """File of a chunk's molecules."""
        return self.folder / f"part-{chunk:06d}.arrow"

    def rejects(self, chunk: int) -> Path:
        """File of what was set aside in a chunk, and of what the other file must be."""
        return self.folder / f"part-{chunk:06d}.rejects.json"

    def done(self, chunk: int, records: int) -> bool:
        """Whether a chunk of so many records has been described, and is there as it was written."""
        try:
            facts = self._facts(chunk)
        except DatabaseError:  # a kill while parts were being removed may have left either file
            return False
        counted = facts["molecules"] + len(facts["rejects"])
        return (
            facts["records"] == counted == records
            and self.arrow(chunk).is_file()
            and content_hash(self.arrow(chunk)) == facts["sha256"]
        )

    def write(self, chunk: int, batches: list[DescribedBatch]) -> None:
        """Keep a chunk."""
        table = pa.concat_tables([batch.table for batch in batches]).combine_chunks()
        table = table.take(pc.sort_indices(table, [("mass", "ascending"), ("place", "ascending")]))
        table = table.replace_schema_metadata(_label(self.key, chunk))
        rejects = [list(reject) for batch in batches for reject in batch.rejects]
        with atomic_file(self.arrow(chunk)) as path:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table, max_chunksize=ROWS)
            facts = {
                "plan": self.key,
                "chunk": chunk,
                "records": table.num_rows + len(rejects),
                "molecules": table.num_rows,
                "sha256": content_hash(path),
                "rejects": rejects,
            }
            with atomic_file(self.rejects(chunk)) as beside:
                beside.write_text(json.dumps(facts), encoding="utf-8")

    def read(self, chunk: int) -> "ArrowPart":
        """A chunk's molecules."""
        return ArrowPart(self.arrow(chunk), self.key, chunk)

    def read_rejects(self, chunks: int) -> Iterator[tuple[str, str]]:
        """What was set aside, in the order of the sources."""
        for chunk in range(chunks):
            yield from ((where, reason) for where, reason in self._facts(chunk)["rejects"])

    def _facts(self, chunk: int) -> dict[str, Any]:
        path, again = self.rejects(chunk), "build it again"
        facts = read_object(path, DatabaseError, again)
        check_fields(facts, _FACTS, path, DatabaseError, again)
        if (facts["plan"], facts["chunk"]) != (self.key, chunk):
            raise DatabaseError(f"{path}: is a part of another build; {again}")
        if any(len(pair) != 2 for pair in facts["rejects"]):
            raise DatabaseError(f"{path}: is damaged (rejects without a reason); {again}")
        return facts


def _plan_in(path: Path) -> dict[str, Any] | None:
    try:
        return read_object(path, DatabaseError)
    except DatabaseError:
        return None


def _label(plan: str, chunk: int) -> dict[bytes, bytes]:
    """What an Arrow file says of itself."""
    return {b"plan": plan.encode(), b"chunk": str(chunk).encode()}


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
    """Describe every record into parts; returns how many chunks there are, and how many records.

    Chunks that an earlier, interrupted build has described are read past.
    """
    on_their_way: deque[tuple[int, bool]] = deque()  # chunk of each batch, and if it is the last
    chunks = done = read = 0

    def batches() -> Iterator[RecordsAt]:
        nonlocal chunks, done, read
        for chunk, chunk_records in enumerate(_chunks(iter(records))):
            chunks, read = chunk + 1, read + len(chunk_records)
            if parts.done(chunk, len(chunk_records)):
                done += len(chunk_records)
                continue
            for start in range(0, len(chunk_records), BATCH):
                on_their_way.append((chunk, start + BATCH >= len(chunk_records)))
                yield RecordsAt(chunk_records[start : start + BATCH], chunk * CHUNK + start)

    gathered: list[DescribedBatch] = []
    work = partial(describe_records, kind=kind, keep_stereo=keep_stereo)
    for result in engine.results(work, batches()):
        chunk, is_last = on_their_way.popleft()
        gathered.append(result)
        done += result.table.num_rows + len(result.rejects)
        progress("molecules", done, total)
        if is_last:
            before_writing()
            parts.write(chunk, gathered)
            gathered = []
    return chunks, read


def _chunks(stream: Iterator[MoleculeRecord]) -> Iterator[list[MoleculeRecord]]:
    while chunk := list(islice(stream, CHUNK)):
        yield chunk
