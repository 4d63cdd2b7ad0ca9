import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import rankdata

from mzseek.core.errors import ExperimentError
from mzseek.decision import bayes_decision, regret, regret_bounds
from mzseek.evaluation.posteriors import calibrate
from mzseek.evaluation.regrets import FoldRegrets
from mzseek.evaluation.scored import Scoring
from mzseek.experiments import Column, Row, experiment_named
from mzseek.experiments import kinds as module
from mzseek.experiments import kinds as runs
from mzseek.experiments.kinds import REGRET_KIND, by_width, means_of
from mzseek.experiments.sweep import run_folder
from mzseek.runs.run import Run


@pytest.mark.parametrize("row", ["bce by tanimoto", "emb-cos by cosine", "iou by bits"])
def test_cells_are_means_over_single_lists(row: str, smoked, smoke) -> None:
    site, done = smoked
    experiment, here = experiment_named("regret").at(smoke)
    judged = experiment.row(row).settings["judged_by"]
    [trial] = REGRET_KIND.asked(experiment, here)[row, "similarity_lost"].trials
    run = Run.open(run_folder(site, trial))
    posterior, data = calibrate(run, Scoring("test", "mass")).evaluated, run.open_data()
    found = []
    for end, count in zip(np.cumsum(posterior.counts), posterior.counts, strict=True):
        rows = data.fingerprint_rows(posterior.candidates[end - count : end])
        p = posterior.probabilities[end - count : end]
        bounds = regret_bounds(judged, rows, p)
        found.append(
            (
                regret(judged, "hit", rows, p),
                bounds.hit_under_similarity,
                regret("hit", judged, rows, p),
                bounds.similarity_under_hit,
                regret(judged, "hit", rows, p) < 1e-9,
                bounds.agreement,
            )
        )
        assert bayes_decision(judged, rows, p).index is not None
    names = list(experiment.columns)[:6]
    cells = done["regret"].results.cells[row]
    for column, wanted in zip(names, np.mean(found, axis=0), strict=True):
        assert cells[column.key].mean == pytest.approx(wanted, abs=1e-9), column.key


def test_no_bound_is_exceeded_in_any_list(smoked) -> None:
    cells = smoked[1]["regret"].results.cells
    assert len(cells) == 9
    assert [of["exceeded"].values for of in cells.values()] == [(0.0,)] * 9
    assert all(of["similarity_lost"].mean <= of["similarity_bound"].mean for of in cells.values())
    assert all(of["guaranteed"].mean <= of["agreed"].mean for of in cells.values())


def test_what_was_measured_is_kept_until_the_run_is_another(smoked, smoke, monkeypatch) -> None:
    site, done = smoked
    experiment, here = experiment_named("regret").at(smoke)

    def unwanted(*_, **__):
        raise AssertionError("measured again")

    monkeypatch.setattr(module, "regrets_of", unwanted)
    cells, _ = REGRET_KIND.measure(experiment, here, site)
    assert cells == done["regret"].results.cells
    [file] = (site.out / "measured" / "morgan2").glob("iou-*.regret-mass-test.json")
    kept = json.loads(file.read_text())
    file.write_text(json.dumps(kept | {"run": "another"}))
    with pytest.raises(AssertionError, match="measured again"):
        REGRET_KIND.measure(experiment, here, site)
    file.write_text(json.dumps(kept))


def test_growth_is_the_rank_correlation_with_width() -> None:
    rng = np.random.default_rng(0)
    lost, high = rng.random(40), rng.random(40)
    none = np.zeros(40)
    made = FoldRegrets(none, high, none + 0.5, lost, lost + 1, none, none, none > 0)
    ranks = rankdata(high), rankdata(lost)
    assert means_of(made)["growth"] == pytest.approx(np.corrcoef(*ranks)[0, 1])
    assert means_of(replace(made, similarity_lost=none))["growth"] is None
    assert means_of(replace(made, similarity_bound=lost - 0.1))["exceeded"] == 40


def test_tenths_of_the_lists_stand_in_the_order_of_width() -> None:
    width = np.array([0.5, np.nan, 0.1, 0.4, 0.2, 0.3])
    none, some = np.zeros(6), np.arange(6.0)
    made = FoldRegrets(none, width, none, some, none, none, none, none > 0)
    found = by_width(made)
    assert found["width"] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert found["similarity_lost"] == [2, 4, 5, 3, 0]


def test_its_runs_are_those_of_the_main_table(smoke) -> None:
    main, here = experiment_named("main").at(smoke)
    shared = {t.name for cell in runs.KIND.asked(main, here).values() for t in cell.trials}
    experiment, here = experiment_named("regret").at(smoke)
    own = {t.name for cell in REGRET_KIND.asked(experiment, here).values() for t in cell.trials}
    assert len(own) == 3
    assert own <= shared


def test_it_is_drawn(smoked) -> None:
    text = (smoked[1]["regret"].folder / "figure.svg").read_text()
    assert all(
        word in text for word in ("Tanimoto", "cosine", "bit accuracy", "emb-cos", "at most")
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"columns": (Column("a", "a", "regret"),)}, "metric 'regret' is unknown"),
        ({"rows": (Row("a", "a", {"loss": "bce"}),)}, "judged_by None is unknown"),
        ({"rows": (Row("a", "a", {"loss": "bce", "judged_by": "hit"}),)}, "judged_by 'hit' is unk"),
        ({"rows": (Row("a", "a", {"judged_by": "bits"}, is_literature=True),)}, "a: has no run"),
    ],
)
def test_what_it_cannot_measure_is_refused(changes, message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        REGRET_KIND.check(replace(experiment_named("regret"), **changes))
