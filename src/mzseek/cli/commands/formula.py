"""``mzseek formula``: the molecular formulas that features may have."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mzseek.annotation.config import INSTRUMENTS, AnnotateConfig
from mzseek.cli.options import AsJson, Check, Jobs, SpectrumFiles, options_of
from mzseek.cli.output import new_table, plain, print_json, say, show, show_skipped, watched
from mzseek.core.errors import AnnotationError
from mzseek.core.registry import check_name
from mzseek.core.text import pluralize

if TYPE_CHECKING:
    from mzseek.export.formulas import FormulaTable

_SHOWN, _FORMULAS = 10, 3


def _check_instrument(name: object) -> None:
    check_name(INSTRUMENTS, str(name), "instrument", AnnotationError)


@options_of(
    AnnotateConfig,
    (
        "adduct",
        "ppm",
        "instrument",
        "recalibrate",
        "elements",
        "features",
        "group",
        "rt_window",
        "rt_unit",
    ),
    instrument=Check(_check_instrument),
)
def formula(
    spectra: SpectrumFiles,
    out: Annotated[Path | None, typer.Option(help="Table to write: NAME.tsv.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Formulas of a feature, at most.")] = 10,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file that is no table of formulas.")
    ] = False,
    jobs: Jobs = None,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Rank the molecular formulas behind spectra, without a database.

    Fragments, losses, the precursor's mass, the isotope pattern (where the file has survey scans,
    or the table of --features has patterns) and a prior make a calibrated probability of each
    formula and ion. Without --out, the first ten features are shown.

    Example: mzseek formula my.mgf --out formulas.tsv
    """
    from mzseek.export.formulas import write_formulas

    config = AnnotateConfig(**options)
    with watched() as progress:
        table = write_formulas(
            spectra, out, config, top=top, shown=0 if out else _SHOWN, force=force, jobs=jobs,
            progress=progress,
        )  # fmt: skip
    if out is None:
        _show(table)
    say(
        f"{pluralize(table.features, 'feature', 'features')} of "
        f"{pluralize(table.records, 'record', 'records')}; {table.without:,} without a formula"
    )
    show_skipped(table.skipped)
    for message in table.messages:
        say(plain(message))
    if out is not None:
        say(f"[bold]Look at:[/bold] {plain(out)}")
    if as_json:
        print_json(
            {
                "out": None if out is None else str(out),
                "features": table.features,
                "without_formula": table.without,
                "records": table.records,
                "skipped": table.skipped.total,
            }
        )
    if table.features == table.without:
        raise typer.Exit(1)


def _show(table: "FormulaTable") -> None:
    shown = new_table(
        "feature", "m/z", "formula", "ion", "probability", "error", "explained", "isotopes", left=1
    )
    for feature, result in table.first:
        for rank, ranked in enumerate(result.formulas[:_FORMULAS]):
            isotopes = "" if ranked.isotope_score is None else f"{ranked.isotope_score:.1f}"
            shown.add_row(
                plain(feature.name, 30) if rank == 0 else "",
                f"{feature.precursor_mz:.4f}" if rank == 0 else "",
                plain(ranked.formula), plain(ranked.adduct), f"{ranked.probability:.1%}",
                f"{ranked.error_ppm:+.1f} ppm", f"{ranked.explained:.0%}", isotopes,
            )  # fmt: skip
        for note in result.notes:
            say(f"[dim]{plain(feature.name, 30)}: {plain(note)}[/dim]")
    show(shown)
    say("[dim]probability: of formula and ion together; explained: share of the intensity; "
        "isotopes: log-likelihood of the pattern, 0 for the best[/dim]")  # fmt: skip
