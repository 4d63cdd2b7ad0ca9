"""Bits that a run tells, as people read them."""

from typing import Any

from mzseek.cli.output import plain, say


def show_bits(bits: Any, name: str, prior: str, unit: str) -> None:
    """How many bits there are, and who tells how many of them."""
    found = bits.intervals()
    where = "cross-fitted over molecules" if bits.how.fold == "val" else "calibrated on val"
    say(
        f"\n[bold]Bits[/bold]: a list holds {found['to_be_had'].mean:.2f} on average over "
        f"{unit} [dim]({where})[/dim]"
    )
    if bits.over is None:
        say(f"{plain(name)} tells {_bits(found['run'])} of them")
        return
    run, other = bits.weights
    say(
        f"{plain(prior)} tells {_bits(found['prior'])}; {plain(name)} in its place "
        f"{_bits(found['run'], '+')} more"
    )
    say(
        f"{plain(name)} added to {plain(prior)}: {_bits(found['given_prior'], '+')} "
        f"[dim](weights {run:.2f} and {other:.2f})[/dim]"
    )


def show_channels(found: Any) -> None:
    """How many bits each channel of a fitted run tells, alone and beside the others."""
    where = "fitted on this very fold" if found.how.fold == "val" else "calibrated on val"
    say(
        f"\n[bold]Bits of channels[/bold]: together {_bits(found.mean(found.all_of_it))} "
        f"[dim]({where})[/dim]"
    )
    for name, alone in found.alone.items():
        added = found.mean(found.added[name])
        say(f"{plain(name)}: {_bits(found.mean(alone))} alone, {_bits(added, '+')} to the others")


def _bits(interval: Any, sign: str = "") -> str:
    return (
        f"{interval.mean:{sign}.2f} [dim]({interval.low:{sign}.2f}…{interval.high:{sign}.2f})[/dim]"
    )
