"""``mzseek bands``."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mzseek.chem.fingerprinting import FINGERPRINTS, PAPER_FINGERPRINTS
from mzseek.cli.options import AsJson, Jobs, Lists, PreparedFolder, refuse_fingerprint
from mzseek.cli.output import new_table, plain, print_json, say, show, watched
from mzseek.core.errors import DatasetError, require
from mzseek.core.text import pluralize
from mzseek.decision.utilities import BAND_SIMILARITIES

if TYPE_CHECKING:
    from mzseek.decision import Bands


def bands(
    data: PreparedFolder,
    fingerprint: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{' '.join(FINGERPRINTS)}; several times for several, or `paper` for the "
            "six of the paper. By default the prepared one."
        ),
    ] = None,
    similarity: Annotated[str, typer.Option(help=" ".join(BAND_SIMILARITIES))] = "tanimoto",
    candidates: Lists = "mass",
    fold: Annotated[
        str, typer.Option(help="Lists of the molecules of train, val or test; all as the paper's.")
    ] = "all",
    against: Annotated[
        str,
        typer.Option(
            help="truth: each true molecule against its candidates, as the paper's figures; "
            "pairs: all pairs of a list, as its theorems."
        ),
    ] = "truth",
    lists: Annotated[
        int | None, typer.Option(min=1, help="So many lists at the most, evenly spaced.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Also draw the distributions into this SVG file.")
    ] = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """How alike the candidates are: the similarity bands that bound regret.

    The wider the band, the more can be lost by training for one metric and being judged by another.

    Example: mzseek bands prepared --fingerprint morgan2 --fingerprint rdkit --figure bands.svg
    """
    requested = list(dict.fromkeys(expanded(fingerprint or [])))
    for kind in requested:
        refuse_fingerprint(kind)
    if figure:
        if figure.suffix != ".svg":
            raise DatasetError(f"{figure}: expected a name that ends in .svg")
        require("matplotlib", "a figure")
    from mzseek.datasets.bands import set_bands
    from mzseek.datasets.prepared import Prepared
    from mzseek.io import atomic_file, sole_writer

    prepared = Prepared.open(data, verify=True)
    kinds = requested or [str(prepared.manifest["options"]["fingerprint"])]
    by_kind: dict[str, Bands] = {}
    with contextlib.ExitStack() as held:
        if figure:  # a path that cannot be written to is refused before the work
            held.enter_context(sole_writer(figure, "drawing bands"))
            partial = held.enter_context(atomic_file(figure))
        progress = held.enter_context(watched())
        for kind in kinds:
            by_kind[kind] = set_bands(
                prepared, candidates, fold=None if fold == "all" else fold, fingerprint=kind,
                similarity=similarity, against=against, max_lists=lists, jobs=jobs,
                progress=progress,
            )  # fmt: skip
        if figure:
            from mzseek.export.figures import bands_svg

            partial.write_text(bands_svg(by_kind, similarity), encoding="utf-8")
    if as_json:
        options = {"similarity": similarity, "candidates": candidates, "fold": fold}
        summary = {
            "lists": {kind: int(bands.usable.sum()) for kind, bands in by_kind.items()},
            "medians": {kind: bands.medians() for kind, bands in by_kind.items()},
            "twins": {kind: _with_twins(bands) for kind, bands in by_kind.items()},
        }
        print_json(options | {"against": against} | summary)
        return
    _show(by_kind, similarity, candidates, fold, against)
    if figure:
        say(f"Distributions: {plain(figure)}")


def expanded(kinds: Sequence[str]) -> list[str]:
    """Return kinds of fingerprint, with the paper's six for `paper`."""
    return [kind for name in kinds for kind in (PAPER_FINGERPRINTS if name == "paper" else (name,))]


def _with_twins(of_lists: "Bands") -> float:
    """Share of the lists in which two molecules have the same fingerprint."""
    # The cosine of equal rows may round to just beside 1; that of others is never so near.
    return float((of_lists.high[of_lists.usable] > 1 - 1e-9).mean())


def _show(
    by_kind: "dict[str, Bands]", similarity: str, candidates: str, fold: str, against: str
) -> None:
    first = next(iter(by_kind.values()))
    what = "the truth against its candidates" if against == "truth" else "all pairs of a list"
    where = "" if fold == "all" else f" of the {fold} fold"
    lists = f"{first.usable.sum():,} {plain(candidates)} lists{where}"
    say(f"{plain(similarity)} of {what}: medians over {lists}")
    alone = int((~first.usable).sum())
    if alone:
        missing = pluralize(
            alone, "list has nothing to compare and is", "lists have nothing to compare and are"
        )
        say(f"[yellow]{missing} left out[/yellow]")
    table = new_table("fingerprint", "σ min", "σ max", "σ max − σ min", "lists with σ max = 1")
    for kind, of_kind in by_kind.items():
        medians = of_kind.medians()
        cells = [f"{medians[name]:.3f}" for name in ("low", "high", "width")]
        table.add_row(kind, *cells, f"{100 * _with_twins(of_kind):.1f} %")
    show(table)
