"""``mzseek prepare``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mzseek.cli.options import EXISTS, AsJson, Fingerprint, Jobs, Out, refuse_file
from mzseek.cli.output import plain, print_json, say, show_skipped, watched
from mzseek.core.errors import DatasetError
from mzseek.core.text import pluralize

if TYPE_CHECKING:
    from mzseek.datasets.prepared import Prepared


def prepare(
    spectra: Annotated[
        Path,
        typer.Argument(help="Table in MassSpecGym's columns, or .gz; or a folder with its lists."),
        EXISTS,
    ],
    out: Out,
    candidates_mass: Annotated[
        Path | None, typer.Option(help="JSON of candidates of equal mass, or .gz.")
    ] = None,
    candidates_formula: Annotated[
        Path | None, typer.Option(help="JSON of candidates of equal formula, or .gz.")
    ] = None,
    candidates: Annotated[
        list[str] | None, typer.Option(help="NAME=JSON: candidates of any other kind.")
    ] = None,
    fingerprint: Fingerprint = "morgan2",
    intensity_floor: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Leave out peaks below this share of the base.")
    ] = 0.0,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Turn a data set into the sparse arrays that training reads.

    Done once: if nothing has changed since, the folder is left as it is.

    Example: mzseek prepare myset --out prepared
    """
    settings = {"mass": candidates_mass, "formula": candidates_formula}
    for text in candidates or []:
        name, equals, file = text.partition("=")
        if not (name.replace("-", "").replace("_", "").isalnum() and equals and file):
            raise DatasetError(f"--candidates {text!r}: expected NAME=FILE")
        settings[name] = Path(file)
    chosen = {name: path for name, path in settings.items() if path is not None}
    for path in chosen.values():
        refuse_file(str(path))
    from mzseek.datasets.files import find_dataset
    from mzseek.datasets.prepare import PrepareOptions
    from mzseek.datasets.prepare import prepare as prepare_dataset

    if spectra.is_dir():
        files = find_dataset(spectra)
        spectra, chosen = files.spectra, files.candidates | chosen
    reasons: list[str] = []
    options = PrepareOptions(fingerprint=fingerprint, intensity_floor=intensity_floor)
    with watched() as progress:
        prepared, is_new = prepare_dataset(
            spectra, chosen, out, options, jobs=jobs, progress=progress, say=reasons.append
        )
    if as_json:
        print_json(prepared.manifest)
        return
    for reason in reasons:
        say(plain(reason))
    show_prepared(prepared, is_new)


def show_prepared(prepared: "Prepared", is_new: bool) -> None:
    """Print what a prepared folder holds."""
    from mzseek.io.skipped import read_skipped

    counts = prepared.manifest["counts"]
    size = sum(entry["bytes"] for entry in prepared.manifest["files"].values())
    if not is_new:
        say(f"{plain(prepared.folder)} is up to date.")
    folds = ", ".join(f"{fold} {n:,}" for fold, n in counts["spectra_by_fold"].items())
    spectra = pluralize(counts["spectra"], "spectrum", "spectra")
    measured = pluralize(counts["measured_molecules"], "molecule", "molecules")
    say(
        f"{spectra} ({folds}) of {measured}, {counts['molecules']:,} molecules with all "
        f"candidates, {size / 1e6:,.1f} MB"
    )
    for name, lists in prepared.manifest["candidates"].items():
        say(
            f"{plain(name)} candidates: {pluralize(lists['lists'], 'list', 'lists')}, "
            f"median {lists['median']:g}, largest {lists['largest']}"
        )
        if lists["molecules_without"]:
            without = pluralize(lists["molecules_without"], "molecule has", "molecules have")
            say(f"  [yellow]{without} no list[/yellow]")
    if not prepared.manifest["candidates"]:
        say("[yellow]No candidate lists were given: nothing to rank.[/yellow]")
    skipped_path = prepared.folder / "rejects.tsv"
    show_skipped(read_skipped(skipped_path), skipped_path)
