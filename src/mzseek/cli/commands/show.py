"""``mzseek show``: what spectrum files hold."""

import os
from pathlib import Path
from typing import Annotated

import typer

from mzseek.cli.options import AsJson, SpectrumFiles
from mzseek.core.errors import DatasetError, InputError

# Folders that mzseek writes: the file that states their kind, and the command that shows them.
# Written out, since the packages that write them load RDKit and torch; a test compares them.
OWN_FOLDERS = {
    "prepared folder": ("manifest.json", "`mzseek bands {}` looks at its candidates"),
    "molecule database": ("manifest.json", "`mzseek database info {}` shows what it holds"),
    "data set": ("manifest.json", "`mzseek show {}/spectra.tsv.gz` shows its spectra"),
    "run folder": ("run.json", "`mzseek evaluate {}` shows what it has learned"),
}


def show(
    files: SpectrumFiles,
    spectrum: Annotated[
        str | None,
        typer.Option(help="Draw this one: its identifier, its name, or its number, from 1."),
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(help="Also draw it (or the first one) into this SVG file.")
    ] = None,
    rejects: Annotated[
        Path | None, typer.Option(help="List all skipped records in this TSV file.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(help="Columns of a table, such as mz=ms2_mzs,intensity=ms2_intensities."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What is in a file of spectra: counts, ions, masses, structures, skipped records.

    Exits with status 1 if not one spectrum could be read.

    Example: mzseek show library.mgf --spectrum caffeine --svg caffeine.svg
    """
    for file in files:
        _refuse_own_folder(file)
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
    if spectrum is not None:
        if rejects is not None:
            raise InputError(rejects, "--rejects is about whole files: leave out --spectrum")
        if not spectrum.strip():
            raise InputError("--spectrum", "is empty, expected an identifier, a name or a number")
    from mzseek.cli import spectrum_view
    from mzseek.spectra.formats.tables import parse_columns

    named = parse_columns(columns or ())
    if spectrum is not None:
        spectrum_view.show_one(files, spectrum.strip(), svg, as_json, named)
    elif not spectrum_view.show_all(files, svg, rejects, as_json, named):
        raise typer.Exit(1)


def _refuse_own_folder(path: Path) -> None:
    """Refuse a folder that mzseek has written, and name the command that shows it."""
    for kind, (name, hint) in OWN_FOLDERS.items():
        if (path / name).is_file():
            from mzseek.io import read_object

            try:
                stated = read_object(path / name, DatasetError).get("kind")
            except DatasetError:  # a damaged file, or another program's of that name
                continue
            if stated == kind:
                raise InputError(path, f"is a {kind}, expected spectra; {hint.format(path)}")
