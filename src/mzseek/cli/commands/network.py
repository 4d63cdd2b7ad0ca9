"""``mzseek network``: a molecular network of the features of a study."""

from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from mzseek.annotation.config import AnnotateConfig
from mzseek.cli.options import IS_LIBRARY, Jobs, SpectrumFiles, options_of
from mzseek.cli.output import only_json, plain, print_json, say, show_skipped, watched
from mzseek.core.text import pluralize
from mzseek.library.options import NetworkOptions

_OPTIONS = (
    "database", "library", "model", "objective", "adduct", "ppm", "peak_ppm", "instrument",
    "recalibrate", "clean", "expected_in_database", "prior", "group", "rt_window", "rt_unit",
    "smiles_column", "name_column",
)  # fmt: skip


@options_of(AnnotateConfig, _OPTIONS, library=IS_LIBRARY)
@options_of(NetworkOptions)
def network(
    spectra: SpectrumFiles,
    out: Annotated[Path, typer.Option(help="File to write: NAME.graphml.")],
    annotate: Annotated[
        bool, typer.Option(help="Annotate features, and put the best candidate at each node.")
    ] = True,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file that mzseek has not written.")
    ] = False,
    jobs: Jobs = None,
    json_output: Annotated[
        bool, typer.Option("--json", help="End with a JSON object, alone on standard output.")
    ] = False,
    **options: Any,
) -> None:
    """Connect similar features, so that unknowns get a neighbourhood.

    The GraphML file opens in Cytoscape. Options of annotation are those of `mzseek annotate`.

    Example: mzseek network study.mgf --out study.graphml
    """
    from mzseek.export.network import write_network

    chosen = NetworkOptions(
        **{field.name: options.pop(field.name) for field in fields(NetworkOptions)}
    )
    config = AnnotateConfig(**options)
    with only_json() if json_output else nullcontext():
        with watched() as progress:
            done = write_network(
                spectra, out, config, chosen, annotate=annotate, force=force, jobs=jobs,
                progress=progress,
            )  # fmt: skip
        counts = done.counts
        say(
            f"{pluralize(counts['features'], 'feature', 'features')}, "
            f"{pluralize(counts['edges'], 'edge', 'edges')}, "
            f"{pluralize(counts['components'], 'component', 'components')} of two features or more "
            f"(the largest: {counts['largest']:,}), {counts['single']:,} without a neighbour"
        )
        if annotate:
            say(f"{pluralize(counts['annotated'], 'feature', 'features')} annotated")
        show_skipped(done.skipped)
        for line in done.messages:
            say(plain(line))
        say(f"[bold]Open in Cytoscape:[/bold] {plain(done.out)}")
    if json_output:
        print_json({"out": str(done.out), **counts, "skipped": len(done.skipped)})
