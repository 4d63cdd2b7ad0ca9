"""``mzseek show``."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mzseek.cli.early import early, look_for_file
from mzseek.cli.options import AsJson
from mzseek.errors import DatasetError, InputError
from mzseek.files import read_object

# Folders that mzseek makes: where their kind stands, and which command shows them. Written out,
# since asking the rooms would load RDKit and torch; a test compares them.
OWN_FOLDERS = {
    "prepared folder": ("manifest.json", "`mzseek bands {}` looks at its candidates"),
    "molecule database": ("manifest.json", "`mzseek database info {}` shows what it holds"),
    "data set": ("manifest.json", "`mzseek show {}/spectra.tsv.gz` shows its spectra"),
    "run folder": ("run.json", "`mzseek evaluate {}` shows what it has learned"),
}


@early(files=look_for_file)
def show(
    files: Annotated[
        list[Path], typer.Argument(help="Spectrum files, folders or zips, in any known format.")
    ],
    spectrum: Annotated[
        str | None,
        typer.Option(help="Draw this one: its identifier, its name, or its number, from 1."),
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(help="Also draw it (or the first one) into this SVG file.")
    ] = None,
    rejects: Annotated[
        Path | None, typer.Option(help="List all that is set aside in this TSV file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What is in a file of spectra: counts, ions, masses, structures, what is set aside.

    Exits with status 1 if not one spectrum could be read.

    Example: mzseek show library.mgf --spectrum caffeine --svg caffeine.svg
    """
    for file in files:
        _refuse_own_folder(file)
    _check_outputs(files, svg, rejects)
    if spectrum is not None:
        if rejects is not None:
            raise InputError(rejects, "--rejects is about whole files: leave out --spectrum")
        if not spectrum.strip():
            raise InputError("--spectrum", "is empty, expected an identifier, a name or a number")
        from mzseek.cli.spectra.one_spectrum import show_one

        show_one(files, spectrum.strip(), svg, as_json)
        return
    from mzseek.cli.spectra.summary import show_all

    if not show_all(files, svg, rejects, as_json):
        raise typer.Exit(1)


def _check_outputs(files: Sequence[Path], svg: Path | None, rejects: Path | None) -> None:
    if svg is not None and svg.suffix.lower() != ".svg":
        raise InputError(svg, "expected a name that ends in .svg")
    for out in filter(None, (svg, rejects)):
        if out.is_dir():
            raise InputError(out, "is a folder, expected the name of a file to write")
        if out.resolve() in {file.resolve() for file in files}:
            raise InputError(out, "is the file to be shown; name another one to write")
        above = next(folder for folder in out.resolve().parents if folder.exists())
        if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
            raise InputError(out, f"cannot be made: {above} is no folder that can be written to")


def _refuse_own_folder(path: Path) -> None:
    """Say what it is and which command shows it, where it is a folder that mzseek made."""
    for kind, (name, hint) in OWN_FOLDERS.items():
        file = path / name
        if path.is_dir() and file.is_file() and _kind_in(file) == kind:
            raise InputError(path, f"is a {kind}, expected spectra; {hint.format(path)}")


def _kind_in(file: Path) -> object:
    try:
        return read_object(file, DatasetError).get("kind")
    except DatasetError:  # somebody else's file of that name, or a damaged one
        return None
