"""Kinds of experiment, several of them run once on the small data set at the smallest scale."""

import csv
import itertools
import json
import math
import statistics
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator
from scipy.stats import rankdata

from mzseek.core.errors import ExperimentError, MzseekError
from mzseek.datasets.bands import set_bands
from mzseek.decision import bayes_decision, regret, regret_bounds
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.posteriors import calibrate
from mzseek.evaluation.regrets import FoldRegrets
from mzseek.evaluation.scored import Scoring
from mzseek.experiments import Column, Row, Scale, experiment_named, names, scale_named
from mzseek.experiments import kinds as module
from mzseek.experiments.claims import CLAIM_CHECKS, FAILS, HOLDS, verdicts
from mzseek.experiments.kinds import KINDS, by_width, kind_named, means_of
from mzseek.experiments.reproduce import Reproduced, reproduce
from mzseek.experiments.results import Cell, Results
from mzseek.experiments.sweep import Workspace, opened, run_folder
from mzseek.parallel import LocalEngine
from mzseek.runs.run import Run

SMOKED = ("sigma", "over-time", "regret")


@pytest.fixture(scope="session")
def smoke() -> Scale:
    """The smallest scale, with enough epochs for a few validations."""
    return replace(scale_named("smoke"), epochs=3, listwise_epochs=3, most_lists=20)


@pytest.fixture(scope="session")
def smoked(
    small_set, smoke: Scale, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Workspace, dict[str, Reproduced]]:
    """Where they were run, and what came of each."""
    folder = tmp_path_factory.mktemp("smoked")
    site = Workspace.at(folder / "made", small_set.folder.parent)
    experiments = [experiment_named(name) for name in SMOKED]
    done = reproduce(experiments, smoke, site, folder / "results", engine=LocalEngine(1))
    return site, dict(zip(SMOKED, done, strict=True))


def row(settings: dict, **more: object) -> dict:
    """Change an experiment to have this row alone."""
    return {"rows": (Row("a", "a", settings, **more),)}


TWO_LISTS = (Column("a", "a", "low"), Column("b", "b", "low", candidates="formula"))


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("sigma", row({"fingerprint": "morgan9"}), "'morgan9' is unknown"),
        ("sigma", row({"similarity": "hit"}), "similarity 'hit' is unknown"),
        ("sigma", row({"loss": "bce"}), "'loss' is unknown"),
        ("sigma", {"columns": (Column("a", "a", "mean"),)}, "metric 'mean' is unknown"),
        (
            "sigma",
            {"columns": (Column("a", "a", "low"), Column("b", "b", "low", candidates="formula"))},
            "candidates differ",
        ),
        ("over-time", {"fold": "test"}, "fold is test, expected val"),
        ("over-time", {"select": "speed"}, "select 'speed' is unknown"),
        ("over-time", row({"loss": "bce", "model": "random"}), "random learns nothing"),
        ("over-time", row({"loss": "bce", "size": 3}), "setting 'size' is unknown"),
        ("regret", {"columns": (Column("a", "a", "regret"),)}, "metric 'regret' is unknown"),
        ("regret", row({"loss": "bce"}), "judged_by None is unknown"),
        ("regret", row({"loss": "bce", "judged_by": "hit"}), "judged_by 'hit' is unk"),
        ("regret", row({"judged_by": "bits"}, literature=True), "a: has no run"),
        ("toy", {"given": {}}, "toy: decision: outcomes is missing"),
        ("toy", {"rows": (Row("iou", "iou"),)}, "utility 'iou' is unknown"),
        ("toy", {"columns": (Column("a", "a", "mode"),)}, "metric 'mode' is unknown"),
        ("worst-cases", {"given": {}}, "epsilon is missing"),
        ("worst-cases", {"columns": (Column("a", "a", "regret"),)}, "a: m is missing"),
        ("worst-cases", row({"value": "said"}), "'said' is unknown"),
        ("worst-cases", row({"value": "proved"}), "judged_by None is unk"),
    ],
)
def test_what_a_kind_cannot_measure_is_refused(name: str, changes, message: str) -> None:
    experiment = replace(experiment_named(name), **changes)
    with pytest.raises(MzseekError, match=message):
        KINDS[experiment.kind].check(experiment)


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_experiments_share_the_runs_of_the_main_table(scale: str) -> None:
    def trials(name: str) -> set[str]:
        cut, here = experiment_named(name).at(scale_named(scale))
        plan = KINDS[cut.kind].plan(cut, here)
        return {trial.name for cell in plan.values() for trial in cell.trials}

    for name in ("front", "retrieval-function", "transfer", "over-time", "regret"):
        assert trials(name)
        assert trials(name) <= trials("main")


def test_kinds_and_claims_are_in_the_docs() -> None:
    docs = (Path(__file__).resolve().parents[2] / "docs" / "experiments.md").read_text()
    assert [name for name in KINDS if f"\n| `{name}` |" not in docs] == []
    assert [name for name in CLAIM_CHECKS if f"`{name}`" not in docs] == []
    assert {experiment_named(name).kind for name in names()} == set(KINDS)
    with pytest.raises(ExperimentError, match="kind of experiment 'run' is unknown, expected one"):
        kind_named("run")


@pytest.mark.parametrize(
    ("name", "words"),
    [("over-time", ("bce", "iou", "fp-cos, τ = 1/256", "HR@20, %")),
     ("regret", ("Tanimoto", "cosine", "bit accuracy", "emb-cos", "at most"))],
)  # fmt: skip
def test_figures_are_drawn(smoked, name: str, words: tuple[str, ...]) -> None:
    folder = smoked[1][name].folder
    text = (folder / "figure.svg").read_text()
    assert all(word in text for word in words)
    assert (folder / "figure.png").stat().st_size > 10_000


SIMILARITIES = {"tanimoto": DataStructs.TanimotoSimilarity, "cosine": DataStructs.CosineSimilarity}


def by_rdkit(small_set, similarity: str) -> list[tuple[float, float]]:
    """σ_min and σ_max of each measured molecule, one pair at a time."""
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=4096)

    def row(smiles: str):
        return generator.GetFingerprint(Chem.MolFromSmiles(smiles))

    def block(smiles: str) -> str:
        return Chem.MolToInchiKey(Chem.MolFromSmiles(smiles))[:14]

    found = []
    for truth, listed in small_set.lists["mass"].items():
        others = [each for each in listed if block(each) != block(truth)]
        values = [SIMILARITIES[similarity](row(truth), row(other)) for other in others]
        if values:
            found.append((min(values), max(values)))
    return found


def test_medians_and_shares_are_those_of_a_plain_loop(small_set, smoked) -> None:
    site, _ = smoked
    experiment = experiment_named("sigma")
    cells, series = KINDS["bands"].measure(experiment, Scale("paper"), site)
    for similarity in ("tanimoto", "cosine"):
        bands = by_rdkit(small_set, similarity)
        wanted = {
            "low": median(low for low, _ in bands),
            "high": median(high for _, high in bands),
            "width": median(high - low for low, high in bands),
            "apart": sum(low == 0 for low, _ in bands) / len(bands),
            "twins": sum(high == 1 for _, high in bands) / len(bands),
        }
        assert {key: cell.mean for key, cell in cells[similarity].items()} == pytest.approx(wanted)
        assert sum(series[similarity]["low"]) == len(bands) > 20
        counts = [sum(int(low * 50) == place for low, _ in bands) for place in range(50)]
        assert series[similarity]["low"] == counts


def test_a_scale_measures_fewer_lists_and_says_so(smoked) -> None:
    _, done = smoked
    results = done["sigma"].results
    assert sum(results.series["tanimoto"]["high"]) == 19  # of 20, one of itself alone
    assert "at most 20 lists" in results.reduced
    assert (done["sigma"].folder / "figure.png").stat().st_size > 10_000


def test_rows_are_of_their_own_fingerprint_and_a_fold_is_kept_to(smoked, small) -> None:
    site, _ = smoked
    experiment = replace(
        experiment_named("sigma-by-fingerprint"),
        fold="test",
        rows=(
            Row("morgan2", "", {"fingerprint": "morgan2"}),
            Row("r", "", {"fingerprint": "rdkit"}),
        ),
    )
    KINDS["bands"].check(experiment)
    cells, series = KINDS["bands"].measure(experiment, Scale("paper"), site)
    for key, kind in (("morgan2", "morgan2"), ("r", "rdkit")):
        wanted = set_bands(small, "mass", fold="test", fingerprint=kind)  # from the molecules
        assert {name: cell.mean for name, cell in cells[key].items()} == wanted.medians()
        assert sum(series[key]["high"]) == wanted.usable.sum()
    assert cells["r"] != cells["morgan2"]


def test_lists_that_the_data_do_not_have_are_named(smoked) -> None:
    site, _ = smoked
    columns = (Column("low", "low", "low", candidates="hard"),)
    with pytest.raises(MzseekError, match="no candidates 'hard'"):
        KINDS["bands"].measure(
            replace(experiment_named("sigma"), columns=columns), Scale("paper"), site
        )


NAMES = {"tanimoto": "tanimoto", "mass/hit_rate@20": "hit_rate@20/mass"}


def run_of(smoked, smoke, row: str):
    """The only run of a row: one learning rate, one seed."""
    site, _ = smoked
    experiment, here = experiment_named("over-time").at(smoke)
    [trial] = KINDS["history"].plan(experiment, here)[row, "tanimoto"].trials
    return run_folder(site, trial)


@pytest.mark.parametrize("row", ["bce", "iou", "fp-cos"])
def test_curves_and_their_best_points_are_those_of_history_csv(smoked, smoke, row: str) -> None:
    results = smoked[1]["over-time"].results
    with (run_of(smoked, smoke, row) / "history.csv").open(newline="") as file:
        history = list(csv.DictReader(file))
    assert len(history) >= 3
    [curves] = results.series[row]
    assert curves["step"] == [float(line["step"]) for line in history]
    last = float(history[-1]["step"])
    for key, name in NAMES.items():
        values = [float(line[name]) for line in history]
        assert curves[key] == values
        assert results.cell(row, key).mean == max(values)
        first = min(float(line["step"]) for line in history if float(line[name]) == max(values))
        assert results.cell(row, f"when {key}").mean == pytest.approx(first / last)


@pytest.mark.parametrize("row", ["bce by tanimoto", "emb-cos by cosine", "iou by bits"])
def test_cells_are_means_over_single_lists(row: str, smoked, smoke) -> None:
    site, done = smoked
    experiment, here = experiment_named("regret").at(smoke)
    judged = experiment.row(row).settings["judged_by"]
    [trial] = KINDS["regret"].plan(experiment, here)[row, "similarity_lost"].trials
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
    failed: dict[str, str] = {}
    cells, _ = KINDS["regret"].measure(experiment, here, site, failed)
    assert (cells, failed) == (done["regret"].results.cells, {})
    [file] = (site.out / "measured" / "morgan2").glob("iou-*.regret-mass-test.json")
    kept = json.loads(file.read_text())
    file.write_text(json.dumps(kept | {"run": "another"}))
    cells, _ = KINDS["regret"].measure(experiment, here, site, failed)
    assert failed == dict.fromkeys(
        (f"iou by {by}" for by in ("tanimoto", "cosine", "bits")), "AssertionError: measured again"
    )
    assert cells["iou by bits"]["hit_lost"] == Cell()  # the other rows are complete
    assert cells["bce by bits"] == done["regret"].results.cells["bce by bits"]
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


def test_the_rate_is_chosen_on_validation_and_the_cell_is_the_mean_over_seeds(ran, whole) -> None:
    site, experiment, done = ran
    plan = KINDS["runs"].plan(experiment, whole)["bce", "hr"]
    reached = {}
    for seeds in plan.grid:
        runs = [opened(site, trial)[0] for trial in seeds]
        reached[seeds[0].lr] = statistics.fmean(
            run.best["hit_rate@1/mass"]["value"] for run in runs
        )
    best = max(reached, key=lambda lr: reached[lr])
    assert reached[1e-6] != reached[1e-2]
    chosen = next(seeds for seeds in plan.grid if seeds[0].lr == best)
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
        KINDS["runs"].check(replace(two, columns=(column,)))
    column = replace(two.column("hr"), metric="decoded hit_rate@1")
    with pytest.raises(ExperimentError, match="decoded 'hit_rate@1' is unknown, expected one of"):
        KINDS["runs"].check(replace(two, columns=(column,)))
    with pytest.raises(ExperimentError, match="select 'hr' is unknown"):
        KINDS["runs"].check(replace(two, select="hr"))
    KINDS["runs"].check(two)


OUTCOMES = {"11000": 0.05, "10100": 0.25, "10010": 0.30, "11001": 0.40}
FORMULAS = {
    ("hit", "bits"): lambda m: 0.5,
    ("tanimoto", "bits"): lambda m: 0.5,
    ("cosine", "bits"): lambda m: (1 + math.sqrt(m - 1)) / (2 * math.sqrt(m)),
    ("bits", "hit"): lambda m: (m - 2) / (m + 2),
    ("tanimoto", "hit"): lambda m: (m - 1) / (m + 2),
    ("cosine", "hit"): lambda m: math.sqrt(m * (m - 1)) / (m + 2),
}


def worth(utility: str, a: str, b: str) -> float:
    both = sum(x == y == "1" for x, y in zip(a, b, strict=True))
    sizes = a.count("1"), b.count("1")
    if utility == "hit":
        return float(a == b)
    if utility == "bits":
        return sum(x == y for x, y in zip(a, b, strict=True)) / len(a)
    if not all(sizes):
        return float(sizes[0] == sizes[1])
    if utility == "cosine":
        return both / math.sqrt(sizes[0] * sizes[1])
    return both / (sum(sizes) - both)


def test_the_example_s_decisions_are_those_of_all_32_fingerprints() -> None:
    experiment = experiment_named("toy")
    assert experiment.given["outcomes"] == OUTCOMES
    cells, _ = KINDS["theory"].measure(experiment, Scale("paper"), None)
    for utility in ("hit", "bits", "cosine", "tanimoto"):
        expected = {
            bits: sum(worth(utility, bits, other) * p for other, p in OUTCOMES.items())
            for bits in map("".join, itertools.product("01", repeat=5))
        }
        best = max(expected, key=expected.__getitem__)
        assert cells[utility]["decision"].text == best
        assert cells[utility]["expected"].mean == pytest.approx(expected[best])


def test_the_example_is_as_published_and_another_would_not_be(tmp_path) -> None:
    [done] = reproduce([experiment_named("toy")], scale_named("smoke"), None, tmp_path)
    assert [said.state for said in done.verdicts] == [HOLDS]
    assert "| cosine | 11111 (11111) | 0.689 |" in (done.folder / "table.md").read_text()
    line = next(
        line
        for line in (done.folder / "table.csv").read_text().splitlines()
        if line.startswith("toy,smoke,bits,decision")
    )
    assert line.split(",")[8] == line.split(",")[12] == "10000"
    wrong = {**done.results.cells, "bits": {"decision": Cell(text="11000")}}
    [said] = verdicts(replace(done.results, cells=wrong))
    assert (said.state, said.because) == (FAILS, "bits: 11000, published 10000")


def small_worst_cases():
    whole = experiment_named("worst-cases")
    return replace(whole, columns=tuple(c for c in whole.columns if c.settings["m"] <= 64))


def test_worst_cases_are_those_of_the_formulas(tmp_path) -> None:
    experiment = small_worst_cases()
    cells, _ = KINDS["theory"].measure(experiment, Scale("paper"), None)
    assert len(experiment.rows) == 2 * len(FORMULAS)
    for row in experiment.rows:
        judged, decoded = row.settings["judged_by"], row.settings["decoded_for"]
        for column in experiment.columns:
            m = column.settings["m"]
            proved = row.settings["value"] == "proved"
            here = cells[row.key][column.key].mean
            if proved and (judged, decoded) == ("cosine", "bits"):
                assert here == 0.5
            else:
                assert here == pytest.approx(FORMULAS[judged, decoded](m), abs=1e-6)


def test_the_claims_on_worst_cases_hold_and_can_fail(tmp_path) -> None:
    [done] = reproduce([small_worst_cases()], scale_named("smoke"), None, tmp_path)
    assert [said.state for said in done.verdicts] == [HOLDS] * 4
    assert (done.folder / "figure.svg").exists()
    cells = {row: dict(of) for row, of in done.results.cells.items()}
    cells["hit, for bits"]["8"] = Cell((0.4,))
    cells["cosine, for hit"]["8"] = Cell((0.7,))  # the formula's is 0.748
    cells["tanimoto, for bits"]["8"] = Cell((0.6,))  # at least one half is what is said
    states = [said.state for said in verdicts(replace(done.results, cells=cells))]
    assert states == [FAILS, HOLDS, HOLDS, FAILS]


@pytest.mark.slow
def test_worst_cases_of_as_many_bits_as_the_paper_s_fingerprints(tmp_path) -> None:
    whole = experiment_named("worst-cases")
    large = replace(whole, columns=whole.columns[-1:])
    assert large.columns[0].settings["m"] == 4096
    cells, _ = KINDS["theory"].measure(large, Scale("paper"), None)
    said = verdicts(Results(large, "paper", cells))
    assert [each.state for each in said] == [HOLDS] * 4
