"""``mzseek database``: build and search molecule databases."""

import csv
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from mzseek.cli.early import early, look_at_fingerprint, look_for_database, look_for_file
from mzseek.cli.errors import GOES_ON, can_go_on, one_line
from mzseek.cli.options import Address, AsJson, EngineName, Fingerprint, Jobs
from mzseek.cli.output import counted, plain, print_json, say, show_rejects, watched
from mzseek.core.errors import DatabaseError

if TYPE_CHECKING:
    from mzseek.database import Database, Matches
    from mzseek.database.search import Query


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
        write_molecules(sys.stdout, [opened.by_similarity(like, top).table], ("similarity",))
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
    from mzseek.database.formats.tables import EXPORTED

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
    from mzseek.io.text_tables import list_cell, text_cell, visible

    def cell(name: str, value: Any) -> str:
        if isinstance(value, list):
            return list_cell(value)
        if name == "ppm":
            return f"{round(value, 3) + 0.0:.3f}"  # never -0.000
        if isinstance(value, float):
            return f"{value:.6f}"
        return text_cell(value) if name == "query" else visible(value)

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
    from mzseek.database.search import read_queries, typed_queries

    rejects: list[tuple[str, str]] = []
    if masses is None:
        return typed_queries(mass or [], precursor or [], adduct or []), rejects
    queries = read_queries(masses, adduct or [], lambda w, r: rejects.append((w, r)))
    return queries, rejects


def _answer_all(
    opened: "Database", queries: "list[Query]", ppm: float, capping: dict[str, Any]
) -> None:
    from mzseek.database.search import ANSWERED, answer

    cut: list[Matches] = []
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


def _tell_capped(cut: "list[Matches]") -> None:
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


database_app = typer.Typer(
    help="Build a molecule database and look molecules up in it.", no_args_is_help=True
)

Out = Annotated[Path, typer.Option(help="Folder to make.")]
Store = Annotated[Path, typer.Argument(help="Folder that `mzseek database build` has made.")]
Nearest = Annotated[
    bool, typer.Option(help="Also index its bits, for --like and for mining: 514 bytes a molecule.")
]
KeepStereo = Annotated[bool, typer.Option("--keep-stereo", help="Keep stereo in SMILES.")]


@database_app.command("build")
@early(fingerprint=look_at_fingerprint, molecules=look_for_file)
def build(
    molecules: Annotated[
        list[Path],
        typer.Argument(
            help="SMILES lists, CSV, TSV, .xlsx, SDF or Parquet; texts plain, .gz or .zst."
        ),
    ],
    out: Out,
    fingerprint: Fingerprint = "morgan2",
    source: Annotated[
        str | None, typer.Option(help="Name of the collection; by default each file's own.")
    ] = None,
    smiles_column: Annotated[str | None, typer.Option(help="Column with SMILES.")] = None,
    name_column: Annotated[str | None, typer.Option(help="Column with names.")] = None,
    id_column: Annotated[str | None, typer.Option(help="Column with identifiers.")] = None,
    source_column: Annotated[str | None, typer.Option(help="Column with sources.")] = None,
    nearest: Nearest = True,
    keep_stereo: KeepStereo = False,
    jobs: Jobs = None,
    engine: EngineName = "local",
    address: Address = None,
) -> None:
    """Build a database from lists of molecules.

    Molecules are standardised; equal ones (first InChIKey block and mass) are one, with all names
    and identifiers. Interrupted, the same command goes on where it was.

    Example: mzseek database build hmdb.sdf.gz coconut.csv --out candidates
    """
    from mzseek.database.sources import file_sources

    named = {
        "smiles": smiles_column, "name": name_column, "id": id_column, "source": source_column,
    }  # fmt: skip
    columns = {meaning: name for meaning, name in named.items() if name}
    sources = file_sources(molecules, source=source, columns=columns or None)
    _build(sources, out, fingerprint, nearest, keep_stereo, jobs, engine, address)


@database_app.command("hmdb")
@early(fingerprint=look_at_fingerprint)
def hmdb(
    out: Out = Path("hmdb"),
    fingerprint: Fingerprint = "morgan2",
    nearest: Nearest = True,
    keep_stereo: KeepStereo = False,
    jobs: Jobs = None,
    engine: EngineName = "local",
    address: Address = None,
) -> None:
    """Build one of human metabolites, from the table in the pyopenms package.

    Needs `pip install 'mzseek[hmdb]'` and nothing else: no download, no account.

    Example: mzseek database hmdb --out hmdb
    """
    from mzseek.database.sources import hmdb_sources

    _build(hmdb_sources(), out, fingerprint, nearest, keep_stereo, jobs, engine, address)


@database_app.command("pubchem")
@early(fingerprint=look_at_fingerprint)
def pubchem(
    folder: Annotated[
        Path, typer.Argument(help="Folder with PubChem's CID-SMILES.gz (and CID-Title.gz).")
    ],
    out: Out,
    fingerprint: Fingerprint = "morgan2",
    nearest: Nearest = True,
    keep_stereo: KeepStereo = False,
    jobs: Jobs = None,
    engine: EngineName = "local",
    address: Address = None,
) -> None:
    """Build one of PubChem's compounds, from its public files.

    Example: mzseek database pubchem mirror/Compound/Extras --out pubchem
    """
    from mzseek.database.sources import pubchem_sources

    _build(pubchem_sources(folder), out, fingerprint, nearest, keep_stereo, jobs, engine, address)


@database_app.command("add")
@early(store=look_for_database, molecules=look_for_file)
def add(
    store: Store,
    molecules: Annotated[list[Path], typer.Argument(help="As for `database build`.")],
    source: Annotated[
        str | None, typer.Option(help="Name of the collection; by default each file's own.")
    ] = None,
    jobs: Jobs = None,
    engine: EngineName = "local",
    address: Address = None,
) -> None:
    """Add molecules. The old database stays as it is until the new one is whole.

    Example: mzseek database add candidates mine.smi --source mine
    """
    from mzseek.database import Database, add_molecules
    from mzseek.database.sources import file_sources
    from mzseek.parallel import engine_named

    opened = Database.open(store)
    before = len(opened)
    with can_go_on(GOES_ON), watched() as progress:
        made = add_molecules(
            opened, file_sources(molecules, source=source),
            engine=engine_named(engine, jobs, address), progress=progress,
        )  # fmt: skip
    say(f"{len(made) - before:,} new molecules")
    _show(made)


@database_app.command("info")
@early(store=look_for_database)
def info(
    store: Store,
    as_json: AsJson = False,
) -> None:
    """What a database holds.

    Example: mzseek database info candidates
    """
    from mzseek.database import Database

    opened = Database.open(store)
    if as_json:
        print_json(opened.manifest)
        return
    _show(opened)


@database_app.command("check")
@early(store=look_for_database)
def check(store: Store) -> None:
    """Read every file and compare its checksum.

    Example: mzseek database check candidates
    """
    from mzseek.database import Database

    opened = Database.open(store)
    with watched():
        opened.check()
    say(f"{plain(store)}: {len(opened):,} molecules, every file as it was written")


@database_app.command("index")
@early(store=look_for_database)
def index(
    store: Store,
    model: Annotated[
        Path | None,
        typer.Option(help="A bundle, for what it reads; the one of mzseek by default."),
    ] = None,
    jobs: Jobs = None,
) -> None:
    """Read all molecules once and for all, so that `mzseek annotate` need not.

    Fragments and fingerprints are kept beside the database, some 3,500 bytes a molecule. Answers
    are the same with and without them.

    Example: mzseek database index candidates
    """
    from mzseek.annotation.sources import index_store
    from mzseek.bundle import Bundle

    bundle = Bundle.open(model)
    kinds = [bundle.fingerprint]
    kinds += [kind for channel in bundle.fitted.channels for kind in channel.reads_fingerprints]
    with watched() as progress:
        made = index_store(store, kinds, jobs=jobs, progress=progress)
    size = sum(path.stat().st_size for path in made.folder.iterdir())
    say(f"{plain(made.folder)}: {size / 1e6:,.1f} MB, used by `mzseek annotate` from now on")


@database_app.command("export")
@early(store=look_for_database)
def export(
    store: Store,
    out: Annotated[Path, typer.Argument(help="File to write: .tsv, .csv or .smi.")],
) -> None:
    """Write all molecules into a text file, which `database build` reads with all names.

    Example: mzseek database export candidates candidates.tsv
    """
    from mzseek.database import Database
    from mzseek.database.formats.tables import EXPORTED
    from mzseek.io import atomic_file, sole_writer
    from mzseek.io.manifest import overlap
    from mzseek.io.text_tables import visible

    opened = Database.open(store)
    if out.suffix not in (".tsv", ".csv", ".smi"):
        raise DatabaseError(f"{out}: expected a name that ends in .tsv, .csv or .smi")
    if reason := overlap(out, [opened.folder]):
        raise DatabaseError(f"{out}: {reason}; name another file")
    done = 0
    with (
        watched() as progress,
        sole_writer(out, "exporting molecules"),
        atomic_file(out) as partial,
        partial.open("w", newline="", encoding="utf-8") as stream,
    ):

        def batches() -> Iterator[Any]:
            nonlocal done
            for batch in opened.batches(EXPORTED):
                yield batch
                done += batch.num_rows
                progress("exporting", done, len(opened))

        if out.suffix == ".smi":
            for batch in batches():
                pairs = zip(batch["smiles"].to_pylist(), batch["key"].to_pylist(), strict=True)
                stream.writelines(f"{visible(smiles)} {visible(key)}\n" for smiles, key in pairs)
        else:
            mark = "\t" if out.suffix == ".tsv" else ","
            write_molecules(stream, batches(), delimiter=mark)
    say(f"{done:,} molecules in {plain(out)}")


database_app.command("search")(search)


def _build(
    sources: Any, out: Path, fingerprint: str, nearest: bool, keep_stereo: bool,
    jobs: int | None, engine: str, address: str | None,
) -> None:  # fmt: skip
    from mzseek.database import build_database
    from mzseek.parallel import engine_named

    with can_go_on(GOES_ON), watched() as progress:
        made = build_database(
            sources, out, fingerprint=fingerprint, nearest=nearest, keep_stereo=keep_stereo,
            engine=engine_named(engine, jobs, address), progress=progress,
        )  # fmt: skip
    _show(made)


def _show(opened: Any) -> None:
    from mzseek.datasets.files import read_rejects

    counts, options = opened.manifest["counts"], opened.manifest["options"]
    size = sum(file["bytes"] for file in opened.manifest["files"].values())
    say(
        f"{plain(opened.folder)}: {counted(counts['molecules'], 'molecule', 'molecules')} of "
        f"{counted(counts['records'], 'record', 'records')}, {plain(options['fingerprint'])}, "
        f"{size / 1e6:,.1f} MB ({size / max(counts['molecules'], 1):,.0f} bytes a molecule)"
    )
    if counts["merged"]:
        say(f"{counts['merged']:,} records were of molecules that were there already")
    for file in opened.manifest["sources"]:
        say(f"  [dim]{plain(file['name'])}  {file['sha256'][:12]}[/dim]")
    rejects = opened.folder / "rejects.tsv"
    show_rejects(read_rejects(rejects), rejects)
