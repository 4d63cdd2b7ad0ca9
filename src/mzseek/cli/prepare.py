"""``mzseek prepare``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from mzseek.chem.fingerprints import FINGERPRINTS
from mzseek.cli.data import Jobs
from mzseek.cli.show import console, show_rejects, watched
from mzseek.data.cache import Prepared
from mzseek.data.dataset import read_rejects
from mzseek.data.prepare import Options
from mzseek.data.prepare import prepare as prepare_dataset
from mzseek.errors import DatasetError


def prepare(
    spectra: Annotated[Path, typer.Argument(help="Table in MassSpecGym's columns, or .gz.")],
    out: Annotated[Path, typer.Option(help="Folder to make.")],
    candidates_mass: Annotated[
        Path | None, typer.Option(help="JSON of candidates of equal mass, or .gz.")
    ] = None,
    candidates_formula: Annotated[
        Path | None, typer.Option(help="JSON of candidates of equal formula, or .gz.")
    ] = None,
    candidates: Annotated[
        list[str] | None, typer.Option(help="NAME=JSON: candidates of any other kind.")
    ] = None,
    fingerprint: Annotated[str, typer.Option(help=" ".join(FINGERPRINTS))] = "morgan2",
    intensity_floor: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Leave out peaks below this share of the base.")
    ] = 0.0,
    jobs: Jobs = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the manifest.")] = False,
) -> None:
    """Turn a data set into the sparse arrays that training reads.

    Done once: if nothing has changed since, the folder is left as it is.

    Example: mzseek prepare MassSpecGym.tsv --candidates-mass mass.json --out prepared
    """
    settings = {"mass": candidates_mass, "formula": candidates_formula}
    for text in candidates or []:
        name, equals, path = text.partition("=")
        if not (name.replace("-", "").replace("_", "").isalnum() and equals and path):
            raise DatasetError(f"--candidates {text!r}: expected NAME=FILE")
        settings[name] = Path(path)
    chosen = {name: path for name, path in settings.items() if path is not None}
    options = Options(fingerprint=fingerprint, intensity_floor=intensity_floor)
    with watched() as progress:
        prepared, made = prepare_dataset(
            spectra, chosen, out, options, jobs=jobs, progress=progress
        )
    if as_json:
        print(json.dumps(prepared.manifest))
    else:
        show_prepared(prepared, made)


def show_prepared(prepared: Prepared, made: bool) -> None:
    """What a prepared folder holds."""
    counts = prepared.manifest["counts"]
    size = sum(facts["bytes"] for facts in prepared.manifest["files"].values())
    if not made:
        console.print(f"{prepared.folder} is up to date.")
    folds = ", ".join(f"{fold} {n:,}" for fold, n in counts["spectra_by_fold"].items())
    console.print(
        f"{counts['spectra']:,} spectra ({folds}) of {counts['measured_molecules']:,} molecules, "
        f"{counts['molecules']:,} molecules in all, {size / 1e6:,.0f} MB"
    )
    for name, lists in prepared.manifest["candidates"].items():
        console.print(
            f"{name} candidates: {lists['lists']:,} lists, median {lists['median']:g}, "
            f"largest {lists['largest']}"
        )
    rejects = prepared.folder / "rejects.tsv"
    show_rejects(read_rejects(rejects), str(rejects))
