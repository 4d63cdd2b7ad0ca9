"""``mzseek reproduce`` and ``mzseek tune``."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mzseek.cli.errors import RESUME_SAME_COMMAND, resumable
from mzseek.cli.options import AsJson, EngineOptions, options_of
from mzseek.cli.output import new_table, plain, print_json, say, say_plain, show, watched
from mzseek.core.errors import require

if TYPE_CHECKING:
    from mzseek.experiments.experiment import Experiment, Scale
    from mzseek.experiments.reproduce import Reproduced


Results = Annotated[Path, typer.Option(help="Folder for runs and results.")]


@dataclass
class SweepOptions(EngineOptions):
    """Options of every command that trains several models."""

    gpus: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="GPUs to use, one for each trial at a time; all by default, 0 for none.",
            show_default=False,
        ),
    ] = None
    database: Annotated[
        Path | None, typer.Option(help="Molecules that hard negatives are mined from.")
    ] = None
    drop_models: Annotated[
        bool,
        typer.Option(
            "--drop-models",
            help="Remove weights and predictions of a run once it is measured; its numbers stay. A "
            "run of full size takes up to a gigabyte.",
        ),
    ] = False


def _run(
    experiments: "Sequence[Experiment]", scale: "Scale", out: Path, data: Path | None,
    how: SweepOptions, as_json: bool,
) -> None:  # fmt: skip
    """Run experiments, show their tables, and name the page to look at."""
    from mzseek.experiments.devices import engine_and_devices
    from mzseek.experiments.kinds import kind_named
    from mzseek.experiments.reproduce import reproduce, write_page
    from mzseek.experiments.sweep import Workspace, mark_folder
    from mzseek.io import sole_writer

    worker, devices = None, None
    if any(kind_named(experiment.kind).plan(*experiment.at(scale)) for experiment in experiments):
        require("torch", "training")
        worker, devices = engine_and_devices(how.engine, how.jobs, how.address, how.gpus)
    mark_folder(out)
    with sole_writer(out / "results", "running experiments"), resumable(RESUME_SAME_COMMAND):
        site = None
        if any(kind_named(experiment.kind).needs_data for experiment in experiments):
            with watched() as progress:
                site = Workspace.at(out, data, how.database, progress)
        with watched() as progress:
            done = reproduce(
                experiments, scale, site, out / "results" / scale.label, engine=worker,
                devices=devices, drop_models=how.drop_models, progress=progress, say=say_plain,
            )  # fmt: skip
        for result in done:
            _show(result)
        page = write_page(out)
    if as_json:
        results = {result.results.experiment.name: result.results.to_dict() for result in done}
        print_json({"out": str(out), "page": str(page), "results": results})
    else:
        say(f"[bold]Look at {plain(page)}[/bold] in a browser.")


def _show(done: "Reproduced") -> None:
    """Print the table of an experiment, and which of its claims hold."""
    from mzseek.experiments.tables import as_rows, comparison

    results = done.results
    experiment = results.experiment
    say(f"\n[bold]{plain(experiment.title)}[/bold] ({plain(experiment.name)})")
    if results.reduced:
        say(f"[dim]reduced: {plain('; '.join(results.reduced))}[/dim]")
    content = as_rows(results)
    table = new_table("", *map(plain, content["heads"]))
    for row in content["rows"]:
        table.add_row(plain(row["name"]), *(plain(cell["here"] or "–") for cell in row["cells"]))
    show(table)
    for note in (*results.not_run_notes(), *comparison(results)):
        say(f"[yellow]{plain(note)}[/yellow]")
    for verdict in done.verdicts:
        say(f"{verdict.state}: {plain(verdict.claim.says)} [dim]({plain(verdict.because)})[/dim]")
    if results.failed:
        say(f"[red]{len(results.failed)} trials failed[/red]; the first:")
        name, why = next(iter(results.failed.items()))
        say(f"  {plain(name)}: {plain(why)}")
    say(f"[dim]{plain(done.folder)}[/dim]")


def _list(requested: bool) -> None:
    """Print every experiment, and nothing else."""
    if not requested:
        return
    require("yaml", "reproducing")
    from mzseek.experiments import experiment_named, names

    table = new_table("name", "in the paper", "what", left=3)
    for name in names():
        experiment = experiment_named(name)
        table_name = experiment.paper.partition(" (")[0]  # its label is for who has the source
        table.add_row(name, plain(table_name), plain(experiment.title))
    show(table)
    raise typer.Exit


def _plan(
    experiments: "Sequence[Experiment]", scale: "Scale", data: Path | None, how: SweepOptions,
    as_json: bool,
) -> None:  # fmt: skip
    """Print runs, hours and disk of each experiment and of all; nothing is written."""
    from mzseek.experiments.cost import MASSSPECGYM, count_runs, estimate, fold_sizes

    folds = MASSSPECGYM if data is None and scale.name == "paper" else fold_sizes(data)
    can_mine = data is None or how.database is not None
    named = {single.name: [single] for single in experiments} | {
        "all, shared runs once": [*experiments]
    }
    estimates = {
        name: estimate(
            count_runs(group, scale, can_mine=can_mine), folds, drop_models=how.drop_models
        )
        for name, group in named.items()
    }
    if as_json:
        print_json(
            {
                "scale": scale.name,
                "spectra": folds,
                "plan": {n: vars(e) for n, e in estimates.items()},
            }
        )
        return
    table = new_table("experiment", "runs", "core-hours", "longest run, h", "disk, GB, at most")
    for name, cost in estimates.items():
        numbers = (f"{cost.hours:,.1f}", f"{cost.longest:,.1f}", f"{cost.disk / 1e9:,.1f}")
        table.add_row(plain(name), f"{cost.runs:,}", *numbers)
    show(table)
    of = " (MassSpecGym's)" if folds is MASSSPECGYM else ""
    spectra = f"{folds['train']:,} training and {folds['val']:,} validation spectra{of}"
    say(f"Scale {scale.name}, {spectra}.")
    if not can_mine:
        say("Rows of hard negatives are not run: needs a database (--database DB)")


@options_of(SweepOptions)
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments, as --list has them; all by default.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Data set (a folder, or its table); bundled spectra by default."),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="smoke (minutes), laptop (hours) or paper (the whole protocol).")
    ] = "smoke",
    variant: Annotated[
        str,
        typer.Option(
            help="text (the encoder of the paper's equation, three blocks) or published (that of "
            "the authors' code, two blocks, which the published numbers belong to)."
        ),
    ] = "text",
    out: Results = Path("reproduced"),
    list_them: Annotated[
        bool,
        typer.Option(
            "--list", callback=_list, is_eager=True, help="Name all experiments, and exit."
        ),
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Estimate runs, hours and disk; start nothing.")
    ] = False,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Run the paper's tables and figures, with the published numbers beside.

    Runs that have ended are never run again, and experiments share them. Each experiment gets its
    table (Markdown, LaTeX, CSV), its figure, and which of the paper's claims hold on these data.

    Example: mzseek reproduce main front --data dataset --scale laptop --out reproduced
    """
    require("yaml", "reproducing")
    require("matplotlib", "reproducing")
    from mzseek.experiments import experiment_named, scale_named, with_variant
    from mzseek.experiments import names as known

    size = with_variant(scale_named(scale), variant)
    chosen = [experiment_named(name) for name in dict.fromkeys(names or known())]
    how = SweepOptions(**options)
    if plan:
        _plan(chosen, size, data, how, as_json)
    else:
        _run(chosen, size, out, data, how, as_json)


@options_of(SweepOptions)
def tune(
    grid: Annotated[
        Path, typer.Argument(help="A file that says what to train: rows, columns, protocol.")
    ],
    data: Annotated[Path, typer.Option(help="Data set (a folder, or its table).")],
    out: Results,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Train a grid of one's own, choose on validation, and write the table.

    The file has the form of the paper's experiments. A list of values is tuned over: of each row
    the point with the best mean over seeds on validation is shown.

    Example: mzseek tune grid.yaml --data dataset --out tuned
    """
    require("yaml", "tuning")
    require("matplotlib", "tuning")
    from mzseek.experiments import Scale, read_experiment

    _run(
        [read_experiment(grid)], Scale("tune", protocol="auto"), out, data,
        SweepOptions(**options), as_json,
    )  # fmt: skip
