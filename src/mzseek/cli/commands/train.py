"""``mzseek train``."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from mzseek.cli.errors import resumable
from mzseek.cli.options import IS_RUN, AsJson, PreparedFolder, number, options_of
from mzseek.cli.output import plain, print_json, say, say_next, say_plain, watched
from mzseek.core.errors import require
from mzseek.losses import LOSSES
from mzseek.models import ENCODERS
from mzseek.training.options import (
    CONTROLS,
    MODELS,
    PAPER,
    PROTOCOLS,
    TRAINING_FIELDS,
    Options,
    list_settings,
    read_settings,
    with_protocol,
)

_FOCAL, _COMBINED = LOSSES["focal"].options(), LOSSES["combined"].options()
_MLP = ENCODERS["mlp"].options()
_SETTINGS = TRAINING_FIELDS.keys() - {"clip"}  # gradients are clipped as in the paper


def _show_options(requested: bool) -> None:
    """Print all components with their options, and nothing else."""
    if not requested:
        return
    for part, options in list_settings():
        typer.echo(part if options else f"{part} (no options)")
        for name, default, meaning in options:
            setting = f"{part.partition(' ')[0]}.{name}={default}"
            typer.echo(f"  --set {setting:28} {meaning}")
    raise typer.Exit


@options_of(Options, _SETTINGS, start_from=IS_RUN)
def train(
    data: PreparedFolder,
    loss: Annotated[str, typer.Option(help=" ".join(LOSSES))],
    out: Annotated[Path, typer.Option(help="Run folder to make.")],
    model: Annotated[
        str, typer.Option(help=f"{' '.join(MODELS)}; controls: {' '.join(CONTROLS)}.")
    ] = MODELS[0],
    temperature: Annotated[
        float | None,
        typer.Option(
            parser=number,
            metavar="<float>",
            help="τ of a listwise loss, as 0.0625 or 1/16; the loss's own by default.",
        ),
    ] = None,
    gamma: Annotated[
        float | None, typer.Option(help=f"γ of focal; {_FOCAL.gamma:g} by default.")
    ] = None,
    weight: Annotated[
        float | None,
        typer.Option(
            help=f"λ of combined: weight on its listwise part; {_COMBINED.weight:g} by default."
        ),
    ] = None,
    pairwise: Annotated[
        bool, typer.Option("--pairwise", help="The pairwise form of a listwise loss.")
    ] = False,
    blocks: Annotated[
        int | None,
        typer.Option(help=f"Of the mlp; {_MLP.blocks} by default, published runs used 2."),
    ] = None,
    width: Annotated[
        int | None, typer.Option(help=f"Of the encoder; {_MLP.width} by default.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PART.OPTION=VALUE",
            help="Any option of the encoder, the scorer or the loss, such as encoder.width=512; "
            "several times for several.",
        ),
    ] = None,
    show_options: Annotated[
        bool,
        typer.Option(
            "--options",
            callback=_show_options,
            is_eager=True,
            help="List the options of all parts, with their defaults, and exit.",
        ),
    ] = False,
    protocol: Annotated[
        str,
        typer.Option(
            help="Warm-up, validations and bias that are not given: "
            f"{PROTOCOLS[0]} (from the number of steps) or {PROTOCOLS[1]} "
            f"({PAPER['warmup']:,} steps, every {PAPER['validate_every']:,}, {PAPER['bias']})."
        ),
    ] = PROTOCOLS[0],
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was interrupted.")
    ] = False,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Train a model on a prepared data set.

    The run folder gets the best weights by each metric, their predictions, and what made it.
    Warm-up, validations and the start of the bias follow the number of steps and are printed in the
    first line; --protocol paper takes the paper's.

    Example: mzseek train prepared --loss emb-cos --out runs/emb-cos
    """
    require("torch", "training")
    of_loss = {"temperature": temperature, "gamma": gamma, "weight": weight}
    from_options: dict[str, dict[str, Any]] = {
        "encoder": {"width": width, "blocks": blocks},
        "loss": of_loss | {"pairwise": True if pairwise else None},
    }
    parts = read_settings(settings or [], loss, model, from_options)
    chosen = with_protocol(Options.of(loss, model, parts, **options), protocol)
    from mzseek.datasets.prepared import Prepared
    from mzseek.parallel.engine import keep_freed_memory  # torch takes a second to load
    from mzseek.training.train import train as fit

    prepared = Prepared.open(data)
    keep_freed_memory()
    started = time.perf_counter()
    with (
        resumable("the same command with --resume goes on from the last validation"),
        watched() as progress,
    ):
        run = fit(
            prepared,
            chosen,
            out,
            resume=resume,
            progress=progress,
            say=say_plain,
        )
    if as_json:
        print_json({"out": str(out), "best": run.best, "warnings": run.metadata["warnings"]})
        return
    steps, seconds = run.metadata.get("steps", 0), run.metadata.get("seconds", 0.0)
    took = time.perf_counter() - started
    say(f"Trained {steps:,} steps in {seconds:,.0f} s ({took:,.0f} s in all).")
    setting = prepared.measured_on(chosen.candidates)
    if setting in prepared.measured_settings:
        fold = () if len(prepared.in_fold("test")) else ("--fold", "val")
        say_next("mzseek", "evaluate", out, "--candidates", setting, *fold)
    else:
        say(
            "The data have no candidate lists: nothing to rank. What it reached on validation is "
            f"in {plain(out / 'history.csv')}"
        )
