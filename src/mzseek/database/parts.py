"""The first half of a build: described molecules in files, so that a kill costs little.

Records are cut into chunks by their place in the sources, which is the same every time. A chunk
becomes one Arrow file, sorted by mass, written whole or not at all, and is not made again.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mzseek.database.describe import Described, Work, describe
from mzseek.database.record import Record
from mzseek.errors import DatabaseError
from mzseek.files import atomic_file
from mzseek.work import Engine, Progress

BATCH = 1_000
CHUNK = 20 * BATCH
ROWS = 512  # that are read at a time when chunks are merged
_PLAN = "plan.json"


class ArrowPart:
    """A described chunk on disk; what is read of it is let go of again.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def masses(self) -> npt.NDArray[np.float64]:
        """Their masses, rising."""
        place = self._open().schema.get_field_index("mass")
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
        table = pa.Table.from_batches(batches, file.schema)
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
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / _PLAN
        if not path.exists() or json.loads(path.read_text(encoding="utf-8")) != plan:
            for old in folder.iterdir():
                old.unlink()
            with atomic_file(path) as written:
                written.write_text(json.dumps(plan), encoding="utf-8")

    def arrow(self, chunk: int) -> Path:
        """File of a chunk's molecules."""
        return self.folder / f"part-{chunk:06d}.arrow"

    def rejects(self, chunk: int) -> Path:
        """File of what was set aside in a chunk, written before the other, which says: both are."""
        return self.folder / f"part-{chunk:06d}.rejects.json"

    def done(self, chunk: int) -> bool:
        """Whether a chunk has been described."""
        # A kill while parts were being removed may have left either.
        return self.arrow(chunk).exists() and self.rejects(chunk).exists()

    def write(self, chunk: int, batches: list[Described]) -> int:
        """Keep a chunk; returns how many molecules it has."""
        table = pa.concat_tables([batch.table for batch in batches]).combine_chunks()
        table = table.take(pc.sort_indices(table, [("mass", "ascending"), ("place", "ascending")]))
        found = [list(each) for batch in batches for each in batch.rejects]
        with atomic_file(self.rejects(chunk)) as path:
            path.write_text(json.dumps(found), encoding="utf-8")
        with (
            atomic_file(self.arrow(chunk)) as path,
            pa.OSFile(str(path), "wb") as sink,
            pa.ipc.new_file(sink, table.schema) as writer,
        ):
            writer.write_table(table, max_chunksize=ROWS)
        return int(table.num_rows)

    def read(self, chunk: int) -> "ArrowPart":
        """A chunk's molecules."""
        return ArrowPart(self.arrow(chunk))

    def read_rejects(self, chunks: int) -> Iterator[tuple[str, str]]:
        """What was set aside, in the order of the sources."""
        for chunk in range(chunks):
            found = json.loads(self.rejects(chunk).read_text(encoding="utf-8"))
            yield from ((where, reason) for where, reason in found)


def describe_all(
    records: Iterable[Record],
    kind: str,
    parts: Parts,
    engine: Engine,
    progress: Progress,
    total: int | None = None,
) -> int:
    """Describe every record into parts; returns how many chunks there are.

    Chunks that an earlier, interrupted build has described are read past.
    """
    on_their_way: deque[tuple[int, bool]] = deque()  # chunk of each batch, and if it is the last
    chunks = done = 0

    def batches() -> Iterator[Work]:
        nonlocal chunks, done
        for chunk, chunk_records in enumerate(_chunks(iter(records))):
            chunks = chunk + 1
            if parts.done(chunk):
                done += len(chunk_records)
                continue
            for start in range(0, len(chunk_records), BATCH):
                on_their_way.append((chunk, start + BATCH >= len(chunk_records)))
                yield Work(chunk_records[start : start + BATCH], chunk * CHUNK + start)

    gathered: list[Described] = []
    for result in engine.results(partial(describe, kind=kind), batches()):
        chunk, is_last = on_their_way.popleft()
        gathered.append(result)
        done += result.table.num_rows + len(result.rejects)
        progress("molecules", done, total)
        if is_last:
            parts.write(chunk, gathered)
            gathered = []
    return chunks


def _chunks(stream: Iterator[Record]) -> Iterator[list[Record]]:
    while chunk := list(islice(stream, CHUNK)):
        yield chunk
