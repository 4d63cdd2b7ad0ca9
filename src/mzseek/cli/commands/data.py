"""``mzseek data get|build|check|match``."""

import contextlib
from pathlib import Path
from typing import Annotated, Any

import typer

from mzseek.cli.errors import RESUME_SAME_COMMAND, resumable
from mzseek.cli.options import (
    EXISTS,
    IS_DATABASE,
    IS_FOLDER,
    AsJson,
    By,
    DatabaseOption,
    EngineOptions,
    Jobs,
    Out,
    Ppm,
    PreparedFolder,
    SpectrumFiles,
    options_of,
)
from mzseek.cli.output import (
    plain,
    print_json,
    say,
    say_next,
    show_check,
    show_skipped,
    watched,
)
from mzseek.core.errors import DatasetError
from mzseek.core.registry import EQUAL_IN, PUBLIC_SETS, check_name
from mzseek.core.text import pluralize
from mzseek.datasets.options import BuildOptions

data_app = typer.Typer(
    help="Get, build and check data sets, and match their candidates.", no_args_is_help=True
)


@data_app.command("get")
def get(
    name: Annotated[str, typer.Argument(help=f"The data set: {' '.join(PUBLIC_SETS)}.")],
    version: Annotated[str, typer.Option(help="1 (the paper's) or 1.5 (canonical SMILES).")] = "1",
    directory: Annotated[
        Path, typer.Option("--dir", help="Where to put it; files already there are kept.")
    ] = Path("massspecgym"),
    revision: Annotated[
        str | None, typer.Option(help="A commit of the hub's repository, to pin the files.")
    ] = None,
    molecules: Annotated[
        bool,
        typer.Option(
            "--molecules",
            help="Also its list of 118 million molecules of PubChem, to mine hard negatives from.",
        ),
    ] = False,
) -> None:
    """Download a public data set (about 1 GB for MassSpecGym, without --molecules).

    Example: mzseek data get massspecgym --dir massspecgym
    """
    check_name(PUBLIC_SETS, name.lower(), "data set", DatasetError)
    from mzseek.datasets.get import get_massspecgym, get_molecules

    with watched() as progress:
        files = get_massspecgym(directory, version, revision=revision, progress=progress)
        more = [get_molecules(directory, revision=revision, progress=progress)] if molecules else []
    for path in (files.spectra, *files.candidates.values(), *more):
        say(f"{plain(path)}  [dim]{path.stat().st_size / 1e6:,.1f} MB[/dim]")
    lists = [(f"--candidates-{setting}", path) for setting, path in files.candidates.items()]
    words = [word for pair in lists for word in pair]
    say_next("mzseek", "prepare", files.spectra, *words, "--out", "prepared")


@data_app.command("build")
@options_of(BuildOptions, with_ranges=True)
def build(
    libraries: SpectrumFiles,
    out: Out,
    database: Annotated[
        Path | None,
        typer.Option(help="Draw candidates from what `mzseek database build` has made."),
        IS_DATABASE,
    ] = None,
    molecules: Annotated[
        list[Path] | None,
        typer.Option(help="Or from a list of molecules, as it reads them. Several times."),
        EXISTS,
    ] = None,
    keep_database: Annotated[
        Path | None,
        typer.Option(help="Keep the database of --molecules here; else it is temporary."),
    ] = None,
    jobs: Jobs = None,
    **options: Any,
) -> None:
    """Make a data set like MassSpecGym from your own annotated spectra.

    Spectra are cleaned and merged, molecules standardised and split by structure clusters, and
    candidates drawn by mass and by formula, the truth always among them.

    Example: mzseek data build library.msp --database candidates --out myset
    """
    if bool(molecules) == (database is not None):
        which = "both were" if molecules else "none was"
        raise DatasetError(f"candidates come from --database or --molecules, and {which} given")
    if database is not None and keep_database is not None:
        raise DatasetError("--keep-database is for what --molecules gives, --database is kept")
    from mzseek.database import Database
    from mzseek.datasets.build import build_dataset
    from mzseek.io.skipped import read_skipped

    replaces = out.exists() and any(out.iterdir()) if out.is_dir() else False
    source = Database.open(database) if database is not None else molecules or []
    goes_on = resumable(RESUME_SAME_COMMAND) if keep_database else contextlib.nullcontext()
    with goes_on, watched() as progress:
        how = BuildOptions(**options | {"priorities": tuple(options["priorities"] or ())})
        manifest = build_dataset(
            libraries, source, out, how, keep_database=keep_database, jobs=jobs, progress=progress
        )
    if replaces:
        say(f"{plain(out)} was replaced.")
    counts = manifest["counts"]
    by_fold = ", ".join(f"{fold} {n:,}" for fold, n in counts["spectra_by_fold"].items())
    spectra = pluralize(counts["spectra"], "spectrum", "spectra")
    of_molecules = pluralize(counts["molecules"], "molecule", "molecules")
    say(f"{spectra} ({by_fold}) of {of_molecules}")
    if counts["adducts_inferred"]:
        inferred = pluralize(counts["adducts_inferred"], "spectrum", "spectra")
        say(f"adduct inferred from precursor and mass, since none was stated: {inferred}")
    for setting, metadata in counts["candidates"].items():
        say(f"{setting} candidates: median {metadata['median']:g}, largest {metadata['largest']}")
        if metadata["molecules_alone"]:
            alone = pluralize(metadata["molecules_alone"], "molecule has", "molecules have")
            say(f"  [yellow]{alone} no rival: any model ranks them first[/yellow]")
    if keep_database is not None:
        say(f"the database of its molecules is kept in {plain(keep_database)}")
    show_skipped(read_skipped(out / "rejects.tsv"), out / "rejects.tsv")
    say_next("mzseek", "data", "check", out)


@data_app.command("check")
def check(
    directory: Annotated[
        Path, typer.Argument(help="A folder with a table and candidate lists."), IS_FOLDER
    ],
    as_json: AsJson = False,
    jobs: Jobs = None,
) -> None:
    """Look a data set over: leaks, missing truths, twins, conflicts, with examples.

    Exits with status 1 if there are faults.

    Example: mzseek data check massspecgym
    """
    from mzseek.datasets.check import check_dataset
    from mzseek.datasets.files import find_dataset

    with watched() as progress:
        report = check_dataset(find_dataset(directory), jobs=jobs, progress=progress)
    if as_json:
        print_json(report.to_dict())
    else:
        show_check(report)
    if report.faults:
        raise typer.Exit(1)


@data_app.command("match")
@options_of(EngineOptions)
def match(
    data: PreparedFolder,
    database: DatabaseOption,
    by: By = EQUAL_IN[0],
    name: Annotated[
        str | None,
        typer.Option(help="Of the lists; matched, or matched-formula, if not given."),
    ] = None,
    ppm: Ppm = 10.0,
    keep: Annotated[
        int, typer.Option(min=5, help="Length of a list at the most, the truth included.")
    ] = 256,
    pool: Annotated[
        int, typer.Option(min=5, help="Molecules at the most that a list is drawn from.")
    ] = 512,
    seed: Annotated[int, typer.Option(min=0, help="For the draw.")] = 0,
    as_json: AsJson = False,
    **engine: Any,
) -> None:
    """Draw candidates that nothing but the spectrum tells from the truth.

    A scorer that never sees a spectrum knows measured molecules from what databases hold. Here
    decoys are drawn so that it does not. The lists are added to the folder, to train on and to be
    measured on.

    Example: mzseek data match prepared --database candidates
    """
    from mzseek.database import Database
    from mzseek.datasets.prepared import Prepared
    from mzseek.evidence.decoys import add_matched

    with watched() as progress:
        _, metadata = add_matched(
            Prepared.open(data), Database.open(database), by=by, name=name, ppm=ppm, keep=keep,
            pool=pool, seed=seed, engine=EngineOptions(**engine).start(), progress=progress,
        )  # fmt: skip
    if as_json:
        print_json(metadata)
        return
    _show_matched(metadata)
    how = ("--loss", "emb-cos", "--candidates", metadata["name"])
    say_next("mzseek", "train", data, *how, "--out", "runs/emb-cos")


def _show_matched(metadata: dict[str, Any]) -> None:
    say(
        f"{metadata['name']}: {pluralize(metadata['lists'], 'list', 'lists')}, "
        f"mean {metadata['mean']:.1f}, median {metadata['median']:g}, largest {metadata['largest']}"
    )
    for fold, blind in metadata["matched"]["blind"].items():
        reached, random = 100 * blind["hit_rate@1"], 100 * blind["random"]
        say(
            f"a blind scorer trained on them: HR@1 {reached:.1f} % on {fold}, at random "
            f"{random:.1f} % ({pluralize(blind['lists'], 'list', 'lists')})"
        )
    if metadata["truths_in_other_form"]:
        say(f"{metadata['truths_in_other_form']:,} truths are there as the database has them")
    for why, count in metadata["set_aside"].items():
        say(f"[yellow]{pluralize(count, 'molecule has', 'molecules have')} no list[/yellow]: {why}")
