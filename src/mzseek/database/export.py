"""Write molecules of a database as text tables."""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from mzseek.core.errors import DatabaseError
from mzseek.database.formats.tables import EXPORTED
from mzseek.database.store import Database
from mzseek.io import StrPath, atomic_file, sole_writer
from mzseek.io.manifest import overlap
from mzseek.io.text_tables import list_cell, text_cell, visible
from mzseek.parallel.engine import Progress, silent


def export_molecules(database: Database, out: StrPath, *, progress: Progress = silent) -> int:
    """Write all molecules into a file, which `build_database` reads with all names.

    Parameters
    ----------
    database : Database
    out : path
        Its suffix is ``.tsv``, ``.csv`` or ``.smi`` (SMILES and key alone).
    progress : callable of (stage, done, total)

    Returns
    -------
    int
        Molecules that were written.

    Raises
    ------
    DatabaseError
        The suffix is another one, or the file lies in the database.
    """
    out, done = Path(out), 0
    if out.suffix not in (".tsv", ".csv", ".smi"):
        raise DatabaseError(f"{out}: expected a name that ends in .tsv, .csv or .smi")
    if reason := overlap(out, [database.folder]):
        raise DatabaseError(f"{out}: {reason}; name another file")

    def batches() -> Iterator[Any]:
        nonlocal done
        for batch in database.batches(EXPORTED):
            yield batch
            done += batch.num_rows
            progress("exporting", done, len(database))

    with (
        sole_writer(out, "exporting molecules"),
        atomic_file(out) as partial,
        partial.open("w", newline="", encoding="utf-8") as stream,
    ):
        if out.suffix == ".smi":
            for batch in batches():
                pairs = zip(batch["smiles"].to_pylist(), batch["key"].to_pylist(), strict=True)
                stream.writelines(f"{visible(smiles)} {visible(key)}\n" for smiles, key in pairs)
        else:
            write_molecules(stream, batches(), delimiter="\t" if out.suffix == ".tsv" else ",")
    return done


def write_molecules(
    stream: TextIO, tables: Iterable[Any], extra: tuple[str, ...] = (), delimiter: str = "\t"
) -> None:
    """Write tables of molecules below one header.

    Control characters are replaced, and names of molecules are no formulas for a spreadsheet.
    ``extra`` names columns beside those of every molecule.
    """
    names = (*EXPORTED, *extra)
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    has_header = False
    for table in tables:  # the first query may be refused: then nothing is written
        if not has_header:
            writer.writerow(names)
            has_header = True
        for row in zip(*(table[name].to_pylist() for name in names), strict=True):
            writer.writerow(_cell(name, value) for name, value in zip(names, row, strict=True))
    if not has_header:
        writer.writerow(names)


def _cell(name: str, value: Any) -> str:
    if isinstance(value, list):
        return list_cell(value)
    if name == "ppm":
        return f"{round(value, 3) + 0.0:.3f}"  # never -0.000
    if isinstance(value, float):
        return f"{value:.6f}"
    return text_cell(value) if name == "query" else visible(value)
