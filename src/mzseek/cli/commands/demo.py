"""``mzseek demo``: the main job on data that mzseek makes itself."""

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mzseek.cli.commands.prepare import show_prepared
from mzseek.cli.output import plain, say, show_check, watched
from mzseek.cli.tradeoff import show_tradeoff
from mzseek.errors import DatasetError
from mzseek.extras import require

if TYPE_CHECKING:
    from mzseek.prepared.reader import Prepared

_MARK = "MADE-BY-MZSEEK-DEMO.txt"
_CONTROL = "emb-cos, spectrum-blind"
_SETTING = "formula"


def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything that is made.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Another seed makes another simulated set.")] = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Of training; 1 for a quick look.")] = 24,
) -> None:
    """Make a simulated data set, train three models on it, and show what each is good at.

    Example: mzseek demo --out demo
    """
    for package in ("torch", "matplotlib"):
        require(package, "the demo")
    from mzseek.files import sole_writer

    with sole_writer(out, "making the demo"):
        _claim(out)
        faults = _make(out, seed, epochs)
    if faults:
        raise typer.Exit(1)


def _make(out: Path, seed: int, epochs: int) -> bool:
    """Everything; returns whether the data set has faults."""
    start = time.perf_counter()
    from mzseek.datasets.check import check_dataset
    from mzseek.datasets.demo import QUERIES, write_demo
    from mzseek.datasets.table import find_dataset
    from mzseek.prepared.writer import prepare
    from mzseek.report import write_dataset_page, write_runs_page

    _step(1, "Simulating molecules and spectra")
    with watched() as progress:
        counts = write_demo(out / "data", seed=seed, progress=progress)
    say(
        f"{counts['spectra']:,} simulated spectra of {counts['molecules']:,} molecules, "
        f"out of {counts['pool']:,} that serve as candidates"
    )
    _step(2, "Checking the data set")
    with watched() as progress:
        report = check_dataset(find_dataset(out / "data" / "set"), progress=progress)
    show_check(report)
    _step(3, "Preparing it for training")
    files = find_dataset(out / "data" / "set")
    with watched() as progress:
        prepared, made = prepare(
            files.spectra, files.candidates, out / "prepared", progress=progress
        )
    show_prepared(prepared, made)
    _step(4, "Training three models and a control that never sees the spectrum")
    runs = _train(prepared, out / "runs", seed, epochs)
    _step(5, "What each is good at")
    shown = _evaluate(runs)
    show_tradeoff(shown)
    data_page = write_dataset_page(prepared, out / "data.html", queries=QUERIES, simulated=True)
    page = write_runs_page(shown, out / "index.html", simulated=True, data_page=data_page.name)
    say(
        f"\nDone in {time.perf_counter() - start:.0f} s. The data are simulated: what they show is "
        f"how mzseek works,\nnot how well. [bold]Look at {plain(page)}[/bold] in a browser."
    )
    return bool(report.faults)


def _train(prepared: "Prepared", out: Path, seed: int, epochs: int) -> dict[str, Any]:
    from mzseek.training.plan.options import Options
    from mzseek.training.several import train_several

    shutil.rmtree(out, ignore_errors=True)  # of an earlier demo, whose folder this is
    common: dict[str, Any] = {
        "candidates": _SETTING, "epochs": epochs, "lr": 3e-4, "warmup": 100, "validate_every": 152,
        "bias": "zero", "seed": seed,
    }  # fmt: skip
    wanted = {
        "bce": Options.of("bce", **common),
        "iou": Options.of("iou", **(common | {"bias": "log-odds"})),
        "emb-cos": Options.of("emb-cos", **common),
        _CONTROL: Options.of("emb-cos", "blind", **common),
    }
    with watched() as progress:
        runs: dict[str, Any] = train_several(
            prepared.folder, wanted, out,
            processes=min(len(wanted), os.cpu_count() or 1), progress=progress, say=say,
        )  # fmt: skip
    for name, run in runs.items():
        say(f"{name}: {run.facts['steps']:,} steps in {run.facts['seconds']:.0f} s")
    return runs


def _evaluate(runs: dict[str, Any]) -> list[Any]:
    from mzseek.evaluation.scored import Scoring
    from mzseek.report.runs_report import look_at_runs

    with watched() as progress:
        return look_at_runs(list(runs.values()), Scoring(candidates=_SETTING), progress=progress)


def _claim(out: Path) -> None:
    """Mark the folder as the demo's, unless it holds something else."""
    if out.exists() and not out.is_dir():
        raise DatasetError(f"{out}: is a file, expected a folder to make")
    if out.is_dir() and any(out.iterdir()) and not (out / _MARK).exists():
        raise DatasetError(f"{out}: exists and is no demo; name another --out")
    from mzseek.files import atomic_file

    with atomic_file(out / _MARK) as partial:
        partial.write_text("Made by `mzseek demo`, which may replace what is in this folder.\n")


def _step(number: int, title: str) -> None:
    say(f"\n[bold]{number}. {plain(title)}[/bold]")
