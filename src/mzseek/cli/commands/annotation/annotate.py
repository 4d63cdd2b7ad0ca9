"""``mzseek annotate``: a file of spectra in, ranked molecules out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mzseek.annotation.asking.instruments import (
    INSTRUMENTS,
    check_instrument,
    stated_tolerances,
    tolerances,
)
from mzseek.cli.early import early, look_for_file, look_for_library
from mzseek.errors import AnnotationError

if TYPE_CHECKING:
    from mzseek.annotation.job import Done

# Up to so many spectra are answered sooner in plain Python than kernels are compiled, by the few
# candidates that the small database has for each.
_FEW_SPECTRA = 5
_SMALL = 200_000  # molecules: a smaller database is called small
_SHOWN = 10


@early(instrument=check_instrument, spectra=look_for_file, library=look_for_library)
def annotate(
    spectra: Annotated[
        list[Path],
        typer.Argument(help="Files or folders of spectra: MGF, MSP, mzML, mzXML, MassBank, …"),
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
    ] = None,
    coverage: Annotated[
        float, typer.Option(help="Of the prediction set: how often it should hold the molecule.")
    ] = 0.9,
    known: Annotated[
        float | None,
        typer.Option(
            help="Share of your features whose molecule you expect in the database; by default "
            "0.1 to 0.17, by its size."
        ),
    ] = None,
    strict: Annotated[
        bool | None,
        typer.Option(
            "--strict/--no-strict",
            help="Only molecules of the database are candidates, also where a reference spectrum "
            "of another one matches; by default for lists of single features.",
        ),
    ] = None,
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
    most: Annotated[
        int, typer.Option(min=1, help="Candidates of a feature, at most: the nearest by mass.")
    ] = 5_000,
    top: Annotated[int, typer.Option(min=1, help="Candidates of a feature that are shown.")] = 100,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a killed process has left off.")
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

    Example: mzseek annotate my.mgf --out answers
    """
    from mzseek.compiled import machine_code_is_kept, stay_plain

    few = database is None and _count(spectra, _FEW_SPECTRA + 1) <= _FEW_SPECTRA
    if few and not machine_code_is_kept():
        stay_plain()
    from mzseek.annotation.answering import Wanted
    from mzseek.annotation.asking.ions import Ions
    from mzseek.annotation.opening.setup import setup_of
    from mzseek.annotation.reading import Grouping
    from mzseek.decision import UTILITIES
    from mzseek.registry import check_name

    check_name(UTILITIES, objective, "objective", AnnotationError)
    lines: tuple[str, ...] = ()
    if instrument is ppm is peak_ppm is None:
        instrument, tolerance, peaks, lines = stated_tolerances(spectra)
    else:
        tolerance, peaks = tolerances(instrument, ppm, peak_ppm)
    setup = setup_of(
        model=model,
        database=database,
        smiles_column=smiles_column,
        name_column=name_column,
        library=library,
        precursor=tolerance,
        peaks=peaks,
        instrument=instrument,
        ions=Ions.parse(adduct or ()),
        most=most,
        formulas=_formulas(formulas),
        prior=prior,
        wanted=Wanted(objective, coverage, top, known),
        remarks=lines,
        strict=strict,
    )
    grouping = Grouping(group, tolerance, rt_window, rt_unit)
    if json_output:
        from mzseek.cli.output import only_json

        with only_json():
            _run(spectra, setup, grouping, out, features, network, resume, jobs, as_json=True)
    else:
        _run(spectra, setup, grouping, out, features, network, resume, jobs)


def _run(
    spectra: list[Path],
    setup: Any,
    grouping: Any,
    out: Path | None,
    features: Path | None,
    network: Path | None,
    resume: bool,
    jobs: int | None,
    *,
    as_json: bool = False,
) -> None:
    from mzseek.cli.output import print_json, say, watched

    if out is None:
        if resume:
            raise AnnotationError("--resume: there is no --out to go on with")
        _show_here(spectra, setup, grouping, as_json)
        return
    from mzseek.annotation.job import annotate_files
    from mzseek.annotation.writing import Settings
    from mzseek.report.annotations import report_writers

    with watched() as progress:
        done = annotate_files(
            spectra, out, setup, grouping=grouping,
            settings=Settings(title=" ".join(path.name for path in spectra), network=network,
                              features=features),
            more=report_writers, resume=resume, jobs=jobs, progress=progress, say=say,
        )  # fmt: skip
    tell(done)
    if as_json:
        print_json({"out": str(done.out), **done.counts, "levels": done.levels})


def tell(done: "Done") -> None:
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
    from mzseek.annotation.opening.setup import larger_databases
    from mzseek.cli.output import plain, say

    if facts["kind"] == "in the box" or facts["molecules"] < _SMALL:
        own = "that comes with mzseek" if facts["kind"] == "in the box" else "given"
        say(
            f"Searched the small database {own} ({facts['molecules']:,} molecules): what is not in "
            "it cannot be found."
        )
    if facts["kind"] == "in the box":
        say("To search a larger one, make it and name it with --database:")
        for command in larger_databases():
            say(f"  {plain(command)}")


def _tell_prior(facts: dict[str, Any] | None) -> None:
    from mzseek.cli.output import plain, say

    if facts is not None:
        say(f"A prior is counted in: {plain(facts['said'])}.")


def _show_here(spectra: list[Path], setup: Any, grouping: Any, as_json: bool) -> None:
    """Answers on the screen: the first features, a line each, and of one feature its candidates."""
    from mzseek.annotation.job import remarks
    from mzseek.annotation.pipeline import SetAside, Workshop, answered
    from mzseek.annotation.reading import FeatureFiles
    from mzseek.cli.annotations import show_answer, show_answers
    from mzseek.cli.output import counted, plain, print_json, say, show_rejects

    rejects: list[tuple[str, str]] = []
    shop = Workshop(setup)
    found = FeatureFiles(spectra, grouping, rejects)
    named, answers, met = shop.named(), [], 0
    features = named.meet(found)
    for feature in features:
        for one in answered(shop, [feature]):
            if isinstance(one, SetAside):
                rejects += [(one.where, one.reason)] * one.spectra
            else:
                answers.append(one)
            met += 1
        if len(answers) >= _SHOWN:
            break
    if len(answers) == 1:
        show_answer(answers[0])
    else:
        show_answers(answers)
    left = len(found) - met
    if left > 0:
        more = counted(left, "more feature", "more features")
        say(f"{more}: give --out to answer all of them.")
    read = sum(len(answer.feature.spectra) for answer in answers)
    later = found.records + found.set_aside - read - len(rejects)
    say(
        f"{counted(found.records + found.set_aside, 'record', 'records')} = {read:,} answered + "
        f"{len(rejects):,} set aside{f' + {later:,} not looked at' if later else ''}"
    )
    show_rejects([*rejects, *shop.prior_rejects])
    while named and next(features, None):  # the others are not answered, but their names count
        pass
    explained = [answer.best.explained for answer in answers if answer.best]
    for line in [*found.warnings(), *remarks(shop, named, explained)]:
        say(plain(line))
    facts = shop.facts()
    _tell_database(facts["database"])
    _tell_prior(facts["prior"])
    if as_json:
        from mzseek.annotation.writing.json_array import answer_object

        print_json(
            {
                "answers": [answer_object(answer) for answer in answers],
                "set_aside": len(rejects),
                "left": max(left, 0),
            }
        )


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
    from mzseek.annotation.candidates.formulas import read_formulas

    return tuple(read_formulas(path).items())
