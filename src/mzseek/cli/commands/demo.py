"""``mzseek demo``: the main job on real spectra that come with mzseek, and a model of one's own."""

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mzseek.cli.commands.prepare import show_prepared
from mzseek.cli.output import plain, say, show_tradeoff, watched
from mzseek.core.errors import DatasetError, is_installed

if TYPE_CHECKING:
    from mzseek.bundle import Bundle
    from mzseek.datasets.prepared import Prepared

_MARK = "MADE-BY-MZSEEK-DEMO.txt"
_BLIND = "emb-cos, spectrum-blind"
_LOOK_UP = "analogs, nothing trained"
_TO_TRAIN = ("torch", "matplotlib")  # packages of the second half
_GET_TRAINING = "pip install '.[train]' in the folder that mzseek was installed from"


def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything that is made.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Of the spectra that are drawn, and of training.")] = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Of training; 1 for a quick look.")] = 12,
) -> None:
    """Annotate real spectra with what comes with mzseek, then train on some of them.

    Training needs torch and matplotlib. Without them the demo ends after annotating.

    Example: mzseek demo --out demo
    """
    if out.exists() and not out.is_dir():
        raise DatasetError(f"{out}: is a file, expected a folder to make")
    from mzseek.io import atomic_file, sole_writer

    with sole_writer(out, "making the demo"):
        if out.is_dir() and any(out.iterdir()) and not (out / _MARK).exists():
            raise DatasetError(f"{out}: exists and is no demo; name another --out")
        with atomic_file(out / _MARK) as partial:
            partial.write_text("Made by `mzseek demo`, which may replace what is in this folder.\n")
        _make(out, seed, epochs)


def _make(out: Path, seed: int, epochs: int) -> None:
    start = time.perf_counter()
    _step(1, "Annotating real spectra of a contributor that the model has not learned from")
    _annotate(out / "answers")
    look = (
        f"[bold]Look at {plain(out / 'answers' / 'report.html')}[/bold] in a browser: spectra, "
        "molecules, and why."
    )
    missing = [package for package in _TO_TRAIN if not is_installed(package)]
    if missing:
        say(
            f"\nDone in {time.perf_counter() - start:.0f} s.\n{look}\n"
            f"The second half, training a model, needs {' and '.join(missing)}: "
            f"{plain(_GET_TRAINING)}"
        )
        return
    from mzseek.bundle import Bundle

    bundle = Bundle.open()
    _step(2, "Taking real spectra to train on from the library that comes with mzseek")
    prepared = _prepare(bundle, out, seed)
    _step(3, "Training two losses, and what they must beat")
    runs = _train(prepared, out / "runs", seed, epochs)
    _step(4, "What each is good at")
    from mzseek.bundle.subset import SETTING
    from mzseek.evaluation.scored import Scoring
    from mzseek.export.run_pages import evaluate_runs, write_runs_page

    with watched() as progress:
        shown = evaluate_runs(list(runs.values()), Scoring(candidates=SETTING), progress=progress)
    show_tradeoff(shown)
    page = write_runs_page(shown, out / "index.html")
    say(
        f"\nDone in {time.perf_counter() - start:.0f} s.\n{look}\n"
        f"And at {plain(page)}: what training for one metric costs in another."
    )


def _annotate(out: Path) -> None:
    from mzseek.cli.commands.annotate import tell
    from mzseek.datasets.files import DEMO_MEASURED, DEMO_QUERIES
    from mzseek.export.job import annotate_files
    from mzseek.export.writer import Settings

    shutil.rmtree(out, ignore_errors=True)  # of an earlier demo, whose folder this is
    with watched() as progress:
        done = annotate_files(
            [DEMO_QUERIES, DEMO_MEASURED], out, settings=Settings(title="mzseek demo"),
            progress=progress, log=say,
        )  # fmt: skip
    tell(done)
    _tell_right(out / "summary.tsv", [DEMO_QUERIES, DEMO_MEASURED])


def _tell_right(summary: Path, files: list[Path]) -> None:
    """Print how many answers are right, by the molecules that the spectra state."""
    import csv

    from mzseek.annotation.reading import Features
    from mzseek.chem import inchikey_block

    truth = {
        feature.name: inchikey_block(feature.spectra[0].metadata["smiles"])
        for feature in Features(files)
    }
    with summary.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    right = [row for row in rows if truth[row["feature"]] == row["InChIkey2D"]]
    sure = [row for row in rows if float(row["confidence"] or 0) >= 0.5]
    sure_and_right = [row for row in sure if row in right]
    say(
        f"These spectra say what they are of, so the answers can be checked: {len(right):,} of "
        f"{len(rows):,} are right,\nand {len(sure_and_right):,} of the {len(sure):,} that have a "
        "confidence of 50 % or more."
    )


def _prepare(bundle: "Bundle", out: Path, seed: int) -> "Prepared":
    from mzseek.bundle.subset import write_subset
    from mzseek.datasets.prepare import prepare

    files = write_subset(bundle, out / "data", seed=seed)
    with watched() as progress:
        prepared, is_new = prepare(
            files.spectra, files.candidates, out / "prepared", progress=progress
        )
    show_prepared(prepared, is_new)
    return prepared


def _train(prepared: "Prepared", out: Path, seed: int, epochs: int) -> dict[str, Any]:
    from mzseek.evidence import channels_from
    from mzseek.evidence.fitting import FitOptions, fit
    from mzseek.training.options import Options
    from mzseek.training.train import train_several

    shutil.rmtree(out, ignore_errors=True)  # of an earlier demo, whose folder this is
    common: dict[str, Any] = {"epochs": epochs, "lr": 3e-4, "seed": seed}
    options = {
        "iou": Options.of("iou", **common),
        "emb-cos": Options.of("emb-cos", **common),
        _BLIND: Options.of("emb-cos", "blind", **common),
    }
    with watched() as progress:
        runs: dict[str, Any] = train_several(
            prepared.folder, options, out,
            processes=min(len(options), os.cpu_count() or 1), progress=progress, say=say,
        )  # fmt: skip
        runs[_LOOK_UP] = fit(
            prepared, channels_from("analogs"), out / _LOOK_UP, FitOptions(), progress=progress
        )
    for name, run in runs.items():
        say(f"{name}: {run.metadata['seconds']:.0f} s")
    return runs


def _step(number: int, title: str) -> None:
    say(f"\n[bold]{number}. {plain(title)}[/bold]")
