"""``mzseek report``."""

from pathlib import Path
from typing import Annotated

import typer

from mzseek.cli.options import IS_RUN, AsJson, Fold, Identity, MovedData, Out, TieRule
from mzseek.cli.output import plain, print_json, say, show_tradeoff, watched
from mzseek.core.errors import require
from mzseek.core.registry import FOLDS, IDENTITIES, TIES


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Run folders that `mzseek train` has made, of one data set."),
        IS_RUN,
    ],
    out: Out,
    fold: Fold = FOLDS[-1],
    candidates: Annotated[
        str | None,
        typer.Option(help="Candidate lists; those that the first run was trained with by default."),
    ] = None,
    ties: TieRule = TIES[0],
    identity: Identity = IDENTITIES[0],
    decode: Annotated[
        bool,
        typer.Option(
            help="Also turn scores into probabilities and decode them; some 40 s a run for 5,000 "
            "spectra."
        ),
    ] = True,
    data: MovedData = None,
    as_json: AsJson = False,
) -> None:
    """Pages about runs: the trade-off, calibration, how training went, and the data.

    Runs whose model never sees the spectrum are shown as controls. numbers.json has every number.

    Example: mzseek report runs/bce runs/emb-cos runs/blind --out report
    """
    require("matplotlib", "a report")
    from mzseek.evaluation.scored import Scoring
    from mzseek.export.run_pages import check_runs, labelled, report_runs
    from mzseek.runs.run import Run

    opened = [Run.open(run) for run in runs]
    check_runs(opened)
    setting = candidates or opened[0].measured_on
    how = Scoring(fold, setting, None, ties, identity)  # type: ignore[arg-type]
    with watched() as progress:
        report = report_runs(opened, out, how, decode=decode, data=data, progress=progress)
    page, shown = report.page, report.runs
    if as_json:
        controls = {label: item.control for label, item in labelled(shown).items()}
        print_json({"out": str(out), "page": str(page), "runs": controls})
        return
    if decode and shown[0].posterior is None:
        say("[yellow]no val spectra to calibrate on: nothing is decoded[/yellow]")
    if not any(item.control for item in shown):
        say(
            "[yellow]No run here does without the spectrum: what these reach beyond such a control "
            "is not known.[/yellow] `mzseek train … --model blind` makes one"
        )
    show_tradeoff(shown)
    say(f"[bold]Look at {plain(page)}[/bold] in a browser.")
