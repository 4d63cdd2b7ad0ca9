"""``mzseek demo``: the main job on data that mzseek makes itself."""

import time
from pathlib import Path
from typing import Annotated

import typer

from mzseek.cli.prepare import show_prepared
from mzseek.cli.show import say, show_check, watched
from mzseek.data.check import check_dataset
from mzseek.data.dataset import find_dataset
from mzseek.data.demo import QUERIES, write_demo
from mzseek.data.prepare import prepare
from mzseek.errors import DatasetError
from mzseek.files import atomic_file

_MARK = "MADE-BY-MZSEEK-DEMO.txt"


def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything that is made.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Another seed makes another simulated set.")] = 0,
) -> None:
    """Make a simulated data set, check it, prepare it, and draw a page about it.

    Example: mzseek demo --out demo
    """
    from mzseek.report import write_dataset_page  # plotting takes a second to load

    start = time.perf_counter()
    _claim(out)
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
    _step(4, "Drawing a page")
    page = write_dataset_page(prepared, out / "index.html", queries=QUERIES, simulated=True)
    say(
        f"\nDone in {time.perf_counter() - start:.0f} s. The data are simulated: what they show is "
        f"how mzseek works,\nnot how well. [bold]Look at {page}[/bold] in a browser."
    )
    if report.faults:
        raise typer.Exit(1)


def _claim(out: Path) -> None:
    """Mark the folder as the demo's, unless it holds something else."""
    if out.exists() and not out.is_dir():
        raise DatasetError(f"{out}: is a file, expected a folder to make")
    if out.is_dir() and any(out.iterdir()) and not (out / _MARK).exists():
        raise DatasetError(f"{out}: exists and is no demo; name another --out")
    with atomic_file(out / _MARK) as partial:
        partial.write_text("Made by `mzseek demo`, which may replace what is in this folder.\n")


def _step(number: int, title: str) -> None:
    say(f"\n[bold]{number}. {title}[/bold]")
