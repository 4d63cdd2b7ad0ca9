"""``mzseek train``."""

import time
from pathlib import Path
from typing import Annotated

import typer

from mzseek.cli.early import early, look_for_prepared, look_for_run
from mzseek.cli.interrupt import can_go_on
from mzseek.cli.options import AsJson
from mzseek.cli.output import plain, print_json, say, say_next, watched

# Written out, since asking the registries would load torch for every --help; a test compares them.
LOSS_NAMES = "bce focal cosine iou fp-cos emb-cos fp-mlp emb-mlp combined"
MODEL_NAMES = "mlp transformer deepsets precursor blind random"


@early(data=look_for_prepared, start_from=look_for_run)
def train(
    data: Annotated[Path, typer.Argument(help="Folder that `mzseek prepare` has made.")],
    loss: Annotated[str, typer.Option(help=LOSS_NAMES)],
    out: Annotated[Path, typer.Option(help="Run folder to make.")],
    candidates: Annotated[
        str, typer.Option(help="Candidate lists to learn from: mass, formula, or another name.")
    ] = "mass",
    model: Annotated[
        str, typer.Option(help=f"{MODEL_NAMES}; the last three are controls.")
    ] = "mlp",
    epochs: Annotated[int, typer.Option(help="At most this many.")] = 50,
    lr: Annotated[float, typer.Option(help="Learning rate.")] = 1e-4,
    seed: Annotated[int, typer.Option(help="Of weights, order and dropout.")] = 0,
    temperature: Annotated[
        float | None, typer.Option(help="τ of a listwise loss; the loss's own by default.")
    ] = None,
    gamma: Annotated[float, typer.Option(help="γ of focal.")] = 2.0,
    weight: Annotated[
        float, typer.Option(help="λ of combined: weight on its listwise part.")
    ] = 0.5,
    pairwise: Annotated[
        bool, typer.Option("--pairwise", help="The pairwise form of a listwise loss.")
    ] = False,
    blocks: Annotated[int, typer.Option(help="Of the encoder; published runs used 2.")] = 3,
    width: Annotated[int, typer.Option(help="Of the encoder.")] = 1024,
    warmup: Annotated[int, typer.Option(help="Steps until the full learning rate.")] = 500,
    batch_size: Annotated[int, typer.Option(help="Spectra a step.")] = 64,
    bias: Annotated[
        str,
        typer.Option(
            help="Start of the fingerprint's bias: zero (small, as published) or log-odds."
        ),
    ] = "zero",
    validate_every: Annotated[int, typer.Option(help="Steps between validations.")] = 1000,
    patience: Annotated[
        int | None, typer.Option(help="Stop after so many validations without gain.")
    ] = None,
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

    Example: mzseek train prepared --loss emb-cos --epochs 10 --lr 5e-5 --out runs/emb-cos
    """
    from mzseek.data.cache import Prepared
    from mzseek.data.settings import measured_on
    from mzseek.training.options import Options  # torch takes a second to load
    from mzseek.training.train import train as fit

    options = Options(
        loss=loss, model=model, candidates=candidates, epochs=epochs, batch_size=batch_size, lr=lr,
        seed=seed, temperature=temperature, gamma=gamma, weight=weight, pairwise=pairwise,
        blocks=blocks, width=width, warmup=warmup, bias=bias, validate_every=validate_every,
        patience=patience, start_from=str(start_from) if start_from else None, threads=threads,
    )  # fmt: skip
    prepared = Prepared.open(data)
    started = time.perf_counter()
    with (
        can_go_on("the same command with --resume goes on from the last validation"),
        watched() as progress,
    ):
        run = fit(
            prepared, options, out, resume=resume, tensorboard=tensorboard, progress=progress,
            say=lambda line: say(plain(line)),
        )  # fmt: skip
    if as_json:
        print_json({"out": str(out), "best": run.best, "warnings": run.facts["warnings"]})
        return
    steps, seconds = run.facts.get("steps", 0), run.facts.get("seconds", 0.0)
    took = time.perf_counter() - started
    say(f"Trained {steps:,} steps in {seconds:,.0f} s ({took:,.0f} s in all).")
    say_next("mzseek", "evaluate", out, "--candidates", measured_on(candidates))
