"""``mzseek decide``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mzseek.chem.fingerprinting import FINGERPRINTS
from mzseek.cli.options import EXISTS, IS_FINGERPRINT, AsJson
from mzseek.cli.output import new_table, plain, print_json, say, show
from mzseek.core.errors import DecisionError
from mzseek.core.registry import check_name
from mzseek.core.text import pluralize
from mzseek.decision.utilities import WITHIN

if TYPE_CHECKING:
    from mzseek.decision import Bounds, Decision

_SHOWN_BITS = 40


def decide(
    table: Annotated[
        Path,
        typer.Argument(
            help="Table (tabs, semicolons or commas) with a column `fingerprint` (0s and 1s), else "
            "`smiles`, and a column `probability`, else `score`."
        ),
        EXISTS,
    ],
    within: Annotated[
        str, typer.Option(help="Decide among the candidates, or for any fingerprint: all.")
    ] = "candidates",
    fingerprint: Annotated[
        str | None,
        typer.Option(help=f"For SMILES: {' '.join(FINGERPRINTS)}; morgan2 by default."),
        IS_FINGERPRINT,
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(help="Scores become probabilities by softmax(score / T); 1 by default."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What to decide for, by the metric that counts, and what each other decision costs.

    Example: mzseek decide candidates.csv --within all
    """
    check_name(WITHIN, within, "--within", DecisionError)
    from mzseek.datasets.scored_table import read_scored_table
    from mzseek.decision import UTILITIES, distribution
    from mzseek.decision.comparison import compare_decisions

    scored = read_scored_table(table, fingerprint, temperature)
    names, candidates = scored.names, distribution(scored.rows, scored.probabilities)
    where: Any = within  # one of the two
    comparison = compare_decisions(candidates, where)
    decisions, values, bounds = comparison.decisions, comparison.expected, comparison.bounds
    if as_json:
        record = {"columns": scored.read, **comparison.to_dict(names)}
        if bounds:
            record["tanimoto_bounds"] = record["bounds"]["tanimoto"]
        print_json(record)
        return
    merged = "" if len(candidates) == len(names) else f", {len(candidates):,} distinct fingerprints"
    say(
        f"{pluralize(len(names), 'candidate', 'candidates')}{merged}; decisions are made "
        f"{'among them' if within == 'candidates' else 'for any fingerprint'}"
    )
    shown = new_table(padding=(0, 1, 0, 0))
    shown.add_column("best for", no_wrap=True)
    shown.add_column("decision", overflow="fold")
    for name, judged in UTILITIES.items():  # narrow, so that it fits into 80 columns
        label = name if len(judged.label) > 8 else judged.label
        shown.add_column(label, justify="right", no_wrap=True)
    for name, decision in decisions.items():
        cells = [_value(values[judged], name, judged) for judged in UTILITIES]
        shown.add_row(UTILITIES[name].label, _named(decision, names), *cells)
    show(shown)
    say("[dim]Expected value by each metric, %, and how much it is below the best.[/dim]")
    for name, decision in decisions.items():
        if not decision.optimal:
            say(
                f"[dim]{UTILITIES[name].label} over all fingerprints is the best found; none is "
                f"above {100 * decision.upper_bound:.1f}.[/dim]"
            )
    if bounds and len(candidates) > 1:
        _show_bounds(bounds)
    if scored.unread:
        used, left = " and ".join(scored.read), " and ".join(scored.unread)
        say(f"[dim]Decided by the columns {used}, not by {left}.[/dim]")


def _value(of: dict[str, float], name: str, judged: str) -> str:
    lost = of[judged] - of[name]
    text = f"{100 * of[name]:.1f}"
    return f"[bold]{text}[/bold]" if lost <= 1e-12 else f"{text} [dim]−{100 * lost:.1f}[/dim]"


def _named(decision: "Decision", names: list[str]) -> str:
    if len(decision.bits) <= _SHOWN_BITS:
        return "".join(map(str, decision.bits))
    if decision.index is not None:
        return plain(names[decision.index])
    return f"a fingerprint of {int(decision.bits.sum())} bits, none of the candidates"


def _show_bounds(bounds: "dict[str, Bounds]") -> None:
    """Print the bounds of the theorems, from the band of each similarity and the probabilities."""
    from mzseek.decision import UTILITIES

    table = new_table(padding=(0, 1, 0, 0))
    for head in ("similarity", "two candidates", "lost by HR@1's", "HR@1 lost", "agree"):
        table.add_column(head, justify="left" if head == "similarity" else "right", no_wrap=True)
    for name, bound in bounds.items():
        table.add_row(
            UTILITIES[name].label,
            f"{bound.low:.3f} to {bound.high:.3f}",
            f"{100 * bound.hit_under_similarity:.1f}",
            f"{100 * bound.similarity_under_hit:.1f}",
            "surely" if bound.agreement else "–",
        )
    show(table)
    first = next(iter(bounds.values()))
    say(
        "[dim]Bounds from how similar two candidates are and from the probabilities of the best "
        f"({100 * first.p_star:.0f} %) and of those chosen: at most so many points of the "
        "similarity are lost by HR@1's decision, and so many of HR@1 by the similarity's.[/dim]"
    )
