"""``mzseek database search``."""

import csv
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from mzseek.cli.early import early, look_for_database, look_for_file
from mzseek.cli.guard import one_line
from mzseek.errors import DatabaseError

if TYPE_CHECKING:
    from mzseek.database import Database, Found
    from mzseek.database.queries import Query

_SHOWN_REJECTS = 3


@early(store=look_for_database, masses=look_for_file)
def search(
    store: Annotated[Path, typer.Argument(help="Folder that `mzseek database build` has made.")],
    mass: Annotated[list[float] | None, typer.Option(help="Neutral mass. Several times.")] = None,
    masses: Annotated[
        Path | None,
        typer.Option(help="File: a mass a line, or a table with mass, or with mz and adduct."),
    ] = None,
    precursor: Annotated[
        list[float] | None, typer.Option(help="m/z of an ion. Several times.")
    ] = None,
    adduct: Annotated[
        list[str] | None,
        typer.Option(help="Of the precursor, [M+H]+ by default. Several times: each is tried."),
    ] = None,
    formula: Annotated[str | None, typer.Option(help="Formula, in any order.")] = None,
    inchikey: Annotated[str | None, typer.Option(help="InChIKey, or its first block.")] = None,
    like: Annotated[str | None, typer.Option(help="SMILES: the most alike by Tanimoto.")] = None,
    ppm: Annotated[float, typer.Option(help="For --mass, --masses and --precursor.")] = 10.0,
    top: Annotated[int, typer.Option(min=1, help="For --like: how many.")] = 100,
    cap: Annotated[
        int | None, typer.Option(min=1, help="At most so many a question: the nearest by mass.")
    ] = None,
    priority: Annotated[
        list[str] | None,
        typer.Option(help="Sources that a capped list is filled from first. Several times."),
    ] = None,
) -> None:
    """Look molecules up: a table on standard output, tab separated, with a header.

    Example: mzseek database search candidates --mass 194.0804 --ppm 5
    """
    asked = {"--mass": mass, "--masses": masses, "--precursor": precursor, "--formula": formula,
             "--inchikey": inchikey, "--like": like}  # fmt: skip
    given = [name for name, value in asked.items() if value not in (None, [])]
    if len(given) != 1:
        raise DatabaseError(
            f"{' and '.join(given) or 'nothing'} was asked for, expected one of {', '.join(asked)}"
        )
    if cap is not None and given[0] in ("--like", "--inchikey"):
        raise DatabaseError("--cap is for masses, precursors and formulas; --like has --top")
    if adduct and given[0] not in ("--precursor", "--masses"):
        raise DatabaseError(f"--adduct is for --precursor and --masses, not for {given[0]}")
    from mzseek.database import Database

    opened = Database.open(store)
    opened.require_sources(priority or ())
    capping: dict[str, Any] = {"cap": cap, "priorities": priority or ()}
    if formula is not None:
        _show_formula(opened, formula, capping)
    elif inchikey is not None:
        write_molecules(sys.stdout, [opened.by_key(inchikey).table])
    elif like is not None:
        write_molecules(sys.stdout, [opened.by_likeness(like, top).table], ("similarity",))
    else:
        queries, rejects = _queries(mass, masses, precursor, adduct)
        _answer_all(opened, queries, ppm, capping)
        _tell_rejects(masses, rejects)


def write_molecules(
    stream: TextIO, tables: "Iterable[Any]", extra: tuple[str, ...] = (), delimiter: str = "\t"
) -> int:
    """Write tables of molecules below one header; returns how many molecules.

    No cell has control characters in it, and what sources call their molecules is no formula for a
    spreadsheet.
    """
    from mzseek.database.formats.columns import EXPORTED

    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    is_begun, count = False, 0
    for table in tables:  # asked for the first before anything is written: it may be refused
        if not is_begun:
            writer.writerow((*EXPORTED, *extra))
            is_begun = True
        writer.writerows(_cells(table, (*EXPORTED, *extra)))
        count += table.num_rows
    if not is_begun:
        writer.writerow((*EXPORTED, *extra))
    return count


def _cells(table: Any, names: tuple[str, ...]) -> Iterator[list[str]]:
    from mzseek.files.streams.cells import free_cell, list_cell, visible

    def cell(name: str, value: Any) -> str:
        if isinstance(value, list):
            return list_cell(value)
        if name == "ppm":
            return f"{round(value, 3) + 0.0:.3f}"  # never -0.000
        if isinstance(value, float):
            return f"{value:.6f}"
        return free_cell(value) if name == "query" else visible(value)

    columns = [table[name].to_pylist() for name in names]
    for row in zip(*columns, strict=True):
        yield [cell(name, value) for name, value in zip(names, row, strict=True)]


def _show_formula(opened: "Database", formula: str, capping: dict[str, Any]) -> None:
    from mzseek.chem.formulas import parse_formula

    molecules = opened.by_formula(formula, **capping)
    write_molecules(sys.stdout, [molecules.table])
    if not len(molecules):
        _tell(f"no molecule has the formula {parse_formula(formula)}")
    _tell_capped([molecules])


def _queries(
    mass: list[float] | None,
    masses: Path | None,
    precursor: list[float] | None,
    adduct: list[str] | None,
) -> "tuple[list[Query], list[tuple[str, str]]]":
    from mzseek.database.queries import read_queries, typed_queries

    rejects: list[tuple[str, str]] = []
    if masses is None:
        return typed_queries(mass or [], precursor or [], adduct or []), rejects
    queries = read_queries(masses, adduct or [], lambda w, r: rejects.append((w, r)))
    return queries, rejects


def _answer_all(
    opened: "Database", queries: "list[Query]", ppm: float, capping: dict[str, Any]
) -> None:
    from mzseek.database.queries import ANSWERED, answer

    cut: list[Found] = []
    empty = 0

    def tables() -> Iterator[Any]:
        nonlocal empty
        for query in queries:
            molecules = answer(opened, query, ppm, **capping)
            empty += not molecules.total
            if molecules.capped:
                cut.append(molecules)
            yield molecules.table

    write_molecules(sys.stdout, tables(), ANSWERED)
    _tell_capped(cut)
    if empty and len(queries) > 1:
        _tell(f"{empty:,} of {len(queries):,} questions found nothing")


def _tell_capped(cut: "list[Found]") -> None:
    cut = [answer for answer in cut if answer.capped]
    if cut:
        shown, total = sum(map(len, cut)), sum(answer.total for answer in cut)
        of = f" of {len(cut):,} questions" if len(cut) > 1 else ""
        _tell(f"{shown:,} of {total:,} shown{of} (--cap)")


def _tell_rejects(file: Path | None, rejects: list[tuple[str, str]]) -> None:
    if rejects:
        shown = "; ".join(
            f"{where.removeprefix(f'{file}: ')}: {reason}"
            for where, reason in rejects[:_SHOWN_REJECTS]
        )
        more = len(rejects) - _SHOWN_REJECTS
        shown += f"; and {more:,} more" if more > 0 else ""
        _tell(f"{file}: set aside {len(rejects):,}: {shown}")


def _tell(text: str) -> None:
    """A line beside the table."""
    print(f"mzseek: {one_line(text)}", file=sys.stderr)
