"""Experiments from the command line: the trials while they run, the tables when they are done."""

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mzseek.cli.interrupt import GOES_ON, can_go_on
from mzseek.cli.output import new_table, plain, say, show, watched
from mzseek.extras import require

if TYPE_CHECKING:
    from mzseek.experiments.experiment import Experiment, Scale
    from mzseek.experiments.reproduce import Reproduced
    from mzseek.experiments.sweep import Ended, Job

DropModels = Annotated[
    bool,
    typer.Option(
        "--drop-models",
        help="Remove weights and predictions of a run once it is measured; its numbers stay. A run "
        "of full size takes up to a gigabyte.",
    ),
]
_EVERY = 60.0  # seconds between two lines in a log file
_SHOWN = 12  # trials at work that a terminal shows


def run_experiments(
    experiments: "Sequence[Experiment]",
    scale: "Scale",
    out: Path,
    *,
    data: Path | None,
    database: Path | None,
    jobs: int | None,
    engine: str,
    address: str | None,
    drop_models: bool,
) -> tuple[dict[str, Any], Path]:
    """Run experiments and show their tables; the numbers, and the page to look at."""
    from mzseek.experiments.page import write_page
    from mzseek.experiments.registry import kind_named
    from mzseek.experiments.reproduce import reproduce
    from mzseek.experiments.site import Site, claim
    from mzseek.files import sole_writer
    from mzseek.work import engine_named

    worker = engine_named(engine, jobs, address)
    if any(kind_named(one.kind).asked(*one.at(scale)) for one in experiments):
        require("torch", "training")
    claim(out)
    with sole_writer(out / "results", "running experiments"), can_go_on(GOES_ON):
        site = None
        if any(kind_named(one.kind).needs_data for one in experiments):
            with watched() as progress:
                site = Site.at(out, data, database, progress)
        with trials_shown() as (begins, note, ended):
            done = reproduce(
                experiments, scale, site, out / "results" / scale.name, engine=worker,
                drop_models=drop_models, progress=note, say=lambda line: say(plain(line)),
                begins=begins, ended=ended,
            )  # fmt: skip
        for one in done:
            show_experiment(one)
        page = write_page(out)
    return {one.results.experiment.name: one.results.to_dict() for one in done}, page


def show_experiment(done: "Reproduced") -> None:
    """The table of an experiment, and what became of its claims."""
    results = done.results
    experiment = results.experiment
    say(f"\n[bold]{plain(experiment.title)}[/bold] ({plain(experiment.name)})")
    if results.reduced:
        say(f"[dim]reduced: {plain('; '.join(results.reduced))}[/dim]")
    table = new_table()
    table.add_column("")
    for column in experiment.columns:
        unit = ", %" if column.unit == "%" else ""
        head = f"{column.group + ' ' if column.group else ''}{column.label}{unit}"
        table.add_column(plain(head), justify="right")
    for row in experiment.rows:
        cells = [results.cell(row.key, column.key) for column in experiment.columns]
        shown = [
            "–" if cell is None else cell.shown(column)
            for cell, column in zip(cells, experiment.columns, strict=True)
        ]
        table.add_row(plain(row.label), *(plain(text) for text in shown))
    show(table)
    for verdict in done.verdicts:
        say(f"{verdict.state}: {plain(verdict.claim.says)} [dim]({plain(verdict.because)})[/dim]")
    if results.failed:
        say(f"[red]{len(results.failed)} trials failed[/red]; the first:")
        name, why = next(iter(results.failed.items()))
        say(f"  {plain(name)}: {plain(why)}")
    say(f"[dim]{plain(done.folder)}[/dim]")


class _Trials:
    """Which trials there are, which are at work, which have ended."""

    def __init__(self) -> None:
        self.total, self.ended, self.failed = 0, 0, 0
        self.at_work: dict[str, tuple[int, int | None]] = {}
        self.began = time.monotonic()

    def begins(self, jobs: "Sequence[Job]") -> None:
        self.total = len(jobs)
        self.began = time.monotonic()

    def note(self, name: str, done: int, total: int | None = None) -> None:
        self.at_work[name] = (done, total)

    def end(self, one: "Ended") -> None:
        self.ended += 1
        self.failed += bool(one.failed)
        self.at_work.pop(one.name, None)

    def line(self) -> str:
        seconds = time.monotonic() - self.began
        left = seconds / self.ended * (self.total - self.ended) if self.ended else None
        failed = f", {self.failed} failed" if self.failed else ""
        rest = f", about {_spoken(left)} left" if left is not None else ""
        return (
            f"{self.ended:,} of {self.total:,} trials have ended{failed}, {_spoken(seconds)}{rest}"
        )


@contextlib.contextmanager
def trials_shown() -> Iterator[tuple[Any, Any, Any]]:
    """A live table of trials where a person is watching; now and then a line in a log file.

    Gives three callables: one hears of all trials, one of steps, one of each end.
    """
    trials = _Trials()
    with _live(trials) if sys.stderr.isatty() else _logged(trials) as told:

        def begins(jobs: "Sequence[Job]") -> None:
            trials.begins(jobs)
            told()

        def note(name: str, done: int, total: int | None = None) -> None:
            trials.note(name, done, total)
            told()

        def ended(one: "Ended") -> None:
            trials.end(one)
            told()

        yield begins, note, ended


@contextlib.contextmanager
def _live(trials: _Trials) -> Iterator[Any]:
    from rich.console import Console, Group
    from rich.live import Live

    def drawn() -> Any:
        table = new_table()
        for head in ("trial at work", "step", "of", "%"):
            table.add_column(head, justify="left" if head == "trial at work" else "right")
        for name, (done, total) in list(trials.at_work.items())[:_SHOWN]:
            share = f"{100 * done / total:.0f}" if total else ""
            table.add_row(plain(name), f"{done:,}", f"{total or 0:,}", share)
        return Group(table, trials.line()) if trials.at_work else trials.line()

    with Live(get_renderable=drawn, console=Console(stderr=True, emoji=False), transient=True):
        yield lambda: None


@contextlib.contextmanager
def _logged(trials: _Trials) -> Iterator[Any]:
    said = [time.monotonic()]

    def told() -> None:
        if time.monotonic() - said[0] > _EVERY:
            said[0] = time.monotonic()
            print(f"mzseek: {trials.line()}", file=sys.stderr, flush=True)

    yield told


def _spoken(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
