"""What a run is worth when the spectra of a molecule are scored together, as people read it."""

from collections.abc import Mapping, Sequence
from typing import Any

from mzseek.cli.findings.scores import Column, show_scores
from mzseek.cli.output import new_table, say, show


def show_together(
    together: Any, heads: Sequence[str], against: Any, gains: Mapping[str, Any]
) -> None:
    """Hit rates over molecules; ``heads`` are the labels of the run, the control and the gain."""
    say("\n[bold]All spectra of a molecule together[/bold]")
    say(
        f"{len(together.molecule):,} lists of molecules, {together.spectra.sum():,} spectra, "
        f"{together.spectra.mean():.1f} a molecule on average"
    )
    columns = [Column(heads[0], together.intervals())]
    if against is not None:
        columns += [Column(heads[1], against.intervals()), Column(heads[2], gains, signed=True)]
    show_scores(list(together.values), columns, together.chance)


def show_numbers(found: Any) -> None:
    """How spectra were added up, and whether that fits one spectrum and many."""
    from mzseek.evaluation.together import by_number

    b = found.pooling.dependence
    say(
        f"\nn spectra of a molecule say n^{1 - b:.2f} times what one says: a dependence of "
        f"{b:.2f}, fitted on val [dim](0: each is news; 1: copies of one)[/dim]"
    )
    table = new_table()
    for head in ("spectra", "molecules", "sure, %", "right, %"):
        table.add_column(head, justify="right")
    for row in by_number(found):
        few = str(row.least) if row.most == row.least else f"{row.least}–{row.most or ''}"
        sure, right = 100 * row.confidence, 100 * row.accuracy
        table.add_row(few, f"{row.lists:,}", f"{sure:.1f}", f"{right:.1f}")
    show(table)
