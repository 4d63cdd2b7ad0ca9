"""``mzseek fit``: fit evidence channels and the ranker."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mzseek.cli.options import (
    ARE_CHANNELS,
    AsJson,
    ChannelSettings,
    Identity,
    Jobs,
    PreparedFolder,
    either,
)
from mzseek.cli.output import new_table, plain, print_json, say, say_next, show, watched
from mzseek.core.registry import IDENTITIES
from mzseek.evidence import CHANNELS

_NAMES = ["run:FOLDER" if name == "run" else name for name in CHANNELS]
_SPECTRA = ("own", "swapped")


def fit(
    data: PreparedFolder,
    channels: Annotated[
        str, typer.Option(help=f"Separated by commas: {', '.join(_NAMES)}."), ARE_CHANNELS
    ],
    out: Annotated[Path, typer.Option(help="Run folder to make.")],
    candidates: Annotated[
        str, typer.Option(help="Candidate lists to fit on: mass, formula, or another name.")
    ] = "mass",
    fit_on: Annotated[
        str | None,
        typer.Option(
            help="Folds to fit the ranker on: train,val (cross-fitted), train or val; by default "
            "both, and val alone where a trained run is among the channels."
        ),
    ] = None,
    spectra: Annotated[
        str,
        typer.Option(
            help="Predict from each one's own spectrum, or, as a control, swapped: from that of "
            f"another molecule of nearly equal mass ({either(_SPECTRA)})."
        ),
    ] = _SPECTRA[0],
    identity: Identity = IDENTITIES[0],
    groups: Annotated[
        int, typer.Option(min=2, max=100, help="Groups of structure clusters to cross-fit by.")
    ] = 5,
    settings: ChannelSettings = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Fit a ranker over channels of evidence: fragments, analogs, trained runs.

    Channels learn from the train fold. The ranker is fitted on molecules that none of them learned
    from: cross-fitted by structure cluster. The folder is a run like any other, with predictions of
    val and test.

    Example: mzseek fit prepared --channels fragments,analogs --out runs/evidence
    """
    from mzseek.datasets.prepared import Prepared
    from mzseek.evidence import channels_from
    from mzseek.evidence.fitting import FitOptions
    from mzseek.evidence.fitting import fit as fit_channels

    options = FitOptions(
        candidates=candidates, identity=identity, groups=groups, spectra=spectra,
        fit_on=tuple(fold.strip() for fold in fit_on.split(",")) if fit_on is not None else None,
    )  # fmt: skip
    chosen = channels_from(channels, settings or ())
    prepared = Prepared.open(data)
    with watched() as progress:
        run = fit_channels(
            prepared, chosen, out, options, jobs=jobs, progress=progress,
            say=lambda line: say(plain(line)),
        )  # fmt: skip
    if as_json:
        print_json({"out": str(out), "best": run.best, "model": run.metadata["model"]})
        return
    _show(run, prepared.measured_on(candidates))
    fold = () if len(prepared.in_fold("test")) else ("--fold", "val")
    say_next("mzseek", "evaluate", out, *fold)


def _show(run: Any, setting: str) -> None:
    """Weights, and what they reach on validation."""
    from mzseek.evidence.ranker import Ranker

    ranker = Ranker.from_dict(run.description.fitted.ranker)
    weights = ranker.to_table()
    table = new_table(title=weights.title, title_justify="left")
    for name, values in weights.columns.items():
        numbers = any(isinstance(value, float) for value in values)
        table.add_column(name, justify="right" if numbers else "left")
    for row in weights:
        table.add_row(*(f"{x:.2f}" if isinstance(x, float) else plain(x) for x in row.values()))
    show(table)
    for mode, molecules in ranker.molecules.items():
        if molecules and not ranker.by_mode[mode]:
            say(f"{mode} mode has {molecules:,} molecules: too few for weights of its own")
    rates = [
        f"HR@{k} {100 * run.best[f'hit_rate@{k}/{setting}']['value']:.1f}"
        for k in (1, 5, 20)
        if f"hit_rate@{k}/{setting}" in run.best
    ]
    say(f"On validation, {setting} candidates, cross-fitted: {', '.join(rates)}")
