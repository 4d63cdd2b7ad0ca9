"""``mzseek database …``: a store of molecules to draw candidates from."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from mzseek.cli.commands.search import search, write_molecules
from mzseek.cli.early import early, look_at_fingerprint, look_for_database, look_for_file
from mzseek.cli.interrupt import GOES_ON, can_go_on
from mzseek.cli.options import Address, AsJson, EngineName, Fingerprint, Jobs
from mzseek.cli.output import counted, plain, print_json, say, show_rejects, watched
from mzseek.errors import DatabaseError

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
    from mzseek.work import engine_named

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

    Pieces and fingerprints are kept beside the database, some 3,500 bytes a molecule. Answers are
    the same with and without them.

    Example: mzseek database index candidates
    """
    from mzseek.annotation.bundle import Bundle
    from mzseek.annotation.candidates.store import index_store

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
    from mzseek.database.formats.columns import EXPORTED
    from mzseek.files import atomic_file, sole_writer
    from mzseek.files.streams.cells import visible

    opened = Database.open(store)
    if out.suffix not in (".tsv", ".csv", ".smi"):
        raise DatabaseError(f"{out}: expected a name that ends in .tsv, .csv or .smi")
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
    from mzseek.work import engine_named

    with can_go_on(GOES_ON), watched() as progress:
        made = build_database(
            sources, out, fingerprint=fingerprint, nearest=nearest, keep_stereo=keep_stereo,
            engine=engine_named(engine, jobs, address), progress=progress,
        )  # fmt: skip
    _show(made)


def _show(opened: Any) -> None:
    from mzseek.datasets.table import read_rejects

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
