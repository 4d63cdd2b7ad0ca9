"""What people see: progress while they wait, tables when it is done."""

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from mzseek.data.check import CheckReport
from mzseek.data.progress import Progress as ProgressCallback
from mzseek.data.progress import silent

# Plain width where the output is a file: tables then don't wrap at 80 columns.
console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
_LEVEL_STYLE = {"fault": "bold red", "warning": "yellow", "note": "dim"}


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
    tasks: dict[str, object] = {}
    with bars:

        def note(stage: str, done: int, total: int | None = None) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)  # type: ignore[arg-type]

        yield note


def show_check(report: CheckReport) -> None:
    """Findings of a data check, worst first; what was not met is one line."""
    counts = ", ".join(f"{count:,} {what}" for what, count in report.counts.items())
    console.print(f"Looked at {counts}.")
    met = sorted(
        (f for f in report.findings if f.count),
        key=lambda f: ("fault", "warning", "note").index(f.level),
    )
    if met:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("level")
        table.add_column("count", justify="right")
        table.add_column("what it means, and examples")
        for finding in met:
            style = _LEVEL_STYLE[finding.level]
            text = f"[bold]{finding.name}[/bold]: {finding.meaning}"
            text += "".join(f"\n  [dim]{_plain(example)}[/dim]" for example in finding.examples)
            table.add_row(
                f"[{style}]{finding.level}[/{style}]", f"{finding.count:,}/{finding.out_of:,}", text
            )
        console.print(table)
    absent = [f.name for f in report.findings if not f.count]
    if absent:
        console.print(f"[green]None of:[/green] {', '.join(absent)}.")


def show_rejects(rejects: Sequence[tuple[str, str]], listed_in: str | None = None) -> None:
    """Records set aside, grouped by reason, with one example each."""
    if not rejects:
        return
    groups = Counter(_kind(reason) for _, reason in rejects)
    console.print(f"[yellow]Set aside: {len(rejects):,}[/yellow]")
    for kind, count in groups.most_common(8):
        where, reason = next((w, r) for w, r in rejects if _kind(r) == kind)
        place = where if len(where) <= 60 else "…" + where[-59:]
        line = f"  {count:,} × {_plain(reason, 120)}  [dim]({_plain(place)})[/dim]"
        console.print(line, soft_wrap=True)
    if len(groups) > 8:
        console.print(f"  … and {len(groups) - 8} other reasons")
    if listed_in:
        console.print(f"  all in {listed_in}")


def _kind(reason: str) -> str:
    """Reason without its numbers and quotations, for grouping."""
    quoted = reason.split("'")
    return "".join(c for c in "'".join(quoted[::2]) if not c.isdigit())[:50]


def _plain(text: str, limit: int = 160) -> str:
    """Text in which square brackets (adducts, SMILES) are not taken for markup."""
    return escape(text if len(text) <= limit else text[: limit - 1] + "…")
