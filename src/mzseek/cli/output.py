"""Progress and tables in the terminal."""

import contextlib
import csv
import json
import os
import shlex
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from mzseek.core.text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from mzseek.datasets.check import CheckReport, Finding
    from mzseek.io.skipped import SkippedGroups
    from mzseek.parallel.engine import Progress as ProgressCallback


# Characters of markup, and their stand-ins between `plain` and the console: characters that
# Unicode reserves for such a use. Rich's own way of escaping depends on what comes after.
_MARKUP = str.maketrans({"[": "\ufdd0", "\\": "\ufdd1"})
_SHOWN = {ord(stand_in): original for original, stand_in in _MARKUP.items()}
_SHOWN_KINDS = 8
_LEVEL_STYLE = {"fault": "bold red", "warning": "yellow", "note": "dim"}
_FINISHED_BARS = 10  # that stay in sight
_EVERY = 30.0  # seconds between two lines about long work in a log file
_json_streams: list[TextIO] = []  # standard output, while everything else goes to standard error


@cache
def _console() -> "Console":
    from rich.console import Console
    from rich.errors import MarkupError
    from rich.text import Text

    class ExactConsole(Console):
        """Shows what went through `plain` as it was, wherever Rich takes text for markup."""

        def render_str(self, text: str, **how: Any) -> Text:
            try:
                shown = super().render_str(text, **how)
            except MarkupError:  # somebody forgot `plain`: no reason to lose the line
                shown = Text(text)
            shown.plain = shown.plain.translate(_SHOWN)
            return shown

    # A fixed width where the output is a file, so that tables don't wrap at 80 columns.
    columns = os.environ.get("COLUMNS", "")
    width = None if sys.stdout.isatty() else int(columns) if columns.isdecimal() else 110
    return ExactConsole(width=width, highlight=False, emoji=False)


def say(text: str) -> None:
    """Print a sentence; the terminal wraps it, and a file keeps it on one line.

    It may have Rich's markup in it; what comes from a user, a file or a path goes through `plain`.
    """
    _console().print(text, soft_wrap=True)


def say_plain(line: object) -> None:
    """Print a sentence of a library, which may quote a user, a file or a path."""
    say(plain(line))


def say_next(*words: object) -> None:
    """Print the command that comes next, such that it can be pasted into a shell."""
    texts = [
        f"./{word}" if isinstance(word, Path) and str(word).startswith("-") else str(word)
        for word in words
    ]
    command = shlex.join(texts)
    say(f"[bold]Next:[/bold] {plain(command, 10_000)}")


def new_table(*heads: str, left: int = 1, **options: Any) -> "Table":
    """Return a table without borders or rows.

    Parameters
    ----------
    *heads : str
    left : int
        Columns that are justified to the left; those after them are to the right.
    **options
        Of Rich's table.
    """
    from rich.table import Column, Table

    columns = [
        Column(head, justify="left" if index < left else "right")
        for index, head in enumerate(heads)
    ]
    return Table(*columns, box=None, pad_edge=False, header_style="bold", **options)


def show(table: "Table | Text") -> None:
    """Print a table, or a text in several styles."""
    _console().print(table)


def write_table(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a table to standard output, tab separated; texts are no formulas for a spreadsheet."""
    from mzseek.io.text_tables import text_cell

    writer = csv.writer(sys.stdout, delimiter="\t", lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow(f"{v:.6f}" if isinstance(v, float) else text_cell(str(v)) for v in row)


def terminal() -> tuple[int, str]:
    """Return the columns of the output, and the name of its encoding."""
    return _console().width, _console().encoding


@contextlib.contextmanager
def only_json() -> Iterator[None]:
    """Keep standard output for `print_json`: all else that is printed goes to standard error."""
    _json_streams.append(sys.stdout)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _json_streams.pop()


def print_json(record: Any) -> None:
    """Print the object that ``--json`` asks for, in one line."""
    print(json.dumps(record), file=_json_streams[-1] if _json_streams else sys.stdout)


@contextlib.contextmanager
def watched(every: float = _EVERY) -> "Iterator[ProgressCallback]":
    """Show progress: bars, one a stage, for a person; now and then a line in a log file.

    Parameters
    ----------
    every : float
        Seconds between two such lines; work that is shorter than that says nothing.
    """
    with _bars() if sys.stderr.isatty() else _lines(every) as note:
        yield note


@contextlib.contextmanager
def _bars() -> "Iterator[ProgressCallback]":
    from rich import progress as rich_progress
    from rich.console import Console

    bars = rich_progress.Progress(
        rich_progress.SpinnerColumn(),
        rich_progress.TextColumn("{task.description}", markup=False),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TimeRemainingColumn(),
        console=Console(stderr=True, emoji=False),
    )
    tasks: dict[str, rich_progress.TaskID] = {}
    with bars:

        def note(stage: str, done: int, total: int | None = None) -> None:
            if stage not in tasks:
                for task in bars.tasks:  # a stage of unknown length is over when another begins
                    bars.update(task.id, total=task.total or task.completed or 1)
                tasks[stage] = bars.add_task(visible(stage), total=total)
                finished = [task for task in bars.tasks if task.finished and task.visible]
                for task in finished[:-_FINISHED_BARS]:
                    bars.update(task.id, visible=False)
            bars.update(tasks[stage], completed=done, total=total)

        yield note


@contextlib.contextmanager
def _lines(every: float) -> "Iterator[ProgressCallback]":
    latest: tuple[str, int, int | None] | None = None
    begun = time.monotonic()
    over = threading.Event()

    def note(stage: str, done: int, total: int | None = None) -> None:
        nonlocal latest
        latest = stage, done, total

    def tell() -> None:  # by the clock: a stage that says nothing is the one to wonder about
        while not over.wait(every):
            print(_progress_line(latest, time.monotonic() - begun), file=sys.stderr, flush=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield note
    finally:
        over.set()
        teller.join()


def _progress_line(latest: tuple[str, int, int | None] | None, seconds: float) -> str:
    """Return a line on what has been done, and for how long.

    Examples
    --------
    >>> _progress_line(("molecules", 12_000, 30_000), 90.3)
    'mzseek: molecules: 12,000 of 30,000, 1 min 30 s'
    >>> _progress_line(("reading", 0, None), 30)
    'mzseek: reading, 30 s'
    """
    minutes, rest = divmod(round(seconds), 60)
    took = f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
    if latest is None:
        return f"mzseek: working, {took}"
    stage, done, total = latest
    of = "" if total is None else f" of {total:,}"
    count = f": {done:,}{of}" if done or total else ""
    return f"mzseek: {visible(stage)}{count}, {took}"


def show_check(report: "CheckReport") -> None:
    """Print findings of a data check, worst first; those of several candidate lists in one row."""
    counts = ", ".join(f"{count:,} {what}" for what, count in report.counts.items())
    say(f"Looked at {counts}.")
    met: dict[tuple[str, str], list[Finding]] = {}
    for finding in sorted(report.findings, key=lambda f: list(_LEVEL_STYLE).index(f.level)):
        if finding.count:
            met.setdefault((finding.level, finding.name), []).append(finding)
    tally = Counter(level for level, _ in met)
    verdict = [f"{n} kind{'s' if n != 1 else ''} of {level}" for level, n in tally.items()]
    say(f"[bold]{' and '.join(verdict) or 'Nothing'} found.[/bold]")
    if met:
        table = new_table("level", "count", "what it means, and examples", left=3)
        for (level, name), findings in met.items():
            table.add_row(*_check_row(level, name, findings))
        show(table)
    names = {name for _, name in met}
    absent = dict.fromkeys(f.name for f in report.findings if f.name not in names)
    if absent:
        say(f"[green]None of:[/green] {', '.join(absent)}.")


def _check_row(level: str, name: str, findings: "list[Finding]") -> tuple[str, str, str]:
    count = "\n".join(
        f"{f.count:,}/{f.out_of:,} {plain(f.setting or '')}".rstrip() for f in findings
    )
    text = f"[bold]{name}[/bold]: {findings[0].meaning}"
    examples = dict.fromkeys(example for finding in findings for example in finding.examples)
    text += "".join(f"\n  [dim]{plain(example, 160)}[/dim]" for example in list(examples)[:3])
    style = _LEVEL_STYLE[level]
    return f"[{style}]{level}[/{style}]", count, text


def show_skipped(
    skipped: "Iterable[tuple[str, str]] | SkippedGroups", listed_in: Path | str | None = None
) -> None:
    """Print skipped records by kind, each with an example."""
    from mzseek.io.skipped import SkippedGroups

    if isinstance(skipped, SkippedGroups):
        groups = skipped
    else:
        groups = SkippedGroups()
        for where, reason in skipped:
            groups(where, reason)
    if not groups.total:
        return
    say(f"[yellow]Skipped: {groups.total:,}[/yellow]")
    kinds = groups.by_count()
    for group in kinds[:_SHOWN_KINDS]:
        where_text = group.where if len(group.where) <= 60 else "…" + group.where[-59:]
        # The location is enough where kind and reason are equal.
        example = where_text if group.kind == group.reason else f"{where_text}: {group.reason}"
        say(f"  {group.count:,} × {plain(group.kind, 160)}")
        say(f"    [dim]e.g. {plain(example, 220)}[/dim]")
    if len(kinds) > _SHOWN_KINDS:
        rest = sum(group.count for group in kinds[_SHOWN_KINDS:])
        say(f"  {rest:,} for other reasons")
    if listed_in:
        say(f"  all in {plain(listed_in)}")


def plain(text: object, limit: int = 1000) -> str:
    r"""Make text of a user, a file or a path safe for `say` and tables.

    Square brackets are not taken for markup, and control characters are shown as marks. What is
    returned is for `say`, `show` and tables alone, where stand-ins become brackets again.

    Examples
    --------
    >>> say("[bold]" + plain("runs/[red]a") + "[/bold] and " + plain("C\\"))
    runs/[red]a and C\
    """
    shown = visible(text)
    return (shown if len(shown) <= limit else shown[: limit - 1] + "…").translate(_MARKUP)


def show_tradeoff(shown: list[Any]) -> None:
    """Print one row for each run, the controls last and in grey, and chance."""
    from mzseek.export.run_pages import LABELS, missing_fingerprints, tradeoff_rows

    how, rows = shown[0].evaluation.how, tradeoff_rows(shown)
    metrics = [metric for metric in LABELS if metric in rows[0].values]
    where = f"%, {how.fold} fold, {plain(how.candidates)} candidates"
    table = new_table(where, *(LABELS[metric] for metric in metrics))
    for row in rows:
        cells = [row.values[metric] for metric in metrics]
        texts = ["–" if value is None else f"{100 * value:.1f}" for value in cells]
        table.add_row(plain(row.name), *texts, style="dim" if row.control else None)
    show(table)
    decoded = (
        "Decoded: each model's probabilities for the candidates, and the fingerprint of highest "
        "expected Tanimoto. "
    )
    note = decoded if any(run.posterior is not None for run in shown) else ""
    say(f"[dim]{note}Grey rows have not seen the spectrum.[/dim]")
    for reason in missing_fingerprints(shown):
        say(f"[dim]No Tanimoto of a predicted fingerprint: {plain(reason)}.[/dim]")
