"""Run experiments from their data files to their tables."""

import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from mzseek.core.errors import ExperimentError, MzseekError
from mzseek.experiments.claims import STATES, Verdict, verdicts
from mzseek.experiments.experiment import VARIANTS, Experiment, Scale
from mzseek.experiments.kinds import kind_named
from mzseek.experiments.results import Results
from mzseek.experiments.sweep import (
    NEEDS_DATABASE,
    CellPlan,
    TrialJob,
    Workspace,
    plan_jobs,
    run_jobs,
    settled,
)
from mzseek.experiments.tables import (
    ADDED,
    SAYS,
    as_rows,
    comma_separated,
    comparison,
    latex,
    markdown,
)
from mzseek.export.report import write_page as fill
from mzseek.io import StrPath, atomic_directory
from mzseek.io.manifest import read_object
from mzseek.parallel import Engine, Log, Progress, no_log, silent
from mzseek.version import __version__

RESULTS = "results.json"
FIGURE = "figure.svg"


@dataclass(frozen=True)
class Reproduced:
    """An experiment that was run; ``folder`` has its tables, its figure and all numbers as JSON."""

    results: Results
    verdicts: list[Verdict]
    folder: Path


def _stages(
    experiments: Iterable[Experiment], scale: Scale, site: Workspace, *, drop_models: bool
) -> Iterator[list[TrialJob]]:
    """Yield every trial that these experiments need, once; experiments share runs.

    First those that depend on no other, then, once these have ended, the second stages of tuning.
    """
    cells: list[tuple[CellPlan, str]] = []
    for experiment in experiments:
        cut, here = runnable(*experiment.at(scale), site.can_mine)
        cells += [(cell, cut.select) for cell in kind_named(cut.kind).plan(cut, here).values()]
    jobs = plan_jobs((cell for cell, _ in cells), site, drop_models=drop_models)
    yield jobs
    second = []
    for cell, select in cells:
        with contextlib.suppress(MzseekError):  # its cell stays empty
            second.append(settled(cell, select, site))
    begun = {job.out for job in jobs}
    jobs = plan_jobs(second, site, drop_models=drop_models)
    yield [job for job in jobs if job.out not in begun]


def runnable(experiment: Experiment, scale: Scale, can_mine: bool) -> tuple[Experiment, Scale]:
    """Return an experiment of `Experiment.at` without the rows whose hard negatives need mining.

    With ``can_mine``, it stays as it is.
    """
    if can_mine:
        return experiment, scale
    plans = kind_named(experiment.kind).plan(experiment, scale)
    mined = {row for (row, _), plan in plans.items() if any(t.config.hard for t in plan.trials)}
    rows = tuple(row for row in experiment.rows if row.key not in mined)
    return replace(experiment, rows=rows), scale


def reproduce(
    experiments: Sequence[Experiment],
    scale: Scale,
    site: Workspace | None,
    out: StrPath,
    *,
    drop_models: bool = False,
    engine: Engine | None = None,
    devices: Sequence[str] | None = None,
    progress: Progress = silent,
    say: Log = no_log,
) -> list[Reproduced]:
    """Run what is missing, and write every table into a folder of its own below ``out``.

    ``site`` has data and runs; None where no experiment needs data. With ``drop_models``, weights
    and predictions of a run are removed as soon as it is measured, unless they are needed. Rows
    whose hard negatives need a database that ``site`` does not have are listed as not run.
    ``devices`` are the GPUs that workers of this machine share, as `run_jobs` takes them.
    ``progress`` gets a trial with its number, its step and steps.
    """
    began = time.monotonic()
    out = Path(out)
    for experiment in experiments:
        kind_named(experiment.kind).check(experiment)
    failed: dict[str, str] = {}
    trials = 0
    for jobs in _stages(experiments, scale, site, drop_models=drop_models) if site else ():
        if jobs:
            trials += len(jobs)
            outcomes = run_jobs(jobs, engine=engine, devices=devices, progress=progress, say=say)
            failed |= {outcome.name: outcome.failed for outcome in outcomes if outcome.failed}
    measured = {
        experiment.name: _measured(experiment, scale, site, failed) for experiment in experiments
    }
    seconds = time.monotonic() - began
    written = []
    for name, results in measured.items():
        metadata = {**results.metadata, "seconds": round(seconds, 1), "trials": trials}
        tested = scale.tests_claims or not kind_named(results.experiment.kind).needs_data
        judged = verdicts(results, measured, tested=tested)
        written.append(_written(replace(results, metadata=metadata), judged, out / name))
    return written


def _measured(
    experiment: Experiment, scale: Scale, site: Workspace | None, failed: Mapping[str, str]
) -> Results:
    cut, here = experiment.at(scale)
    kind = kind_named(cut.kind)
    run, _ = runnable(cut, here, site is None or site.can_mine)
    plans = kind.plan(run, here).values()
    trials = {trial.name for plan in plans for trial in plan.trials}
    failures = {name: why for name, why in failed.items() if name in trials}
    cells, series = kind.measure(run, here, site, failures)
    not_run = {row.key: NEEDS_DATABASE for row in cut.rows if row not in run.rows}
    if trials:
        cut = replace(cut, footnotes=(*cut.footnotes, VARIANTS[scale.variant][1]))
    metadata: dict[str, Any] = {
        "version": __version__,
        "title": cut.title,
        "about": cut.about,
        "paper": cut.paper,
        "footnotes": list(cut.footnotes),
        "order": cut.order,
        "variant": scale.variant,
        "full_scale": scale.name == "paper" and kind.needs_data,
    }  # fmt: skip
    if site is not None and kind.needs_data:
        metadata |= site.metadata()
    return Results(
        cut, scale.label, cells, experiment.reductions(scale), failures, metadata, series, not_run
    )


def _written(results: Results, judged: list[Verdict], folder: Path) -> Reproduced:
    from mzseek.experiments.figures import draw

    with atomic_directory(folder) as partial:
        (partial / "table.md").write_text(markdown(results, judged), "utf-8")
        (partial / "table.tex").write_text(latex(results), "utf-8")
        (partial / "table.csv").write_text(comma_separated(results), "utf-8")
        numbers = results.to_dict() | {
            "table": as_rows(results),
            "not_run_notes": results.not_run_notes(),
            "against_published": comparison(results),
            "claims": [
                {
                    "says": verdict.claim.says,
                    "by_paper": verdict.claim.by_paper,
                    "here": verdict.state,
                    "because": verdict.because,
                }
                for verdict in judged
            ],
        }
        (partial / RESULTS).write_text(json.dumps(numbers, indent=1) + "\n", "utf-8")
        draw(results, partial)
    return Reproduced(results, judged, folder)


INDEX = "index.html"


def write_page(out: Path) -> Path:
    """Write ``index.html`` from all results below the folder of a workspace."""
    sections = [_section(path.parent) for path in sorted((out / "results").glob(f"*/*/{RESULTS}"))]
    sections = sorted(sections, key=lambda section: (section["order"], section["key"]))
    claims = [claim for section in sections for _, listed in section["claims"] for claim in listed]
    return fill(
        "experiments.html",
        out / INDEX,
        {
            "sections": sections,
            "counts": {state: sum(claim["here"] == state for claim in claims) for state in STATES},
        },
    )


def _section(folder: Path) -> dict[str, Any]:
    """Return the results in a folder as the page shows them."""
    from mzseek.export.figures import inline_svg  # matplotlib is not needed for plans

    record = read_object(folder / RESULTS, ExperimentError, "run the experiment again")
    figure = folder / FIGURE
    return {
        "spectra": None,  # which results that need no data have not
        **record,
        "key": f"{record['scale']}-{record['experiment']}",
        "claims": [
            (title, [c for c in record["claims"] if c["by_paper"] == by_paper])
            for by_paper, title in ((True, SAYS), (False, ADDED))
        ],
        # Its own file of ours, made by matplotlib: text in it is escaped there.
        "figure": Markup(inline_svg(figure.read_text("utf-8"))) if figure.exists() else None,
    }
