"""What a run's probabilities are worth, as people read it."""

import math
from collections.abc import Sequence
from typing import Any

from mzseek.cli.output import counted, new_table, plain, say, show

_WHERE = {"candidates": "among candidates", "all": "any fingerprint"}


def show_beliefs(
    beliefs: Any, others: Sequence[str] = (), other: Any = None, unit: str = "spectra"
) -> None:
    """Decoded values beside the controls', calibration, prediction sets and abstention.

    ``other`` is what a control's posterior is worth, and ``others`` has its label; ``unit`` is what
    is judged: spectra, or molecules where their spectra were scored together.
    """
    from mzseek.decision import UTILITIES
    from mzseek.decision.goals import SIMILARITY_GOALS

    say("\n[bold]Decoded: one model, a decision for each metric[/bold]")
    table = new_table()
    table.add_column("%, decided for")
    table.add_column("where")
    for judged in UTILITIES.values():
        table.add_column(judged.label, justify="right")
    for utility, places in beliefs.decoded.to_dict().items():
        for where, values in places.items():
            cells = [_best(values[judged], judged == utility) for judged in UTILITIES]
            table.add_row(UTILITIES[utility].label, _WHERE[where], *cells)
    show(table)
    for utility in SIMILARITY_GOALS:
        _say_gain(beliefs, utility, others, other)
    errors = beliefs.errors
    if beliefs.calibrated.asked.how.fold == "val":
        say("[yellow]Fitted on this very fold, and the better for it:[/yellow]")
    say(
        f"\nProbabilities: expected calibration error {100 * errors['before']:.1f} points before "
        f"calibration on val, {100 * errors['after']:.1f} after"
    )
    _say_worst_bin(beliefs.worst_bin, unit)
    _say_sets(beliefs.sets)
    for stop in beliefs.abstentions:
        _say_abstention(stop, unit)


def _say_worst_bin(worst: dict[str, float] | None, unit: str) -> None:
    """How far off the probabilities are where that can be judged."""
    from mzseek.decision import FULL_BIN

    if worst is None:
        say(f"[dim]No bin of confidence has {FULL_BIN} {unit}, to judge it by itself.[/dim]")
        return
    say(
        f"No bin of {FULL_BIN} or more {unit} is off by more than {100 * worst['off']:.1f} points "
        f"[dim](the worst: {100 * worst['confidence']:.1f} % sure, {100 * worst['accuracy']:.1f} % "
        f"right, {worst['lists']:,} {unit})[/dim]"
    )


def _say_sets(sets: Any) -> None:
    """What prediction sets cover, beside what they promise and what the promise rests on."""
    from mzseek.decision import molecules_needed

    if not sets:
        return
    on = counted(sets[0].fitted_on, "val molecule", "val molecules")
    say(
        f"\nPrediction sets, fitted on {on}. [dim]The promise is an average over fits, for "
        "molecules exchangeable with those; structures split apart from them are not.[/dim]"
    )
    for fitted in sets:
        line = (
            f"Sets that are to contain the truth in {100 * fitted.stated:.0f} %: they do in "
            f"{100 * fitted.covered.mean:.1f} % [dim]({100 * fitted.covered.low:.1f}…"
            f"{100 * fitted.covered.high:.1f})[/dim]"
        )
        if fitted.falls_short:
            line += ", [yellow]which falls short of it[/yellow]"
        if fitted.everything:
            need = molecules_needed(fitted.stated)
            line += (
                f"; [yellow]so much needs {need} molecules, and so all candidates are in[/yellow]"
            )
        else:
            low, high = fitted.by_chance
            line += f"; by chance of the fit alone, {100 * low:.0f} to {100 * high:.0f}"
        say(
            f"{line}; the median set has {fitted.median_size:.0f}, sets have "
            f"{fitted.mean_size:.0f} and lists {fitted.mean_list:.0f} candidates on average"
        )


def _say_abstention(stop: Any, unit: str) -> None:
    wanted = f"At most {100 * stop.wanted:.0f} % wrong answers: "
    if not math.isfinite(stop.threshold):
        say(f"{wanted}cannot be promised at any confidence")
    elif stop.answered == 0:
        say(f"{wanted}answer from {100 * stop.threshold:.0f} % confidence, which none has")
    else:
        short = ", [yellow]which is more[/yellow]" if stop.falls_short else ""
        say(
            f"{wanted}answer from {100 * stop.threshold:.0f} % confidence, which is "
            f"{100 * stop.answered:.1f} % of the {unit}; {100 * stop.wrong:.1f} % "
            f"[dim]({100 * stop.low:.1f}…{100 * stop.high:.1f})[/dim] of them are wrong{short}"
        )


def _best(value: float, own: bool) -> str:
    return f"[bold]{100 * value:.1f}[/bold]" if own else f"{100 * value:.1f}"


def _say_gain(beliefs: Any, utility: str, others: Sequence[str], other: Any) -> None:
    from mzseek.decision import UTILITIES

    own = beliefs.decoded.interval(utility, utility)
    even = beliefs.uniform.interval(utility, utility)
    gain = beliefs.decoded.gain_over(beliefs.uniform, utility, utility)
    line = (
        f"Decoded {UTILITIES[utility].label}: {100 * own.mean:.1f}; without the spectrum (uniform "
        f"posterior) {100 * even.mean:.1f}, {_signed(gain)}"
    )
    if other is not None:
        blind = other.decoded.interval(utility, utility)
        over = beliefs.decoded.gain_over(other.decoded, utility, utility)
        line += f"; {plain(others[0])} {100 * blind.mean:.1f}, {_signed(over)}"
    say(line)


def _signed(gain: Any) -> str:
    low, high = 100 * gain.low, 100 * gain.high
    return f"gain {100 * gain.mean:+.1f} [dim]({low:+.1f}…{high:+.1f})[/dim]"
