"""``mzseek annotate``: annotate spectra."""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mzseek.annotation.hypotheses import (
    INSTRUMENTS,
    check_instrument,
    stated_tolerances,
    tolerances,
)
from mzseek.cli.options import EXISTS, IS_LIBRARY, Check, FormerName
from mzseek.cli.output import counted, new_table, plain, say, show
from mzseek.core.errors import AnnotationError

if TYPE_CHECKING:
    from mzseek.annotation.annotation import Annotation, Candidate
    from mzseek.export.job import AnnotationRun


_CANDIDATES = 5
_WIDE = 44


def show_annotations(annotations: "Sequence[Annotation]") -> None:
    """A line for each feature."""
    if not annotations:
        say("No feature was answered.")
        return
    table = new_table()
    for name in (
        "feature",
        "m/z",
        "ion",
        "formula",
        "best candidate",
        "confidence",
        "set",
        "level",
    ):
        right = name in ("m/z", "confidence", "set")
        table.add_column(name, justify="right" if right else "left", no_wrap=right)
    for annotation in annotations:
        best = annotation.best
        table.add_row(
            plain(annotation.feature.name, 30),
            f"{annotation.feature.precursor_mz:.4f}",
            plain(best.adduct) if best else "",
            plain(best.formula) if best else "",
            plain(_named(best), _WIDE) if best else "no candidate of this mass",
            f"{annotation.confidence:.0%}" if best else "",
            f"{annotation.set_size:,}" if best else "",
            annotation.level.number,
        )
    show(table)
    say("[dim]confidence: probability that the best candidate is the molecule, and in the database "
        "at all; set: candidates that hold it with the stated coverage[/dim]")  # fmt: skip


def show_annotation(annotation: "Annotation") -> None:
    """One feature: its candidates, and why the first is the first."""
    feature = annotation.feature
    spectra = counted(len(feature.spectra), "spectrum", "spectra")
    say(f"[bold]{plain(feature.name)}[/bold]  m/z {feature.precursor_mz:.4f}, {spectra}, "
        f"{counted(annotation.found, 'candidate', 'candidates')} in the database")  # fmt: skip
    if annotation.candidates:
        _show_candidates(annotation)
        _show_reasons(annotation)
    say(f"Level {annotation.level.number}: {plain(annotation.level.reason)}")
    for note in annotation.notes:
        say(f"[dim]Note: {plain(note)}[/dim]")


def _show_candidates(annotation: "Annotation") -> None:
    table = new_table()
    for name in ("rank", "probability", "candidate", "formula", "ion", "explained", "set"):
        table.add_column(name, justify="right" if name in ("probability", "explained") else "left")
    for rank, each in enumerate(annotation.candidates[:_CANDIDATES], 1):
        table.add_row(
            str(rank),
            f"{each.probability:.1%}",
            plain(_named(each), _WIDE),
            plain(each.formula),
            plain(each.adduct),
            f"{each.explained:.0%}",
            "in" if each.in_set else "",
        )
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
    say(f"Reasons, in nats against the average candidate: {', '.join(parts)}")
    if best.analog is not None:
        say(f"Nearest analog: {plain(best.analog.record)} (spectral similarity "
            f"{best.analog.similarity:.2f}, Tanimoto {best.analog.likeness:.2f})")  # fmt: skip
    if annotation.present is not None:
        say(f"Probability that the molecule is in the database: {annotation.present:.0%}")
    others = {o: annotation.candidates[at] for o, at in annotation.choices.items() if at}
    for objective, other in others.items():
        say(f"[dim]Decided for {objective}: {plain(_named(other), _WIDE)}[/dim]")


def _named(candidate: "Candidate") -> str:
    return candidate.name or candidate.smiles


# Up to so many spectra are answered sooner in plain Python than kernels are compiled, by the few
# candidates that the small database has for each.
_FEW_SPECTRA = 5
_SMALL = 200_000  # molecules: a smaller database is called small
_SHOWN = 10
NOTHING_FOUND = 3  # exit status of a run in which no feature has a candidate


def annotate(
    spectra: Annotated[
        list[Path],
        typer.Argument(help="Files or folders of spectra: MGF, MSP, mzML, mzXML, MassBank, …"),
        EXISTS,
    ],
    database: Annotated[
        str | None,
        typer.Option(
            help="Candidates: a database (`mzseek database build`), a list of molecules (CSV, TSV, "
            "SMILES, SDF, Parquet, .xlsx, MetFrag's .psv; with a column feature: a list for each), "
            "or library for its own molecules. The small one that comes with mzseek by default."
        ),
    ] = None,
    smiles_column: Annotated[
        str | None, typer.Option(help="Column with SMILES, in a list of molecules.")
    ] = None,
    name_column: Annotated[
        str | None, typer.Option(help="Column with names, in a list of molecules.")
    ] = None,
    library: Annotated[
        list[Path] | None,
        typer.Option(
            help="Your reference spectra (`mzseek library build`), for matches and analogs."
        ),
        IS_LIBRARY,
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="A bundle; the one that comes with mzseek by default.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to make, or a file: .tsv .json .html .mztab .graphml .csv"),
    ] = None,
    objective: Annotated[
        str, typer.Option(help="What the answer is decided for: hit, tanimoto, cosine, bits or f1.")
    ] = "hit",
    adduct: Annotated[
        list[str] | None,
        typer.Option(help="Ion: only these are tried; with a + before it, also. Several times."),
    ] = None,
    ppm: Annotated[
        str | None,
        typer.Option(
            help="Tolerance of precursors: ppm, or 0.01Da; by default 10, or as wide as a "
            "precursor is coarse."
        ),
    ] = None,
    peak_ppm: Annotated[
        str | None, typer.Option(help="Tolerance of peaks; that of the model by default.")
    ] = None,
    instrument: Annotated[
        str | None,
        typer.Option(
            help=f"Tolerances by instrument, where not given: {', '.join(INSTRUMENTS)}. By default "
            "qtof, where all files state such an instrument."
        ),
        Check(check_instrument),
    ] = None,
    coverage: Annotated[
        float, typer.Option(help="Of the prediction set: how often it should hold the molecule.")
    ] = 0.9,
    expected_in_database: Annotated[
        float | None,
        typer.Option(
            help="Share of your features whose molecule you expect in the database; by default "
            "0.07 to 0.17, by its size."
        ),
        FormerName("--known"),
    ] = None,
    strict: Annotated[
        bool | None,
        typer.Option(
            "--strict/--no-strict",
            help="Only molecules of the database are candidates, also where a reference spectrum "
            "of another one matches; by default for lists of single features.",
        ),
    ] = None,
    keep_mass_mismatches: Annotated[
        bool,
        typer.Option(
            "--keep-mass-mismatches",
            help="Keep candidates listed for a feature whose mass contradicts its precursor.",
        ),
    ] = False,
    formulas: Annotated[
        Path | None, typer.Option(help="Table of feature and formula, where it is known.")
    ] = None,
    prior: Annotated[
        str,
        typer.Option(
            help="Count in what no spectrum says: learned (which molecules people measure), or a "
            "table of SMILES or InChIKey and weight. In a column of its own."
        ),
    ] = "none",
    group: Annotated[
        str, typer.Option(help="Spectra are one feature by id, by precursor and time, or none.")
    ] = "id",
    rt_window: Annotated[float, typer.Option(help="Seconds, for --group precursor.")] = 10.0,
    rt_unit: Annotated[
        str | None,
        typer.Option(help="Unit of retention times that the file states without one: min or s."),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            help="Feature table of MZmine, MS-DIAL, Progenesis QI, MetaboScape or XCMS: written "
            "again with annotations joined."
        ),
    ] = None,
    network: Annotated[
        Path | None, typer.Option(help="Molecular network (GraphML, or edges) to join answers to.")
    ] = None,
    max_candidates: Annotated[
        int,
        typer.Option(min=1, help="Candidates of a feature, at most: the nearest by mass."),
        FormerName("--most"),
    ] = 5_000,
    top: Annotated[int, typer.Option(min=1, help="Candidates of a feature that are shown.")] = 100,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a killed process has left off.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace what is there even if annotate has not written it so."
        ),
    ] = False,
    allow_empty: Annotated[
        bool,
        typer.Option(
            "--allow-empty",
            help=f"No exit status {NOTHING_FOUND} where no feature has a candidate.",
        ),
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; all cores by default.")
    ] = None,
    json_output: Annotated[
        bool, typer.Option("--json", help="End with a JSON object, alone on standard output.")
    ] = False,
) -> None:
    """Find the molecules behind spectra: ranked, with reasons and a confidence.

    Works offline. Every feature keeps your own id. Without --out, the first ten are shown here.

    Example: mzseek annotate my.mgf --out annotations
    """
    from mzseek.core.compiled import disable_compilation, has_compiled_cache

    few = database is None and _count(spectra, _FEW_SPECTRA + 1) <= _FEW_SPECTRA
    if few and not has_compiled_cache():
        disable_compilation()
    from mzseek.annotation.config import annotate_config
    from mzseek.annotation.hypotheses import Ions
    from mzseek.annotation.reading import Grouping
    from mzseek.core.registry import check_name
    from mzseek.decision import UTILITIES
    from mzseek.export.output import is_folder

    check_name(UTILITIES, objective, "objective", AnnotationError)
    if out is not None:  # an unknown suffix is told before anything is read
        is_folder(out, (".html",))
    lines: tuple[str, ...] = ()
    if instrument is ppm is peak_ppm is None:
        instrument, tolerance, peaks, lines = stated_tolerances(spectra)
    else:
        tolerance, peaks = tolerances(instrument, ppm, peak_ppm)
    config = annotate_config(
        model=model,
        database=database,
        smiles_column=smiles_column,
        name_column=name_column,
        library=library,
        precursor=tolerance,
        peaks=peaks,
        instrument=instrument,
        ions=Ions.parse(adduct or ()),
        max_candidates=max_candidates,
        formulas=_formulas(formulas),
        prior=prior,
        objective=objective,
        coverage=coverage,
        top=top,
        expected_in_database=expected_in_database,
        remarks=lines,
        strict=strict,
        keep_mass_mismatches=keep_mass_mismatches,
    )
    grouping = Grouping(group, tolerance, rt_window, rt_unit)
    if out is None and resume:
        raise AnnotationError("--resume: there is no --out to go on with")
    from mzseek.cli.output import only_json
    from mzseek.export.writer import Settings

    title = " ".join(path.name for path in spectra)
    read = () if formulas is None else (formulas,)
    settings = Settings(title=title, network=network, features=features, read=read)
    with only_json() if json_output else nullcontext():
        if out is None:
            nothing = _show_here(spectra, config, grouping, json_output)
        else:
            nothing = _run(
                spectra, config, grouping, out, settings, json_output,
                resume=resume, force=force, jobs=jobs,
            )  # fmt: skip
    if nothing and not allow_empty:
        print(f"mzseek: {nothing}; --allow-empty accepts this", file=sys.stderr)
        raise typer.Exit(NOTHING_FOUND)


def _run(
    spectra: list[Path],
    config: Any,
    grouping: Any,
    out: Path,
    settings: Any,
    as_json: bool,
    **how: Any,
) -> str:
    """Write annotations; returns why there is none, or nothing."""
    from mzseek.cli.output import print_json, say, watched
    from mzseek.export.job import annotate_files
    from mzseek.export.report import report_writers

    with watched() as progress:
        done = annotate_files(
            spectra, out, config, grouping=grouping, settings=settings, more=report_writers,
            progress=progress, say=say, **how,
        )  # fmt: skip
    tell(done)
    if as_json:
        print_json({"out": str(done.out), **done.counts, "levels": done.levels})
    counts = done.counts
    return _why_nothing(counts["records"], counts["features"]) if done.is_empty else ""


def _why_nothing(records: int, features: int) -> str:
    """Log why no feature has a candidate."""
    from mzseek.cli.output import counted

    if not records:
        return "no spectrum was found in what was given"
    if not features:
        skipped = counted(records, "record was", "records were all")
        return f"no feature was annotated ({skipped} skipped)"
    return f"no candidate was found ({counted(features, 'feature', 'features')} annotated)"


def tell(done: "AnnotationRun") -> None:
    """What was done, and where to look."""
    from mzseek.cli.output import counted, plain, say

    counts = done.counts
    features = counted(counts["features"], "feature", "features")
    say(
        f"{counted(counts['records'], 'record', 'records')} = {counts['answered']:,} answered "
        f"({features}) + {counts['set_aside']:,} set aside"
    )
    _tell_database(done.facts["database"])
    _tell_prior(done.facts["prior"])
    if done.levels:
        shown = ", ".join(f"{number:,} of level {level}" for level, number in done.levels.items())
        say(f"Confidence: {shown}")
    for line in done.said:
        say(plain(line))
    page = done.out / "report.html" if done.out.is_dir() else done.out
    say(f"[bold]Look at:[/bold] {plain(page)}")


def _tell_database(facts: dict[str, Any]) -> None:
    from mzseek.annotation.config import larger_databases
    from mzseek.cli.output import plain, say

    is_bundled = facts["kind"] == "bundled"
    if is_bundled or facts["molecules"] < _SMALL:
        own = "given"
        if is_bundled:
            name = plain(Path(facts["path"]).name)
            own = "that comes with mzseek" if facts["shipped"] else f"of the model {name}"
        say(
            f"Searched the small database {own} ({facts['molecules']:,} molecules): what is not in "
            "it cannot be found."
        )
    if is_bundled:
        say("To search a larger one, make it and name it with --database:")
        for command in larger_databases():
            say(f"  {plain(command)}")


def _tell_prior(facts: dict[str, Any] | None) -> None:
    from mzseek.cli.output import plain, say

    if facts is not None:
        say(f"A prior is counted in: {plain(facts['said'])}.")


def _show_here(spectra: list[Path], config: Any, grouping: Any, as_json: bool) -> str:
    """Show the first features, a line each, and of one feature its candidates.

    Returns why there is nothing to show, or nothing.
    """
    from mzseek.annotation.annotator import Annotator, SkippedFeature, answered
    from mzseek.annotation.reading import FeatureFiles
    from mzseek.cli.output import counted, plain, print_json, say, show_rejects
    from mzseek.export.job import SkippedCandidates, remarks

    rejects: list[tuple[str, str]] = []
    annotator = Annotator(config)
    found = FeatureFiles(spectra, grouping, rejects)
    named, annotations, met = annotator.named(), [], 0
    features = named.meet(found)
    for feature in features:
        for one in answered(annotator, [feature]):
            if isinstance(one, SkippedFeature):
                rejects += [(one.where, one.reason)] * one.spectra
            else:
                annotations.append(one)
            met += 1
        if len(annotations) >= _SHOWN:
            break
    if len(annotations) == 1:
        show_annotation(annotations[0])
    else:
        show_annotations(annotations)
    left = len(found) - met
    if left > 0:
        more = counted(left, "more feature", "more features")
        say(f"{more}: give --out to answer all of them.")
    read = sum(annotation.feature.records for annotation in annotations)
    later = found.records + found.set_aside - read - len(rejects)
    say(
        f"{counted(found.records + found.set_aside, 'record', 'records')} = {read:,} answered + "
        f"{len(rejects):,} set aside{f' + {later:,} not looked at' if later else ''}"
    )
    show_rejects([*rejects, *annotator.prior_rejects])
    while named and next(features, None):  # the others are not answered, but their names count
        pass
    explained = [annotation.best.explained for annotation in annotations if annotation.best]
    skipped = SkippedCandidates()
    for annotation in annotations:
        skipped.add(annotation)
    for line in [*found.warnings(), *remarks(annotator, named, explained, skipped)]:
        say(plain(line))
    facts = annotator.facts()
    _tell_database(facts["database"])
    _tell_prior(facts["prior"])
    if as_json:
        from mzseek.export.json_array import annotation_object

        print_json(
            {
                "answers": [annotation_object(annotation) for annotation in annotations],
                "set_aside": len(rejects),
                "left": max(left, 0),
            }
        )
    if left > 0 or any(annotation.candidates for annotation in annotations):
        return ""
    return _why_nothing(found.records + found.set_aside, len(annotations))


def _count(paths: list[Path], most: int) -> int:
    """Spectra of files, up to a number."""
    from itertools import islice

    from mzseek.spectra import read_spectra

    found = 0
    for path in paths:
        found += sum(1 for _ in islice(read_spectra(path, []), most - found))
        if found >= most:
            break
    return found


def _formulas(path: Path | None) -> tuple[tuple[str, str], ...]:
    if path is None:
        return ()
    from mzseek.annotation.candidates import read_formulas

    return tuple(read_formulas(path).items())
