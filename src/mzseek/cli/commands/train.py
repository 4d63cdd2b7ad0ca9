"""``mzseek train``."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mzseek.cli.early import early, look_for_prepared, look_for_run
from mzseek.cli.errors import can_go_on
from mzseek.cli.options import AsJson, number
from mzseek.cli.output import plain, print_json, say, say_next, watched
from mzseek.core.errors import require
from mzseek.losses import LOSSES
from mzseek.models import ENCODERS
from mzseek.training.options import (
    AN_EPOCH,
    AS_IN_PAPER,
    BIASES,
    CONTROLS,
    MODELS,
    OFFSETS,
    PAPER,
    PROTOCOLS,
    VALIDATIONS,
    WARMING,
    TrainingOptions,
    list_settings,
    read_settings,
)

if TYPE_CHECKING:
    from mzseek.datasets.prepared import Prepared


_USUAL = TrainingOptions()
_FOCAL, _COMBINED = LOSSES["focal"].options(), LOSSES["combined"].options()
_MLP = ENCODERS["mlp"].options()
_STALLING = [name for name, facts in LOSSES.items() if facts.stalls]


def _show_options(wanted: bool) -> None:
    """All parts with their options, and nothing else."""
    if not wanted:
        return
    for part, options in list_settings():
        typer.echo(part if options else f"{part} (no options)")
        for name, default, meaning in options:
            setting = f"{part.partition(' ')[0]}.{name}={default}"
            typer.echo(f"  --set {setting:28} {meaning}")
    raise typer.Exit


@early(data=look_for_prepared, start_from=look_for_run)
def train(
    data: Annotated[Path, typer.Argument(help="Folder that `mzseek prepare` has made.")],
    loss: Annotated[str, typer.Option(help=" ".join(LOSSES))],
    out: Annotated[Path, typer.Option(help="Run folder to make.")],
    candidates: Annotated[
        str, typer.Option(help="Candidate lists to learn from: mass, formula, or another name.")
    ] = _USUAL.candidates,
    model: Annotated[
        str, typer.Option(help=f"{' '.join(MODELS)}; controls: {' '.join(CONTROLS)}.")
    ] = MODELS[0],
    epochs: Annotated[int, typer.Option(help="At most this many.")] = _USUAL.epochs,
    lr: Annotated[float, typer.Option(help="Learning rate.")] = _USUAL.lr,
    seed: Annotated[int, typer.Option(help="Of weights, order and dropout.")] = _USUAL.seed,
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
    warmup: Annotated[
        int | None,
        typer.Option(
            help=f"Steps until the full learning rate; {100 // WARMING} % of all, at most "
            f"{PAPER['warmup']:,}."
        ),
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Spectra in a step.")] = _USUAL.batch_size,
    bias: Annotated[
        str | None,
        typer.Option(
            help="Start of the fingerprint's bias: "
            f"{BIASES[0]} (small, as published) or {BIASES[1]} (each bit's base rate), which "
            f"{', '.join(_STALLING)} take in runs below {AS_IN_PAPER:,} steps."
        ),
    ] = None,
    validate_every: Annotated[
        int | None,
        typer.Option(
            help=f"Steps between validations; {VALIDATIONS} in all, at most {AN_EPOCH} in an epoch "
            f"or {PAPER['validate_every']:,} steps apart."
        ),
    ] = None,
    other_rankings: Annotated[
        bool | None,
        typer.Option(
            help="Where a fingerprint is predicted, also validate rankings by its Tanimoto, "
            "thresholded and soft, and keep their best weights, for `evaluate --similarity`; done "
            "by default."
        ),
    ] = _USUAL.other_rankings,
    patience: Annotated[
        int | None,
        typer.Option(
            help="Stop after so many validations without gain: in HR@1 for ranking losses, else in "
            "Tanimoto."
        ),
    ] = None,
    offset: Annotated[
        str | None,
        typer.Option(
            help=f"{OFFSETS[0]}: what a scorer without the spectrum says stands as a fixed term in "
            "the softmax of a listwise loss, so that the network learns the rest; kept scores are "
            "the network's alone."
        ),
    ] = _USUAL.offset,
    start_from: Annotated[
        Path | None, typer.Option(help="Run to take weights from (two-stage training).")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads; all by default.")] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write TensorBoard's files.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was interrupted.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Train a model on a prepared data set.

    The run folder gets the best weights by each metric, their predictions, and what made it.
    Warm-up, validations and the start of the bias follow the number of steps and are told in the
    first line; --protocol paper takes the paper's.

    Example: mzseek train prepared --loss emb-cos --out runs/emb-cos
    """
    require("torch", "training")
    given: dict[str, dict[str, Any]] = {
        "encoder": {"width": width, "blocks": blocks},
        "loss": {
            "temperature": temperature, "gamma": gamma, "weight": weight,
            "pairwise": True if pairwise else None,
        },
    }  # fmt: skip
    parts = read_settings(settings or [], loss, model, given)
    from mzseek.datasets.prepared import Prepared
    from mzseek.parallel.engine import keep_freed_memory
    from mzseek.training.options import (
        Options,  # torch takes a second to load
        with_protocol,
    )
    from mzseek.training.train import train as fit

    options = Options.of(
        loss, model, parts, candidates=candidates, epochs=epochs, batch_size=batch_size, lr=lr,
        seed=seed, warmup=warmup, bias=bias, validate_every=validate_every, patience=patience,
        other_rankings=other_rankings, offset=offset,
        start_from=str(start_from) if start_from else None, threads=threads,
    )  # fmt: skip
    prepared = Prepared.open(data)
    keep_freed_memory()
    started = time.perf_counter()
    with (
        can_go_on("the same command with --resume goes on from the last validation"),
        watched() as progress,
    ):
        run = fit(
            prepared, with_protocol(options, protocol), out, resume=resume,
            tensorboard=tensorboard, progress=progress, say=lambda line: say(plain(line)),
        )  # fmt: skip
    if as_json:
        print_json({"out": str(out), "best": run.best, "warnings": run.facts["warnings"]})
        return
    steps, seconds = run.facts.get("steps", 0), run.facts.get("seconds", 0.0)
    took = time.perf_counter() - started
    say(f"Trained {steps:,} steps in {seconds:,.0f} s ({took:,.0f} s in all).")
    _show_next(prepared, out, prepared.measured_on(candidates))


def _show_next(prepared: "Prepared", out: Path, setting: str) -> None:
    """The command that measures the run, on lists and a fold that the data have."""
    if setting not in prepared.measured_settings:
        say(
            "The data have no candidate lists: nothing to rank. What it reached on validation is "
            f"in {plain(out / 'history.csv')}"
        )
        return
    fold = () if len(prepared.in_fold("test")) else ("--fold", "val")
    say_next("mzseek", "evaluate", out, "--candidates", setting, *fold)
