"""``mzseek database``: build and search molecule databases."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mzseek.cli.errors import RESUME_SAME_COMMAND, one_line, resumable
from mzseek.cli.options import (
    EXISTS,
    AsJson,
    DatabaseFolder,
    EngineOptions,
    Fingerprint,
    Jobs,
    Out,
    options_of,
)
from mzseek.cli.output import plain, print_json, say, show_skipped, watched
from mzseek.core.errors import DatabaseError
from mzseek.core.text import pluralize

if TYPE_CHECKING:
    from mzseek.database import Database, Matches

database_app = typer.Typer(
    help="Build a molecule database and look molecules up in it.", no_args_is_help=True
)
_SHOWN_REJECTS = 3

Source = Annotated[
    str | None, typer.Option(help="Name of the collection; by default each file's own.")
]


@dataclass
class BuildOptions(EngineOptions):
    """Options of every command that builds a database."""

    fingerprint: Fingerprint = "morgan2"
    nearest: Annotated[
        bool,
        typer.Option(help="Also index its bits, for --like and for mining: 514 bytes a molecule."),
    ] = True
    keep_stereo: Annotated[bool, typer.Option("--keep-stereo", help="Keep stereo in SMILES.")] = (
        False
    )


@database_app.command("build")
@options_of(BuildOptions)
def build(
    molecules: Annotated[
        list[Path],
        typer.Argument(
            help="SMILES lists, CSV, TSV, .xlsx, SDF or Parquet; texts plain, .gz or .zst."
        ),
        EXISTS,
    ],
    out: Out,
    source: Source = None,
    smiles_column: Annotated[str | None, typer.Option(help="Column with SMILES.")] = None,
    name_column: Annotated[str | None, typer.Option(help="Column with names.")] = None,
    id_column: Annotated[str | None, typer.Option(help="Column with identifiers.")] = None,
    source_column: Annotated[str | None, typer.Option(help="Column with sources.")] = None,
    **options: Any,
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
    _build(sources, out, **options)


@database_app.command("hmdb")
@options_of(BuildOptions)
def hmdb(out: Out = Path("hmdb"), **options: Any) -> None:
    """Build one of human metabolites, from the table in the pyopenms package.

    Needs `pip install 'mzseek[hmdb]'` and nothing else: no download, no account.

    Example: mzseek database hmdb --out hmdb
    """
    from mzseek.database.sources import hmdb_sources

    _build(hmdb_sources(), out, **options)


@database_app.command("pubchem")
@options_of(BuildOptions)
def pubchem(
    folder: Annotated[
        Path, typer.Argument(help="Folder with PubChem's CID-SMILES.gz (and CID-Title.gz).")
    ],
    out: Out,
    **options: Any,
) -> None:
    """Build one of PubChem's compounds, from its public files.

    Example: mzseek database pubchem mirror/Compound/Extras --out pubchem
    """
    from mzseek.database.sources import pubchem_sources

    _build(pubchem_sources(folder), out, **options)


@database_app.command("add")
@options_of(EngineOptions)
def add(
    store: DatabaseFolder,
    molecules: Annotated[list[Path], typer.Argument(help="As for `database build`."), EXISTS],
    source: Source = None,
    **engine: Any,
) -> None:
    """Add molecules. The old database stays as it is until the new one is whole.

    Example: mzseek database add candidates mine.smi --source mine
    """
    from mzseek.database import Database, add_molecules
    from mzseek.database.sources import file_sources

    database = Database.open(store)
    before, sources = len(database), file_sources(molecules, source=source)
    with resumable(RESUME_SAME_COMMAND), watched() as progress:
        worker = EngineOptions(**engine).start()
        added = add_molecules(database, sources, engine=worker, progress=progress)
    say(f"{len(added) - before:,} new molecules")
    show_database(added)


@database_app.command("info")
def info(store: DatabaseFolder, as_json: AsJson = False) -> None:
    """What a database holds.

    Example: mzseek database info candidates
    """
    from mzseek.database import Database

    database = Database.open(store)
    if as_json:
        print_json(database.manifest)
    else:
        show_database(database)


@database_app.command("check")
def check(store: DatabaseFolder) -> None:
    """Read every file and compare its checksum.

    Example: mzseek database check candidates
    """
    from mzseek.database import Database

    database = Database.open(store)
    with watched():
        database.check()
    say(f"{plain(store)}: {len(database):,} molecules, every file as it was written")


@database_app.command("index")
def index(
    store: DatabaseFolder,
    model: Annotated[
        Path | None,
        typer.Option(help="A bundle, for what it reads; the one of mzseek by default."),
    ] = None,
    jobs: Jobs = None,
) -> None:
    """Read all molecules once and for all, so that `mzseek annotate` need not.

    Fragments and fingerprints are kept beside the database, some 3,500 bytes a molecule.
    Annotations are the same with and without them.

    Example: mzseek database index candidates
    """
    from mzseek.annotation.index import index_store
    from mzseek.bundle import Bundle

    bundle = Bundle.open(model)
    kinds = [bundle.fingerprint]
    kinds += [kind for channel in bundle.fitted.channels for kind in channel.needs_fingerprints]
    with watched() as progress:
        folder = index_store(store, kinds, jobs=jobs, progress=progress).folder
    size = sum(path.stat().st_size for path in folder.iterdir())
    say(f"{plain(folder)}: {size / 1e6:,.1f} MB, used by `mzseek annotate` from now on")


@database_app.command("export")
def export(
    store: DatabaseFolder,
    out: Annotated[Path, typer.Argument(help="File to write: .tsv, .csv or .smi.")],
) -> None:
    """Write all molecules into a text file, which `database build` reads with all names.

    Example: mzseek database export candidates candidates.tsv
    """
    from mzseek.database import Database
    from mzseek.database.export import export_molecules

    with watched() as progress:
        done = export_molecules(Database.open(store), out, progress=progress)
    say(f"{done:,} molecules in {plain(out)}")


@database_app.command("search")
def search(
    store: DatabaseFolder,
    mass: Annotated[list[float] | None, typer.Option(help="Neutral mass. Several times.")] = None,
    masses: Annotated[
        Path | None,
        typer.Option(help="File: a mass a line, or a table with mass, or with mz and adduct."),
        EXISTS,
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
    like: Annotated[str | None, typer.Option(help="SMILES: the most similar by Tanimoto.")] = None,
    name: Annotated[str | None, typer.Option(help="A name, or a part of one, in any case.")] = None,
    ppm: Annotated[float, typer.Option(help="For --mass, --masses and --precursor.")] = 10.0,
    top: Annotated[int, typer.Option(min=1, help="For --like and --name: how many.")] = 100,
    cap: Annotated[
        int | None, typer.Option(min=1, help="At most so many a query: the nearest by mass.")
    ] = None,
    priority: Annotated[
        list[str] | None,
        typer.Option(help="Sources that a capped list is filled from first. Several times."),
    ] = None,
) -> None:
    """Look molecules up: a table on standard output, tab separated, with a header.

    Example: mzseek database search candidates --mass 194.0804 --ppm 5
    """
    by = {"--mass": mass, "--masses": masses, "--precursor": precursor, "--formula": formula,
          "--inchikey": inchikey, "--like": like, "--name": name}  # fmt: skip
    criteria = [name for name, value in by.items() if value not in (None, [])]
    if len(criteria) != 1:
        given = f"{' and '.join(criteria)} are given" if criteria else "no query is given"
        raise DatabaseError(f"{given}, expected one of {', '.join(by)}")
    if cap is not None and criteria[0] in ("--like", "--inchikey", "--name"):
        raise DatabaseError(
            "--cap is for masses, precursors and formulas; --like and --name have --top"
        )
    if adduct and criteria[0] not in ("--precursor", "--masses"):
        raise DatabaseError(f"--adduct is for --precursor and --masses, not for {criteria[0]}")
    from mzseek.chem.formulas import parse_formula
    from mzseek.database import Database
    from mzseek.database.export import write_molecules
    from mzseek.database.search import ADDED_COLUMNS, look_up, read_queries, typed_queries

    database = Database.open(store)
    database.require_sources(priority or ())
    capping: dict[str, Any] = {"cap": cap, "priorities": priority or ()}
    if inchikey is not None:
        molecules = database.by_key(inchikey)
        write_molecules(sys.stdout, [molecules.table])
        if not len(molecules):
            _warn(f"no molecule has the InChIKey {inchikey!r}")
        return
    if like is not None:
        write_molecules(sys.stdout, [database.by_similarity(like, top).table], ("similarity",))
        return
    if name is not None:
        molecules = database.by_name(name, top)
        write_molecules(sys.stdout, [molecules.table])
        if not len(molecules):
            _warn(f"no molecule has a name with {name!r}")
        _warn_capped([molecules], "--top")
        return
    if formula is not None:
        molecules = database.by_formula(formula, **capping)
        write_molecules(sys.stdout, [molecules.table])
        if not len(molecules):
            _warn(f"no molecule has the formula {parse_formula(formula)}")
        _warn_capped([molecules])
        return
    skipped: list[tuple[str, str]] = []
    if masses is None:
        queries = typed_queries(mass or [], precursor or [], adduct or [])
    else:
        queries = read_queries(masses, adduct or [], lambda *why: skipped.append(why))
    capped: list[Matches] = []
    empty = 0

    def tables() -> Iterator[Any]:
        nonlocal empty
        for query in queries:
            molecules = look_up(database, query, ppm, **capping)
            empty += not molecules.total
            if molecules.capped:
                capped.append(molecules)
            yield molecules.table

    write_molecules(sys.stdout, tables(), ADDED_COLUMNS)
    _warn_capped(capped)
    if empty:
        of = f"{empty:,} of {len(queries):,} queries" if len(queries) > 1 else "the query"
        _warn(f"{of} found nothing within {ppm:g} ppm")
    if skipped:
        shown = skipped[:_SHOWN_REJECTS]
        examples = [f"{where.removeprefix(f'{masses}: ')}: {reason}" for where, reason in shown]
        if len(skipped) > len(shown):
            examples.append(f"and {len(skipped) - len(shown):,} more")
        _warn(f"{masses}: skipped {len(skipped):,}: {'; '.join(examples)}")


def _warn_capped(matches: "list[Matches]", option: str = "--cap") -> None:
    capped = [molecules for molecules in matches if molecules.capped]
    if capped:
        shown, total = sum(map(len, capped)), sum(molecules.total for molecules in capped)
        of = f" of {len(capped):,} queries" if len(capped) > 1 else ""
        _warn(f"{shown:,} of {total:,} shown{of} ({option})")


def _warn(text: str) -> None:
    """Print a line on standard error, beside the table on standard output."""
    print(f"mzseek: {one_line(text)}", file=sys.stderr)


def _build(sources: Any, out: Path, **options: Any) -> None:
    from mzseek.database import build_database

    chosen = BuildOptions(**options)
    with resumable(RESUME_SAME_COMMAND), watched() as progress:
        database = build_database(
            sources,
            out,
            fingerprint=chosen.fingerprint,
            nearest=chosen.nearest,
            keep_stereo=chosen.keep_stereo,
            engine=chosen.start(),
            progress=progress,
        )
    show_database(database)


def show_database(database: "Database") -> None:
    """Print the size and the sources of a database, and the records that were skipped."""
    from mzseek.io.skipped import read_skipped

    counts, options = database.manifest["counts"], database.manifest["options"]
    size = sum(file["bytes"] for file in database.manifest["files"].values())
    say(
        f"{plain(database.folder)}: {pluralize(counts['molecules'], 'molecule', 'molecules')} of "
        f"{pluralize(counts['records'], 'record', 'records')}, {plain(options['fingerprint'])}, "
        f"{size / 1e6:,.1f} MB ({size / max(counts['molecules'], 1):,.0f} bytes a molecule)"
    )
    if counts["merged"]:
        merged = pluralize(counts["merged"], "record was", "records were")
        say(f"{merged} of molecules that were there already")
    for file in database.manifest["sources"]:
        say(f"  [dim]{plain(file['name'])}  {file['sha256'][:12]}[/dim]")
    skipped_path = database.folder / "rejects.tsv"
    show_skipped(read_skipped(skipped_path), skipped_path)
