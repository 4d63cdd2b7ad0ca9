"""What a run does where it was not told: from its length, or as in the paper.

The paper warms up over 500 steps and validates every 1,000, for runs of some 150,000 steps. A run
of 200 would end before either has happened. So what was not given follows the number of steps, and
from `AS_IN_PAPER` steps on is the paper's.
"""

from dataclasses import replace
from typing import Any

from mzseek.errors import RunError
from mzseek.registry import check_name
from mzseek.training.plan.defaults import (
    AN_EPOCH,
    AS_IN_PAPER,
    PAPER,
    PROTOCOLS,
    VALIDATIONS,
    WARMING,
)
from mzseek.training.plan.options import Options


def with_protocol(options: Options, protocol: str) -> Options:
    """Options in which the protocol of that name has filled what was not given.

    Parameters
    ----------
    options : Options
    protocol : str
        ``paper`` fills in the paper's numbers; ``auto`` leaves the options to `for_steps`.

    Examples
    --------
    >>> with_protocol(Options.of(warmup=100), "paper").warmup
    100
    >>> with_protocol(Options.of(), "paper").warmup, with_protocol(Options.of(), "auto").warmup
    (500, None)
    """
    check_name(PROTOCOLS, protocol, "protocol", RunError)
    return _filled(options, PAPER) if protocol == "paper" else options


def for_steps(options: Options, steps: int) -> Options:
    """Options of a run of so many steps: what was not given follows from them.

    Parameters
    ----------
    options : Options
    steps : int
        Of the whole run, all epochs.

    Examples
    --------
    >>> short, long = for_steps(Options.of(epochs=10), 190), for_steps(Options.of(), 150_000)
    >>> short.warmup, short.validate_every, short.bias
    (19, 10, 'log-odds')
    >>> long.warmup, long.validate_every, long.bias
    (500, 1000, 'zero')
    """
    apart = max(-(-steps // VALIDATIONS), steps // (AN_EPOCH * options.epochs))
    # Some losses, started at zero, first learn the base rates alone: on 1,160 spectra of MassBank,
    # bce takes 500 steps to tell two spectra apart, focal more than 190, and iou never does. Cosine
    # and the listwise losses do from the start; log-odds are now good for them and now bad.
    stalls = steps < AS_IN_PAPER and options.facts.stalls and options.starts_bias
    return _filled(
        options,
        {
            "warmup": min(PAPER["warmup"], steps // WARMING),
            "validate_every": min(PAPER["validate_every"], apart),
            "bias": "log-odds" if stalls else PAPER["bias"],
            "other_rankings": PAPER["other_rankings"],
        },
    )


def as_begun(options: Options, begun: Options) -> Options:
    """Options to go on with: what is not given now is as the run was begun."""
    return _filled(options, {name: getattr(begun, name) for name in PAPER})


def told(options: Options, steps: int) -> list[str]:
    """What a user should know about the protocol of a run, in lines.

    Parameters
    ----------
    options : Options
        Of `for_steps`.
    steps : int

    Examples
    --------
    >>> told(for_steps(Options.of(epochs=10), 190), 190)
    ['190 steps: warm-up 19 steps, validation every 10, bias started at log-odds']
    """
    warmup, every = options.warmup or 0, options.validate_every or steps
    started = f", bias started at {options.bias}" if options.starts_bias else ""
    lines = [f"{steps:,} steps: warm-up {warmup:,} steps, validation every {every:,}{started}"]
    if warmup > steps:
        lines.append(
            f"warning: the warm-up of {warmup:,} steps is longer than the run of {steps:,}: the "
            f"learning rate ends at {100 * steps / warmup:.0f} % of {options.lr:g}. Leave it to "
            "the number of steps, or train for more --epochs"
        )
    if every > steps:
        lines.append(
            f"warning: validation every {every:,} steps of {steps:,}: the model is measured once, "
            "at the end, and no better one before is kept. Leave it to the number of steps"
        )
    return lines


def _filled(options: Options, values: dict[str, Any]) -> Options:
    return replace(
        options,
        **{name: value for name, value in values.items() if getattr(options, name) is None},
    )
