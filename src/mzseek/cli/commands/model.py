"""``mzseek model``: build, export, inspect and verify model bundles."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mzseek.cli.options import (
    ARE_CHANNELS,
    EXISTS,
    IS_BUNDLE,
    IS_LIBRARY,
    IS_RUN,
    AsJson,
    ChannelSettings,
    Jobs,
    Out,
    either,
    options_of,
)
from mzseek.cli.output import (
    new_table,
    plain,
    print_json,
    say,
    say_next,
    say_plain,
    show,
    watched,
    write_table,
)
from mzseek.core.text import pluralize

if TYPE_CHECKING:
    from mzseek.bundle import Bundle

model_app = typer.Typer(
    help="Make, check and describe the bundle that annotation goes by.", no_args_is_help=True
)
_FOLDS = ("all", "train")
_LICENCES = "CC0,CC BY,CC BY-SA,dl-de/by"
_PEAKS = 100

Folder = Annotated[
    Path | None,
    typer.Argument(help="A bundle's folder; the one that comes with mzseek by default."),
    IS_BUNDLE,
]
Licences = Annotated[
    str,
    typer.Option(
        "--licence",
        help="Licences whose records may go in, separated by commas; `any` for all.",
    ),
]
Peaks = Annotated[
    int, typer.Option("--peaks", min=1, help="Peaks of a reference spectrum that are kept.")
]


@dataclass
class ListOptions:
    """Options of every command that makes the bundled database."""

    molecules: Annotated[
        list[Path] | None, typer.Option(help="Lists of molecules for the bundled database."), EXISTS
    ] = None
    sources: Annotated[
        str | None,
        typer.Option(help="Of these lists only molecules of these sources, separated by commas."),
    ] = None
    known: Annotated[
        list[Path] | None,
        typer.Option(
            help="Tables of molecules with names and identifiers (inchikey, smiles, name, "
            "synonyms, pubchem_cid, hmdb, chebi, kegg, lipidmaps, dtxsid, in_sets); all of them go "
            "in.",
        ),
        EXISTS,
    ] = None
    names: Annotated[
        list[Path] | None,
        typer.Option(help="Records that name molecules, such as MassBank's."),
        EXISTS,
    ] = None
    electrospray_only: Annotated[
        bool,
        typer.Option(
            "--electrospray-only",
            help="Skip molecules of lists that electrospray does not ionise: hydrocarbons, "
            "inorganics, radicals, isotope-labelled molecules, silyl derivatives, all below 50 Da.",
        ),
    ] = False


@model_app.command("build")
@options_of(ListOptions)
def build(
    spectra: Annotated[
        list[Path],
        typer.Argument(help="Tables in MassSpecGym's columns, with candidate lists beside each."),
        EXISTS,
    ],
    out: Out,
    channels: Annotated[
        str, typer.Option(help="Separated by commas."), ARE_CHANNELS
    ] = "fragments,analogs",
    settings: ChannelSettings = None,
    candidates: Annotated[
        str, typer.Option(help="Candidate lists to fit on: mass, formula, or another name.")
    ] = "mass",
    licence: Licences = _LICENCES,
    folds: Annotated[
        str,
        typer.Option(
            help=f"What the shipped channels learn from ({either(_FOLDS)}): all folds, or train "
            "alone, so that the bundle can be measured on test."
        ),
    ] = _FOLDS[0],
    leave_out: Annotated[
        list[str] | None,
        typer.Option(help="Contributor whose spectra are not taken, to try the bundle on them."),
    ] = None,
    augment: Annotated[
        int,
        typer.Option(
            min=0,
            max=10,
            help="Corrupted copies of each spectrum to fit on, as of `mzseek fit`.",
        ),
    ] = 1,
    peaks: Peaks = _PEAKS,
    work: Annotated[
        Path | None,
        typer.Option(help="Keep what is made on the way here, and go on from it."),
    ] = None,
    jobs: Jobs = None,
    **lists: Any,
) -> None:
    """Make a bundle from data sets: join, prepare, fit, measure, pack.

    Spectra whose licence does not allow it are counted and left out. Channels learn from the train
    fold, the ranker and all confidence are cross-fitted, and the test fold is measured for the
    card. Then channels learn once more from all folds, unless --folds train is given.

    Example: mzseek model build massbank.tsv.gz massbank_more.tsv.gz --out bundle
    """
    from mzseek.bundle.build import BuildOptions, build_bundle
    from mzseek.bundle.export import ExportOptions
    from mzseek.evidence import channels_from

    options = BuildOptions(candidates, _split(licence) or (), folds, leave_out or (), augment)
    contents = ExportOptions(lists=_lists(_LICENCES, **lists), max_peaks=peaks)
    chosen = channels_from(channels, settings or ())
    with watched() as progress:
        bundle = build_bundle(
            spectra,
            out,
            chosen,
            options,
            contents,
            work=work,
            jobs=jobs,
            progress=progress,
            say=say_plain,
        )
    _show_counts(bundle)


@model_app.command("export")
@options_of(ListOptions)
def export(
    run: Annotated[Path, typer.Argument(help="Run folder that `mzseek fit` has made."), IS_RUN],
    out: Out,
    library: Annotated[
        Path | None,
        typer.Option(help="A library to put in, in the place of the spectra that were fitted on."),
        IS_LIBRARY,
    ] = None,
    spectra: Annotated[
        list[Path] | None,
        typer.Option(
            "--spectra",
            help="Tables that the spectra come from: contributor, licence and instrument of each.",
        ),
        EXISTS,
    ] = None,
    licence: Licences = _LICENCES,
    peaks: Peaks = _PEAKS,
    data: Annotated[
        Path | None, typer.Option(help="The prepared folder, if it is no longer where it was.")
    ] = None,
    jobs: Jobs = None,
    **lists: Any,
) -> None:
    """Make a bundle of a fitted run of your own.

    Calibration, prediction sets and all other confidence are fitted on the run's predictions for
    validation. Nothing is left out for its licence: such a bundle is for you, unless LICENCE.md
    in it says otherwise.

    Example: mzseek model export runs/evidence --out mine
    """
    from mzseek.bundle.build import read_details
    from mzseek.bundle.export import ExportOptions, export_run
    from mzseek.io.skipped import SkippedGroups
    from mzseek.runs.run import Run

    details = read_details(spectra or (), SkippedGroups())
    options = ExportOptions(details, library, _lists(licence, **lists), max_peaks=peaks)
    with watched() as progress:
        bundle = export_run(
            Run.open(run), out, options, data=data, jobs=jobs, progress=progress, say=say_plain
        )
    _show_counts(bundle)


@model_app.command("molecules")
@options_of(ListOptions)
def molecules_of(
    bundle: Annotated[Path, typer.Argument(help="A bundle's folder."), IS_BUNDLE],
    licence: Licences = _LICENCES,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write; the bundle itself by default.")
    ] = None,
    jobs: Jobs = None,
    **lists: Any,
) -> None:
    """Make the bundled molecule database anew, and nothing else.

    Gives the same bytes as `mzseek model build` with the same lists. Molecules of the library stay.

    Example: mzseek model molecules mine --known massbank_known.tsv.gz --molecules mine.csv
    """
    from mzseek.bundle import Bundle
    from mzseek.bundle.export import replace_molecules

    opened, chosen = Bundle.open(bundle), _lists(licence, **lists)
    with watched() as progress:
        replaced = replace_molecules(
            opened, out or bundle, chosen, jobs=jobs, progress=progress, say=say_plain
        )
    _show_counts(replaced)


@model_app.command("classes")
def classes_of(
    bundle: Annotated[Path, typer.Argument(help="A bundle's folder."), IS_BUNDLE],
    known: Annotated[
        Path,
        typer.Option(
            help="Table of molecules with their ChemOnt lineage (inchikey, chemont), such as "
            "massbank_known.tsv.gz."
        ),
        EXISTS,
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder to write; the bundle itself by default.")
    ] = None,
    jobs: Jobs = None,
) -> None:
    """Fit the model of compound classes of a bundle, and nothing else.

    Learns from the molecules of the bundle that the table has a lineage of; its reference spectra
    are cross-fitted, whole structural clusters at a time.

    Example: mzseek model classes mine --known massbank_known.tsv.gz
    """
    from mzseek.bundle import Bundle
    from mzseek.bundle.fit_classes import add_classes

    opened = Bundle.open(bundle)
    with watched() as progress:
        written = add_classes(
            opened, out or bundle, known, jobs=jobs, progress=progress, say=say_plain
        )
    _show_counts(written)


@model_app.command("info")
def info(
    bundle: Folder = None,
    records: Annotated[
        bool,
        typer.Option("--records", help="Every reference spectrum with its licence, as a table."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """What a bundle is made of, what it reaches, and what it cannot do.

    Example: mzseek model info
    """
    from mzseek.bundle import Bundle

    opened = Bundle.open(bundle)
    if as_json:
        print_json({"folder": str(opened.folder), "bytes": opened.size, **opened.card})
    elif records:
        table = opened.library.records
        rows = ([str(value) for value in row.values()] for row in table.to_pylist())
        write_table(table.column_names, rows)
    else:
        _show_card(opened)


@model_app.command("verify")
def verify(bundle: Folder = None) -> None:
    """Compare every file of a bundle with its checksum, and open all that is in it.

    Example: mzseek model verify mine
    """
    from mzseek.bundle import Bundle

    opened = Bundle.open(bundle)
    opened.verify()
    files = pluralize(len(opened.manifest["files"]), "file", "files")
    say(f"{plain(opened.folder)}: {files}, {opened.size:,} bytes, every one as it was written")


def _lists(licence: str, **options: Any) -> Any:
    from mzseek.bundle.build_molecules import MoleculeLists

    chosen = ListOptions(**options)
    return MoleculeLists(
        chosen.molecules or (), _split(chosen.sources), chosen.known or (), chosen.names or (),
        _split(licence) or (), chosen.electrospray_only,
    )  # fmt: skip


def _split(text: str | None) -> list[str] | None:
    if text is None:
        return None
    return [part.strip() for part in text.split(",") if part.strip()]


def _show_counts(bundle: "Bundle") -> None:
    counts = bundle.manifest["counts"]
    say(
        f"{plain(bundle.folder)}: {counts['spectra']:,} reference spectra of "
        f"{counts['molecules']:,} molecules, {counts['database']:,} molecules in all, "
        f"{bundle.size / 1e6:.1f} MB"
    )
    say_next("mzseek", "model", "info", bundle.folder)


def _show_card(bundle: "Bundle") -> None:
    card = bundle.card
    library, database, prior = card["library"], card["database"], card.get("prior")
    say(f"{plain(bundle.folder)}: {bundle.size / 1e6:.1f} MB, {plain(card['licence'])}")
    say(f"Channels: {plain(', '.join(card['channels']))}")
    say(f"They learned from: {plain(', '.join(card['learned_from']))}")
    for source in card["made_of"].get("spectra", ()):
        say(f"Made of {plain(source['name'])} (sha256 {plain(source['sha256'][:12])}…)")
    left = card["made_of"].get("left_out", {})
    if left:
        what = ", ".join(f"{number:,} {name or 'without'}" for name, number in left.items())
        say(f"Left out for their licence: {plain(what)}")
    say(
        f"Library: {library['spectra']:,} spectra of {library['molecules']:,} molecules, at most "
        f"{library['most_peaks']} peaks each"
    )
    for mode, of_mode in library["modes"].items():
        say(f"  {plain(mode)}: {of_mode['spectra']:,} spectra, {of_mode['molecules']:,} molecules")
        say(f"    ions: {_listed(of_mode['ions'])}")
        say(f"    instruments: {_listed(of_mode['instruments'])}")
    say(f"  licences: {_listed(library['licences'])}")
    say(f"Bundled database: {database['molecules']:,} molecules: {_listed(database['sources'])}")
    say(
        f"  with a name: {database['named']:,}; with an identifier: "
        f"{database['identified']:,}, with a link to its page: {database['linked']:,}"
    )
    if measured := card["measured"]:
        heads = [f"{plain(mode)} ({of['molecules']:,} molecules)" for mode, of in measured.items()]
        _show_measured("test fold, in %, with 95 % intervals", heads, [*measured.values()])
    else:
        say("Nothing was measured: the data have no test fold.")
    if prior is None:
        say("Learned prior: none")
    else:
        weights = ", ".join(f"{mode} {weight:.2f}" for mode, weight in prior["weights"].items())
        say(
            "Learned prior: there, and in no number above; `mzseek annotate --prior learned` "
            f"applies it. Its weight by ion mode: {plain(weights)}"
        )
        if prior["with"]:
            pairs = [(mode, which) for mode in prior["with"] for which in ("without", "with")]
            _show_measured(
                "test fold without and with the prior, in %",
                [f"{plain(mode)}, {which}" for mode, which in pairs],
                [prior[which][mode] for mode, which in pairs],
            )
    for mode, fitted in card["in_database"].items():
        if fitted is not None:
            auc = ", ".join(f"{value:.2f} ({plain(size)})" for size, value in fitted["auc"].items())
            say(
                f"Whether the molecule is in the database, {plain(mode)} mode, on molecules not "
                f"fitted on: calibration error {100 * fitted['error']:.1f} %, AUC {auc}"
            )
    classes = bundle.classes
    if classes is None:
        say("Compound classes: none")
    else:
        sizes = [len(nodes) for nodes in classes.tree.nodes]
        say(
            f"Compound classes: {sizes[0]} superclasses, {sizes[1]} classes and {sizes[2]} "
            f"subclasses, of {len(classes.keys):,} labelled molecules"
        )
    say("Limits")
    for line in card["limits"]:
        say(f"- {plain(line)}")


def _show_measured(title: str, heads: list[str], columns: list[dict[str, Any]]) -> None:
    """Print hit rates, prediction sets and calibration, one column for each ion mode."""
    rates = {"hit_rates": "", "hit_rates_together": ", spectra together"}
    rows = {
        f"HR@{k}{suffix}": [_interval(column[name][k]) for column in columns]
        for name, suffix in rates.items()
        if name in columns[0]
        for k in ("1", "5", "20")
    }
    sets = [column["sets"] for column in columns]
    rows["sets that are to hold 90 %"] = [_interval(of_mode["covered"]) for of_mode in sets]
    rows["their size"] = [f"{of_mode['size']:.1f}" for of_mode in sets]
    rows["calibration error"] = [f"{100 * column['calibration_error']:.1f}" for column in columns]
    table = new_table("", *heads, title=title, title_justify="left")
    for label, cells in rows.items():
        table.add_row(label, *cells)
    show(table)


def _interval(value: list[float]) -> str:
    mean, low, high = (100 * bound for bound in value)
    return f"{mean:.1f} ({low:.1f}…{high:.1f})"


def _listed(counts: dict[str, int], limit: int = 12) -> str:
    shown = [f"{name} {number:,}" for name, number in list(counts.items())[:limit]]
    more = len(counts) - limit
    return plain(", ".join(shown) + (f" and {more} more" if more > 0 else ""))
