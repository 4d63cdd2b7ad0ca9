"""``mzseek decide``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mzseek.chem.fingerprinting import FINGERPRINTS
from mzseek.cli.options import EXISTS, IS_FINGERPRINT, AsJson
from mzseek.cli.output import counted, new_table, plain, print_json, say, show
from mzseek.core.errors import DecisionError
from mzseek.core.registry import check_name
from mzseek.decision.utilities import WITHIN

if TYPE_CHECKING:
    from mzseek.decision import Bounds, Decision, Distribution

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
    from mzseek.decision import BAND_SIMILARITIES, UTILITIES, distribution
    from mzseek.decision.bounds import bounds_under
    from mzseek.decision.decide import decide as decide_under
    from mzseek.decision.distributions import expected

    scored = read_scored_table(table, fingerprint, temperature)
    names, candidates = scored.names, distribution(scored.rows, scored.probabilities)
    where: Any = within  # one of the two
    decisions = {name: decide_under(name, candidates, where) for name in UTILITIES}
    values = {
        judged: {made: expected(judged, decisions[made].bits, candidates) for made in decisions}
        for judged in UTILITIES
    }
    bounds = {}
    if within == "candidates":  # they hold nowhere else
        bounds = {name: bounds_under(name, candidates) for name in BAND_SIMILARITIES}
    if as_json:
        print_json({"columns": scored.read} | _facts(names, decisions, values, bounds, within))
        return
    _show(names, candidates, decisions, values, bounds, within)
    if scored.unread:
        used, left = " and ".join(scored.read), " and ".join(scored.unread)
        say(f"[dim]Decided by the columns {used}, not by {left}.[/dim]")


def _facts(
    names: list[str],
    decisions: "dict[str, Decision]",
    values: dict[str, dict[str, float]],
    bounds: "dict[str, Bounds]",
    within: str,
) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "within": within,
        "decisions": {
            made: {
                "bits": decision.bits.nonzero()[0].tolist(),
                "index": decision.index,
                "name": None if decision.index is None else names[decision.index],
                "expected_utility": decision.expected_utility,
                "upper_bound": decision.upper_bound,
            }
            for made, decision in decisions.items()
        },
        "expected": values,
        "regret": {
            judged: {made: max(0.0, of[judged] - value) for made, value in of.items()}
            for judged, of in values.items()
        },
    }
    if bounds:
        # One candidate has no band: null, which JSON has, for NaN, which it has not.
        facts["bounds"] = {
            name: {key: None if value != value else value for key, value in vars(each).items()}
            for name, each in bounds.items()
        }
        facts["tanimoto_bounds"] = facts["bounds"]["tanimoto"]
    return facts


def _show(
    names: list[str],
    candidates: "Distribution",
    decisions: "dict[str, Decision]",
    values: dict[str, dict[str, float]],
    bounds: "dict[str, Bounds]",
    within: str,
) -> None:
    from mzseek.decision import UTILITIES

    where = "among them" if within == "candidates" else "for any fingerprint"
    said = counted(len(names), "candidate", "candidates")
    merged = "" if len(candidates) == len(names) else f", {len(candidates):,} distinct fingerprints"
    say(f"{said}{merged}; decisions are made {where}")
    table = new_table(padding=(0, 1, 0, 0))
    table.add_column("best for", no_wrap=True)
    table.add_column("decision", overflow="fold")
    for name, judged in UTILITIES.items():  # narrow, so that it fits into 80 columns
        label = name if len(judged.label) > 8 else judged.label
        table.add_column(label, justify="right", no_wrap=True)
    for made, decision in decisions.items():
        cells = [_cell(values[judged], made, judged) for judged in UTILITIES]
        table.add_row(UTILITIES[made].label, _named(decision, names, candidates.width), *cells)
    show(table)
    say("[dim]Expected value by each metric, %, and how much it is below the best.[/dim]")
    inexact = [made for made, decision in decisions.items() if not decision.optimal]
    for made in inexact:
        ceiling = 100 * decisions[made].upper_bound
        say(
            f"[dim]{UTILITIES[made].label} over all fingerprints is the best found; none is above "
            f"{ceiling:.1f}.[/dim]"
        )
    if bounds and len(candidates) > 1:
        _show_bounds(bounds)


def _cell(of: dict[str, float], made: str, judged: str) -> str:
    lost = of[judged] - of[made]
    text = f"{100 * of[made]:.1f}"
    return f"[bold]{text}[/bold]" if lost <= 1e-12 else f"{text} [dim]−{100 * lost:.1f}[/dim]"


def _named(decision: "Decision", names: list[str], width: int) -> str:
    if width <= _SHOWN_BITS:
        return "".join(map(str, decision.bits))
    if decision.index is not None:
        return plain(names[decision.index])
    return f"a fingerprint of {int(decision.bits.sum())} bits, none of the candidates"


def _show_bounds(bounds: "dict[str, Bounds]") -> None:
    """What the theorems say: from the band of a similarity and from three probabilities."""
    from mzseek.decision import UTILITIES

    table = new_table(padding=(0, 1, 0, 0))
    for head in ("similarity", "two candidates", "lost by HR@1's", "HR@1 lost", "agree"):
        table.add_column(head, justify="left" if head == "similarity" else "right", no_wrap=True)
    for name, each in bounds.items():
        table.add_row(
            UTILITIES[name].label,
            f"{each.low:.3f} to {each.high:.3f}",
            f"{100 * each.hit_under_similarity:.1f}",
            f"{100 * each.similarity_under_hit:.1f}",
            "surely" if each.agreement else "–",
        )
    show(table)
    first = next(iter(bounds.values()))
    say(
        "[dim]Bounds from how alike two candidates are and from the probabilities of the best "
        f"({100 * first.p_star:.0f} %) and of those chosen: at most so many points of the "
        "similarity are lost by HR@1's decision, and so many of HR@1 by the similarity's.[/dim]"
    )
