import itertools
import math
from dataclasses import replace

import pytest

from mzseek.core.errors import ExperimentError
from mzseek.experiments import Column, Row, Scale, experiment_named, scale_named
from mzseek.experiments.kinds import THEORY_KIND
from mzseek.experiments.reproduce import reproduce
from mzseek.experiments.results import FAILS, HOLDS, Cell, Results, verdicts

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
    cells, _ = THEORY_KIND.measure(experiment, Scale("paper"), None)
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
    cells, _ = THEORY_KIND.measure(experiment, Scale("paper"), None)
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
    cells, _ = THEORY_KIND.measure(large, Scale("paper"), None)
    said = verdicts(Results(large, "paper", cells))
    assert [each.state for each in said] == [HOLDS] * 4


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("toy", {"given": {}}, "toy: decision: outcomes is missing"),
        ("toy", {"rows": (Row("iou", "iou"),)}, "utility 'iou' is unknown"),
        ("toy", {"columns": (Column("a", "a", "mode"),)}, "metric 'mode' is unknown"),
        ("worst-cases", {"given": {}}, "epsilon is missing"),
        ("worst-cases", {"columns": (Column("a", "a", "regret"),)}, "a: m is missing"),
        ("worst-cases", {"rows": (Row("a", "a", {"value": "said"}),)}, "'said' is unknown"),
        ("worst-cases", {"rows": (Row("a", "a", {"value": "proved"}),)}, "judged_by None is unk"),
    ],
)
def test_what_it_cannot_compute_is_refused(name: str, changes, message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        THEORY_KIND.check(replace(experiment_named(name), **changes))
