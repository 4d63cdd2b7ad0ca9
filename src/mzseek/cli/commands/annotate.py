"""``mzseek annotate``: annotate spectra."""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mzseek.annotation.config import INSTRUMENTS, AnnotateConfig, larger_databases
from mzseek.cli.options import (
    EXISTS,
    IS_LIBRARY,
    Address,
    Check,
    EngineName,
    EngineOptions,
    FormerName,
    Jobs,
    options_of,
)
from mzseek.cli.output import (
    new_table,
    only_json,
    plain,
    print_json,
    say,
    show,
    show_skipped,
    watched,
)
from mzseek.core.errors import AnnotationError
from mzseek.core.registry import check_name
from mzseek.core.text import pluralize
from mzseek.export import SUFFIXES

if TYPE_CHECKING:
    from mzseek.annotation.annotation import Annotation, Candidate
    from mzseek.export.job import FinishedRun


_CANDIDATES = 5
_WIDE = 44


def show_annotations(annotations: "Sequence[Annotation]") -> None:
    """Print a line for each feature."""
    if not annotations:
        say("No feature was annotated.")
        return
    heads = ("feature", "m/z", "ion", "formula", "best candidate", "confidence", "set", "level")
    table = new_table()
    for head in heads:
        right = head in ("m/z", "confidence", "set")
        table.add_column(head, justify="right" if right else "left", no_wrap=right)
    for annotation in annotations:
        best = annotation.best
        cells = ["", "", "no candidate of this mass", "", ""]
        if best:
            cells = [plain(best.adduct), plain(best.formula), plain(_named(best), _WIDE)]
            cells += [f"{annotation.confidence:.0%}", f"{annotation.set_size:,}"]
        name, mz = plain(annotation.feature.name, 30), f"{annotation.feature.precursor_mz:.4f}"
        table.add_row(name, mz, *cells, annotation.level.number)
    show(table)
    say("[dim]confidence: probability that the best candidate is the molecule; set: number of "
        f"candidates that contain it in {annotations[0].coverage:.0%} of cases, if it is in the "
        "database[/dim]")  # fmt: skip


def show_annotation(annotation: "Annotation") -> None:
    """Print one feature: its candidates, why the first is the first, and all in plain words."""
    from mzseek.annotation.story import describe

    feature = annotation.feature
    spectra = pluralize(len(feature.spectra), "spectrum", "spectra")
    say(f"[bold]{plain(feature.name)}[/bold]  m/z {feature.precursor_mz:.4f}, {spectra}, "
        f"{pluralize(annotation.found, 'candidate', 'candidates')} in the database")  # fmt: skip
    if annotation.candidates:
        _show_candidates(annotation)
        _show_reasons(annotation)
    say(f"Level {annotation.level.number}: {plain(annotation.level.reason)}")
    for note in annotation.notes:
        say(f"[dim]Note: {plain(note)}[/dim]")
    if annotation.proposals:
        _show_proposals(annotation)
    say("")
    say(plain(describe(annotation), 2_000))


def _show_candidates(annotation: "Annotation") -> None:
    table = new_table()
    for name in ("rank", "confidence", "candidate", "formula", "ion", "explained", "set"):
        table.add_column(name, justify="right" if name in ("confidence", "explained") else "left")
    for rank, candidate in enumerate(annotation.candidates[:_CANDIDATES], 1):
        texts = (plain(_named(candidate), _WIDE), plain(candidate.formula), plain(candidate.adduct))
        shares = f"{annotation.confidence_of(candidate):.1%}", f"{candidate.explained:.0%}"
        in_set = "in" if candidate.in_set else ""
        table.add_row(str(rank), shares[0], *texts, shares[1], in_set)
    show(table)
    left = annotation.scored - min(len(annotation.candidates), _CANDIDATES)
    if left > 0:
        say(f"[dim]and {left:,} more[/dim]")


def _show_reasons(annotation: "Annotation") -> None:
    best = annotation.best
    if best is None:
        return
    if best.match is not None:
        say(f"Library match: {plain(best.match.record)}, similarity {best.match.similarity:.2f}, "
            f"{best.match.peaks} peaks")  # fmt: skip
    parts = [
        f"{kind} {annotation.nats(best, kind):+.1f}"
        for kind in dict.fromkeys(annotation.kinds.values())
    ]
    say(f"Reasons, as log-odds (nats) against the average candidate: {', '.join(parts)}")
    if annotation.ion_support:
        shares = (f"{ion.adduct} {ion.probability:.0%}" for ion in annotation.ion_support)
        say(f"By the spectra of each ion alone: {plain(', '.join(shares))}")
    if best.analog is not None:
        say(f"Nearest analog: {plain(best.analog.record)} (spectral similarity "
            f"{best.analog.similarity:.2f}, Tanimoto {best.analog.tanimoto:.2f})")  # fmt: skip
    if annotation.present is not None:
        say(f"Probability that the molecule is in the database: {annotation.present:.0%}")
    others = {o: annotation.candidates[at] for o, at in annotation.choices.items() if at}
    for objective, other in others.items():
        say(f"[dim]Decided for {objective}: {plain(_named(other), _WIDE)}[/dim]")


def _show_proposals(annotation: "Annotation") -> None:
    proposals = annotation.proposals
    say(
        "Proposed structures, which are no candidates (one of them is the molecule with "
        f"probability {proposals[0].included:.0%} if no candidate is; fitted on molecules with "
        "known relatives, too high for others):"
    )
    table = new_table()
    for name in ("rank", "probability", "structure", "formula", "made from", "transformation"):
        table.add_column(name, justify="right" if name == "probability" else "left")
    for rank, proposal in enumerate(proposals[:_CANDIDATES], 1):
        texts = [proposal.smiles, proposal.formula, proposal.parent_name or proposal.parent]
        shown = [plain(text, _WIDE) for text in texts]
        transformation = plain(proposal.transformation, _WIDE)
        table.add_row(str(rank), f"{proposal.probability:.1%}", *shown, transformation)
    show(table)
    left = len(proposals) - _CANDIDATES
    if left > 0:
        say(f"[dim]and {left:,} more[/dim]")


def _named(candidate: "Candidate") -> str:
    return candidate.name or candidate.smiles


# Up to so many spectra are answered sooner in plain Python than kernels are compiled, by the few
# candidates that the small database has for each.
_FEW_SPECTRA = 5
_SMALL = 200_000  # molecules: a smaller database is called small
_SHOWN = 10
NOTHING_FOUND = 3  # exit status of a run in which no feature has a candidate


def _check_instrument(name: object) -> None:
    check_name(INSTRUMENTS, str(name), "instrument", AnnotationError)


@options_of(
    AnnotateConfig,
    library=IS_LIBRARY,
    instrument=Check(_check_instrument),
    expected_in_database=FormerName("--known"),
    max_candidates=FormerName("--most"),
)
def annotate(
    spectra: Annotated[
        list[Path],
        typer.Argument(
            help="Files or folders of spectra: MGF, MSP, mzML, mzXML, MassBank, Parquet, …"
        ),
        EXISTS,
    ],
    out: Annotated[
        Path | None,
        typer.Option(help=f"Folder to make, or a file: {' '.join(SUFFIXES)}."),
    ] = None,
    network: Annotated[
        Path | None,
        typer.Option(help="Molecular network (GraphML, or edges) to join annotations to."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a run that was interrupted.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Replace an output that annotate did not write, or that was changed since.",
        ),
    ] = False,
    allow_empty: Annotated[
        bool,
        typer.Option(
            "--allow-empty",
            help=f"Exit with status 0 instead of {NOTHING_FOUND} if no feature has a candidate.",
        ),
    ] = False,
    ranking_columns: Annotated[
        str, typer.Option(help="Names of the two columns of a .csv as --out.")
    ] = "id,smiles",
    jobs: Jobs = None,
    engine: EngineName = "local",
    address: Address = None,
    json_output: Annotated[
        bool, typer.Option("--json", help="End with a JSON object, alone on standard output.")
    ] = False,
    **options: Any,
) -> None:
    """Find the molecules behind spectra: ranked, with reasons and a confidence.

    Works offline. Every feature keeps your own id. Without --out, the first ten are shown here.

    Example: mzseek annotate my.mgf --out annotations
    """
    from mzseek.annotation.reading import SpectrumFiles
    from mzseek.core.compiled import disable_compilation, has_compiled_cache
    from mzseek.spectra.formats.tables import parse_columns

    files = SpectrumFiles(spectra, parse_columns(options["columns"] or ()))
    is_small = options["database"] is None and _has_few(files)
    if is_small and not has_compiled_cache():
        disable_compilation()
    from mzseek.export.output import is_folder

    if out is not None:  # an unknown suffix is refused before anything is read
        is_folder(out)
    elif resume:
        raise AnnotationError("--resume: there is no --out to go on with")
    elif engine != "local":
        raise AnnotationError(f"--engine {engine}: give --out; without it a few are shown here")
    workers = EngineOptions(jobs, engine, address).start()
    from mzseek.export.writer import Settings, parse_ranking_columns

    pair = parse_ranking_columns(ranking_columns)
    config = AnnotateConfig(**options)
    title = " ".join(path.name for path in spectra)
    with only_json() if json_output else nullcontext():
        if out is None:
            nothing = _show_here(files, config, json_output)
        else:
            nothing = _run(
                files, config, out,
                Settings(title=title, network=network, ranking_columns=pair),
                json_output, resume=resume, force=force,
                engine=workers,
            )  # fmt: skip
    if nothing and not allow_empty:
        print(f"mzseek: {nothing}; --allow-empty accepts this", file=sys.stderr)
        raise typer.Exit(NOTHING_FOUND)


def _run(
    files: Any, config: AnnotateConfig, out: Path, settings: Any, as_json: bool, **how: Any
) -> str:
    """Write annotations; return why there is none, or nothing."""
    from mzseek.export.job import annotate_files

    with watched() as progress:
        done = annotate_files(
            files, out, config, settings=settings, progress=progress, log=say, **how
        )
    tell(done)
    if as_json:
        print_json({"out": str(done.out), **done.counts, "levels": done.levels})
    counts = done.counts
    return _why_nothing(counts["records"], counts["features"]) if done.is_empty else ""


def _why_nothing(records: int, features: int) -> str:
    """Log why no feature has a candidate."""
    if not records:
        return "no spectrum was found in what was given"
    if not features:
        skipped = pluralize(records, "record was", "records were all")
        return f"no feature was annotated ({skipped} skipped)"
    return f"no candidate was found ({pluralize(features, 'feature', 'features')} annotated)"


def tell(done: "FinishedRun") -> None:
    """Print what was done, and where to look."""
    counts = done.counts
    features = pluralize(counts["features"], "feature", "features")
    say(
        f"{pluralize(counts['records'], 'record', 'records')} = {counts['answered']:,} annotated "
        f"({features}) + {counts['set_aside']:,} skipped"
    )
    _tell_database(done.searched["database"])
    _tell_prior(done.searched["prior"])
    if done.levels:
        shown = ", ".join(f"level {level}: {number:,}" for level, number in done.levels.items())
        say(f"Features at {shown}")
    for line in done.messages:
        say(plain(line))
    page = done.out / "report.html" if done.out.is_dir() else done.out
    say(f"[bold]Look at:[/bold] {plain(page)}")


def _tell_database(metadata: dict[str, Any]) -> None:
    is_bundled = metadata["kind"] == "bundled"
    if is_bundled or metadata["molecules"] < _SMALL:
        origin = "given"
        if is_bundled:
            name = plain(Path(metadata["path"]).name)
            origin = "that comes with mzseek" if metadata["shipped"] else f"of the model {name}"
        say(
            f"Searched the small database {origin} "
            f"({pluralize(metadata['molecules'], 'molecule', 'molecules')}): what is not in it "
            "cannot be found."
        )
    if is_bundled:
        say("To search a larger one, make it and name it with --database:")
        for command in larger_databases():
            say(f"  {plain(command)}")


def _tell_prior(metadata: dict[str, Any] | None) -> None:
    if metadata is not None:
        say(f"A prior is applied: {plain(metadata['said'])}.")


def _show_here(files: Any, config: AnnotateConfig, as_json: bool) -> str:
    """Show the first features, a line each, and of one feature its candidates.

    Returns why there is nothing to show, or nothing.
    """
    from mzseek.annotation.annotator import Annotator, config_for

    skipped: list[tuple[str, str]] = []
    annotator = Annotator(config_for(config, files))
    run = annotator.run(files, skipped=skipped, first=_SHOWN)
    annotations = list(run)
    if len(annotations) == 1:
        show_annotation(annotations[0])
    else:
        show_annotations(annotations)
    if run.left > 0:
        more = pluralize(run.left, "more feature", "more features")
        say(f"{more}: give --out to annotate all of them.")
    later = run.records - run.annotated - len(skipped)
    say(
        f"{pluralize(run.records, 'record', 'records')} = {run.annotated:,} annotated + "
        f"{len(skipped):,} skipped{f' + {later:,} not looked at' if later else ''}"
    )
    show_skipped([*skipped, *annotator.skipped_weights])
    for line in run.remarks():
        say(plain(line))
    metadata = annotator.metadata()
    _tell_database(metadata["database"])
    _tell_prior(metadata["prior"])
    if as_json:
        from mzseek.export.json_array import annotation_object

        objects = [annotation_object(annotation) for annotation in annotations]
        print_json({"answers": objects, "set_aside": len(skipped), "left": run.left})
    if run.left > 0 or any(annotation.candidates for annotation in annotations):
        return ""
    return _why_nothing(run.records, len(annotations))


def _has_few(files: Any) -> bool:
    """Whether there are so few spectra that compiling kernels would take longer than they save."""
    return sum(map(len, files.first(_FEW_SPECTRA + 1))) <= _FEW_SPECTRA
