"""What people see: progress while they wait, tables when it is done."""

import contextlib
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from mzseek.data.check import CheckReport, Finding
from mzseek.rejects import Groups
from mzseek.work.progress import Progress as ProgressCallback
from mzseek.work.progress import silent

# A fixed width where the output is a file, so that tables don't wrap at 80 columns.
_width = None if sys.stdout.isatty() else int(os.environ.get("COLUMNS") or 110)
console = Console(width=_width, highlight=False)
# All of Unicode's controls but the tab, and the marks that turn the direction of text around.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SHOWN_KINDS = 8
_LEVEL_STYLE = {"fault": "bold red", "warning": "yellow", "note": "dim"}


def say(text: str) -> None:
    """Print a sentence; the terminal wraps it, and a file keeps it on one line."""
    console.print(text, soft_wrap=True)


@contextlib.contextmanager
def watched() -> Iterator[ProgressCallback]:
    """Progress bars, one a stage, when a person is watching; nothing in a log file."""
    if not sys.stderr.isatty():
        yield silent
        return
    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    tasks: dict[str, TaskID] = {}
    with bars:

        def note(stage: str, done: int, total: int | None = None) -> None:
            if stage not in tasks:
                for earlier in bars.tasks:  # a stage of unknown length is over when another begins
                    bars.update(earlier.id, total=earlier.total or earlier.completed or 1)
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield note


def show_check(report: CheckReport) -> None:
    """Findings of a data check, worst first; those of several candidate lists in one row."""
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
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("level", "count", "what it means, and examples"):
            table.add_column(column)
        for (level, name), findings in met.items():
            table.add_row(*_check_row(level, name, findings))
        console.print(table)
    names = {name for _, name in met}
    absent = dict.fromkeys(f.name for f in report.findings if f.name not in names)
    if absent:
        say(f"[green]None of:[/green] {', '.join(absent)}.")


def _check_row(level: str, name: str, findings: list[Finding]) -> tuple[str, str, str]:
    count = "\n".join(f"{f.count:,}/{f.out_of:,} {f.setting or ''}".rstrip() for f in findings)
    text = f"[bold]{name}[/bold]: {findings[0].meaning}"
    examples = dict.fromkeys(example for finding in findings for example in finding.examples)
    text += "".join(f"\n  [dim]{plain(example, 160)}[/dim]" for example in list(examples)[:3])
    style = _LEVEL_STYLE[level]
    return f"[{style}]{level}[/{style}]", count, text


def show_rejects(rejects: Iterable[tuple[str, str]] | Groups, listed_in: str | None = None) -> None:
    """Records set aside, by kind, each with an example."""
    if isinstance(rejects, Groups):
        groups = rejects
    else:
        groups = Groups()
        for where, reason in rejects:
            groups(where, reason)
    if not groups.total:
        return
    say(f"[yellow]Set aside: {groups.total:,}[/yellow]")
    kinds = groups.by_count()
    for group in kinds[:_SHOWN_KINDS]:
        place = group.where if len(group.where) <= 60 else "…" + group.where[-59:]
        # The place is enough where the kind says all that the reason does.
        example = place if group.kind == group.reason else f"{place}: {group.reason}"
        say(f"  {group.count:,} × {plain(group.kind, 160)}")
        say(f"    [dim]e.g. {plain(example, 220)}[/dim]")
    if len(kinds) > _SHOWN_KINDS:
        rest = sum(group.count for group in kinds[_SHOWN_KINDS:])
        say(f"  {rest:,} for other reasons")
    if listed_in:
        say(f"  all in {plain(listed_in)}")


def counted(number: int, one: str, many: str) -> str:
    """A number with its noun."""
    return f"{number:,} {one if number == 1 else many}"


def plain(text: object, limit: int = 1000) -> str:
    r"""Text of a user, a file or a path, for `say` and tables: shown as it is, and doing nothing.

    Square brackets are not taken for markup, and control characters, which could move the cursor
    or recolour the screen, are shown as marks.

    Examples
    --------
    >>> plain("runs/[red]a\x1b[2J")
    'runs/\\[red]a�[2J'
    """
    shown = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(text))
    return escape(shown if len(shown) <= limit else shown[: limit - 1] + "…")
