import statistics
from dataclasses import replace

import pytest

from mzseek.core.errors import ExperimentError
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.scored import Scoring
from mzseek.experiments.kinds import RUNS_KIND
from mzseek.experiments.sweep import opened


def test_the_rate_is_chosen_on_validation_and_the_cell_is_the_mean_over_seeds(ran, whole) -> None:
    site, experiment, done = ran
    asked = RUNS_KIND.asked(experiment, whole)["bce", "hr"]
    reached = {}
    for seeds in asked.grid:
        runs = [opened(site, trial)[0] for trial in seeds]
        reached[seeds[0].lr] = statistics.fmean(
            run.best["hit_rate@1/mass"]["value"] for run in runs
        )
    best = max(reached, key=lambda lr: reached[lr])
    assert reached[1e-6] != reached[1e-2]
    chosen = next(seeds for seeds in asked.grid if seeds[0].lr == best)
    values = [
        evaluate(opened(site, trial)[0], Scoring("test", "mass")).values["hit_rate@1"].mean()
        for trial in chosen
    ]
    cell = done.results.cell("bce", "hr")
    assert list(cell.values) == values
    assert cell.chosen == {"lr": best}


def test_cells_that_cannot_be_are_empty(ran) -> None:
    results = ran[2].results
    assert results.cell("emb-cos", "tanimoto") is None
    assert results.cell("old", "hr") is None
    assert len(results.cell("random", "hr").values) == 2


def test_the_mean_list_is_what_was_trained_on(ran) -> None:
    site, _, done = ran
    sizes = site.prepared("morgan2").candidates("mass").sizes
    assert done.results.cell("bce", "length").values == (sizes.mean(),)


def test_what_cannot_be_measured_is_refused(two) -> None:
    column = replace(two.column("hr"), metric="hitrate@1")
    with pytest.raises(ExperimentError, match="metric 'hitrate@1' is unknown, expected one of"):
        RUNS_KIND.check(replace(two, columns=(column,)))
    column = replace(two.column("hr"), metric="decoded hit_rate@1")
    with pytest.raises(ExperimentError, match="decoded 'hit_rate@1' is unknown, expected one of"):
        RUNS_KIND.check(replace(two, columns=(column,)))
    with pytest.raises(ExperimentError, match="select 'hr' is unknown"):
        RUNS_KIND.check(replace(two, select="hr"))
    RUNS_KIND.check(two)
