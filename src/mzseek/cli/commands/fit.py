"""``mzseek fit``: fit evidence channels and the ranker."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mzseek.cli.options import (
    ARE_CHANNELS,
    AsJson,
    ChannelSettings,
    Jobs,
    PreparedFolder,
    options_of,
)
from mzseek.cli.output import new_table, plain, print_json, say, say_next, say_plain, show, watched
from mzseek.evidence import CHANNELS
from mzseek.evidence.options import FitOptions

_NAMES = ["run:FOLDER" if name == "run" else name for name in CHANNELS]
_SETTINGS = ("candidates", "fit_on", "identity", "spectra", "groups", "augment")


@options_of(FitOptions, _SETTINGS, with_ranges=True)
def fit(
    data: PreparedFolder,
    channels: Annotated[
        str, typer.Option(help=f"Separated by commas: {', '.join(_NAMES)}."), ARE_CHANNELS
    ],
    out: Annotated[Path, typer.Option(help="Run folder to make.")],
    settings: ChannelSettings = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Fit a ranker over channels of evidence: fragments, analogs, trained runs.

    Channels learn from the train fold. The ranker is fitted on molecules that none of them learned
    from: cross-fitted by structure cluster. The folder is a run like any other, with predictions of
    val and test.

    Example: mzseek fit prepared --channels fragments,analogs --out runs/evidence
    """
    from mzseek.datasets.prepared import Prepared
    from mzseek.evidence import channels_from
    from mzseek.evidence.fitting import fit as fit_channels

    if options["fit_on"] is not None:
        options["fit_on"] = tuple(map(str.strip, options["fit_on"].split(",")))
    chosen = channels_from(channels, settings or ())
    prepared, how = Prepared.open(data), FitOptions(**options)
    with watched() as progress:
        run = fit_channels(prepared, chosen, out, how, jobs=jobs, progress=progress, say=say_plain)
    if as_json:
        print_json({"out": str(out), "best": run.best, "model": run.metadata["model"]})
        return
    _show(run, prepared.measured_on(how.candidates))
    fold = () if len(prepared.in_fold("test")) else ("--fold", "val")
    say_next("mzseek", "evaluate", out, *fold)


def _show(run: Any, setting: str) -> None:
    """Weights, and what they reach on validation."""
    from mzseek.evidence.ranker import Ranker

    ranker = Ranker.from_dict(run.description.fitted.ranker)
    weights = ranker.to_table()
    table = new_table(*weights.columns, left=2, title=weights.title, title_justify="left")
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
