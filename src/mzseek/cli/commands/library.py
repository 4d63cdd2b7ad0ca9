"""``mzseek library``: build and search reference spectra."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mzseek.cli.options import EXISTS, IS_LIBRARY, AsJson, Out
from mzseek.cli.output import plain, print_json, say, show_skipped, watched, write_table
from mzseek.core.text import pluralize

if TYPE_CHECKING:
    from mzseek.library import Library

library_app = typer.Typer(
    help="Build a library of reference spectra and search it.", no_args_is_help=True
)

Store = Annotated[
    Path, typer.Argument(help="Folder that `mzseek library build` has made."), IS_LIBRARY
]
Spectra = Annotated[
    list[Path],
    typer.Argument(help="Files of spectra with structures, folders or zip archives."),
    EXISTS,
]


@library_app.command("build")
def build(spectra: Spectra, out: Out) -> None:
    """Build a library from files of annotated spectra, in any format that `mzseek show` reads.

    Records without a structure, repeated ones and broken ones are skipped and listed in
    rejects.tsv.

    Example: mzseek library build massbank.msp mine.mgf --out references
    """
    from mzseek.library import Library

    with watched() as progress:
        library = Library.build(spectra, out, progress=progress)
    _show(library)


@library_app.command("add")
def add(store: Store, spectra: Spectra) -> None:
    """Add spectra. The old library stays as it is until the new one is whole.

    Example: mzseek library add references new.mgf
    """
    from mzseek.library import Library

    opened = Library.open(store)
    with watched() as progress:
        library = opened.add(spectra, progress=progress)
    say(f"{pluralize(len(library) - len(opened), 'new spectrum', 'new spectra')}")
    _show(library)


@library_app.command("info")
def info(store: Store, as_json: AsJson = False) -> None:
    """What a library holds.

    Example: mzseek library info references
    """
    from mzseek.library import Library

    opened = Library.open(store)
    if as_json:
        print_json(opened.manifest)
    else:
        _show(opened)


@library_app.command("check")
def check(store: Store) -> None:
    """Read every file and compare its checksum.

    Example: mzseek library check references
    """
    from mzseek.library import Library

    opened = Library.open(store)
    with watched():
        opened.check()
    say(f"{plain(store)}: {len(opened):,} spectra, every file as it was written")


@library_app.command("search")
def search(
    store: Store,
    spectra: Annotated[list[Path], typer.Argument(help="Files of spectra to search for."), EXISTS],
    kind: Annotated[
        str, typer.Option(help="cosine, modified (cosine), entropy, or analog.")
    ] = "cosine",
    top: Annotated[int, typer.Option(min=1, help="At most so many matches a spectrum.")] = 10,
    tolerance: Annotated[
        float, typer.Option(help="Within which peaks match, in m/z; analogs have bins.")
    ] = 0.02,
    ppm: Annotated[
        float | None,
        typer.Option(help="Only spectra whose precursor is as near as this.", show_default=False),
    ] = None,
    by_molecule: Annotated[
        bool | None,
        typer.Option(help="One spectrum a molecule; the default for analogs.", show_default=False),
    ] = None,
) -> None:
    """Search for spectra: a table on standard output, tab separated, with a header.

    Example: mzseek library search references unknowns.mgf --kind analog > analogs.tsv
    """
    from mzseek.io.skipped import SkippedGroups
    from mzseek.library import Library
    from mzseek.spectra import read_spectra

    opened = Library.open(store)
    skipped = SkippedGroups()
    queries = [spectrum for path in spectra for spectrum in read_spectra(path, skipped)]
    matches = opened.search(
        queries, kind, top, tolerance=tolerance, precursor_ppm=ppm, by_molecule=by_molecule
    ).to_table()
    write_table(matches.columns, (row.values() for row in matches))
    if skipped.total:
        first = skipped.by_count()[0]
        records = pluralize(skipped.total, "record was", "records were")
        print(f"{records} skipped, first {first.where}: {first.reason}", file=sys.stderr)


def _show(opened: "Library") -> None:
    from mzseek.io.skipped import read_skipped

    counts = opened.manifest["counts"]
    molecules = pluralize(counts["molecules"], "molecule", "molecules")
    spectra = pluralize(len(opened), "spectrum", "spectra")
    say(f"{plain(opened.folder)}: {spectra} of {molecules}, {counts['peaks']:,} peaks")
    skipped_path = opened.folder / "rejects.tsv"
    show_skipped(read_skipped(skipped_path), skipped_path)
