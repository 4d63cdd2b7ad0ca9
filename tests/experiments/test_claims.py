"""Claims: what decides each kind, and that every claim of every experiment can fail."""

from dataclasses import replace

import numpy as np
import pytest

from mzseek.core.errors import ExperimentError
from mzseek.experiments import Claim, Experiment, experiment_named, names
from mzseek.experiments.claims import CLAIM_CHECKS, FAILS, HOLDS, UNDECIDED, verdicts
from mzseek.experiments.results import Cell, Results, contrast, resampled_means

from .conftest import as_published, cell_of


def judged(two: Experiment, kind: str, cells, others=None, **details: object):
    """Judge one claim by cells: numbers are known exactly, pairs are mean and deviation."""
    experiment = replace(two, claims=(Claim("so", kind, details),))
    measured = {
        row: {
            c: cell_of(*v) if isinstance(v, tuple) else Cell((v,), has_seeds=False)
            for c, v in own.items()
        }
        for row, own in cells.items()
    }
    results = Results(experiment, "paper", measured)
    [verdict] = verdicts(results, {"other": results} if others else {})
    return verdict


ROWS = ["bce", "emb-cos", "random"]
HIGH = {"bce": {"hr": 0.3, "tanimoto": 0.1, "formula": 0.2},
        "emb-cos": {"hr": 0.2, "tanimoto": 0.2, "formula": 0.2},
        "random": {"hr": 0.1, "tanimoto": 0.3, "formula": 0.5}}  # fmt: skip
MANY = {
    row: {"hr": 0.1 * n, "tanimoto": 0.9 - 0.1 * n, "formula": 0.3 + 0.01 * (n % 2)}
    for n, row in enumerate("abcdef")
}
NEAR = {"bce": {"hr": (0.30, 0.01)}, "emb-cos": {"hr": (0.295, 0.01)}}
OTHER = {"experiment": "other", "column": "hr"}
CASES = [
    ("best", HIGH, {"column": "hr", "row": "bce"}, HOLDS, "bce 30.0, emb-cos 20.0: +10.0 ± 0.0"),
    ("best", HIGH, {"column": "hr", "row": ["emb-cos"]}, FAILS, "-10.0"),
    ("best", HIGH, {"column": "formula", "row": "bce"}, UNDECIDED, "+0.0"),  # a tie
    ("best", HIGH, {"column": "tanimoto", "row": "emb-cos"}, HOLDS, "bce"),  # without controls
    ("best", HIGH, {"column": "tanimoto", "row": "bce", "lowest": True}, HOLDS, "emb-cos"),
    ("best", HIGH, {"column": "hr", "row": "bce", "among": ["bce"]}, UNDECIDED, "nothing to"),
    ("best", NEAR, {"column": "hr", "row": "bce"}, UNDECIDED, "+0.5 ± 1.5"),
    ("above", HIGH, {"column": "hr", "row": "bce", "than": ["emb-cos", "random"]}, HOLDS, "30.0"),
    ("above", HIGH, {"column": "hr", "row": ["bce", "random"], "than": "emb-cos"}, FAILS, "10.0"),
    ("above", NEAR, {"column": "hr", "row": "bce", "than": "emb-cos"}, UNDECIDED, "± 1.5"),
    ("above", HIGH, {"column": "hr", "row": "bce", "than": "old"}, UNDECIDED, "old has no hr here"),
    ("above", HIGH, {"column": "hr", "row": {"experiment": "none", "row": "a"}, "than": "bce"},
     UNDECIDED, "none was not run"),
    ("rising", HIGH, {"column": "tanimoto", "rows": ROWS}, HOLDS, "a step +10.0 ± 0.0"),
    ("rising", HIGH, {"column": "hr", "rows": ROWS}, FAILS, "a step -10.0"),
    ("rising", HIGH, {"column": "hr", "rows": ROWS[:2]}, UNDECIDED, "2 points"),
    ("opposed", MANY, {"columns": ["hr", "tanimoto"], "rows": [*MANY]}, HOLDS, "-1.00 over 6"),
    ("opposed", MANY, {"columns": ["hr", "hr"], "rows": [*MANY]}, FAILS, "+1.00"),
    ("opposed", MANY, {"columns": ["hr", "formula"], "rows": [*MANY]}, UNDECIDED, "by chance in"),
    ("opposed", HIGH, {"columns": ["hr", "tanimoto"], "rows": ROWS}, UNDECIDED, "17 % of orders"),
    ("related", MANY, {"x": OTHER, "y": {"minus": ["hr", "tanimoto"]}, "sign": 1, "rows": [*MANY]},
     HOLDS, "+1.00"),
    ("related", MANY, {"x": OTHER, "y": "tanimoto", "sign": 1, "rows": [*MANY]}, FAILS, "-1.00"),
    ("related", HIGH, {"x": "hr", "y": "none", "sign": 1, "rows": ROWS}, UNDECIDED, "has no none"),
    ("narrower", HIGH, {"columns": ["hr", "tanimoto"], "row": "emb-cos", "than": "bce"}, HOLDS,
     "less by +20.0"),
    ("narrower", HIGH, {"columns": ["hr", "tanimoto"], "row": "bce", "than": "emb-cos"}, FAILS,
     "less by -20.0"),
    ("comparable", HIGH, {"columns": ["hr", "formula"], "row": "bce", "to": "emb-cos", "by": 0.01},
     HOLDS, "formula: bce 20.0, emb-cos 20.0"),
    ("comparable", HIGH, {"columns": ["hr"], "row": "bce", "to": "emb-cos", "by": 0.01}, FAILS,
     "+10.0"),
    ("comparable", NEAR, {"columns": ["hr"], "row": "bce", "to": "emb-cos", "by": 0.01}, UNDECIDED,
     "within 1.0"),
    ("within", HIGH, {"column": "hr", "least": 0.2, "most": 0.3}, HOLDS, "emb-cos +20.0"),
    ("within", HIGH, {"column": "hr", "least": 0.11, "rows": ROWS}, FAILS, "random +10.0"),
    ("within", HIGH, {"column": "hr", "most": 0.29}, FAILS, "bce +30.0"),
    ("within", NEAR, {"column": "hr", "least": 0.29}, UNDECIDED, "± 1.2"),
    ("within", HIGH, {"column": "length", "least": 0}, UNDECIDED, "length: not measured"),
    ("beside", HIGH, {"rows": {"emb-cos": "bce"}, "by": 0.11}, HOLDS, "farthest in emb-cos"),
    ("beside", HIGH, {"rows": {"emb-cos": "bce"}, "by": 0.09}, FAILS, "0.2, bce"),
    ("beside", HIGH, {"rows": {"emb-cos": "bce"}, "by": 0.09, "at_least": True}, FAILS, "0.2"),
    ("beside", HIGH, {"rows": {"bce": "old"}, "by": 1.0}, UNDECIDED, "old has no hr"),
    ("differ", HIGH, {"columns": ["hr", "tanimoto"]}, HOLDS, "bce: +20.0"),
    ("differ", {"bce": {"hr": 0.1, "formula": 0.1}}, {"columns": ["hr", "formula"]}, FAILS, "+0.0"),
    ("differ", {"bce": {"hr": (0.1, 0.01), "formula": (0.1, 0.01)}},
     {"columns": ["hr", "formula"]}, UNDECIDED, "± 1.5"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "cells", "details", "state", "because"), CASES)
def test_what_decides_a_claim(two, kind, cells, details, state: str, because: str) -> None:
    two = replace(two, columns=two.columns[:3]) if kind == "beside" else two
    found = judged(two, kind, cells, others=True, **details)
    assert found.state == state, found.because
    assert because in found.because


def test_every_kind_of_claim_has_a_case_in_which_it_fails() -> None:
    decided = {(kind, state) for kind, _, _, state, _ in CASES}
    kinds = {kind for kind in CLAIM_CHECKS if kind != "equal"}  # of texts: see below
    assert {kind for kind, state in decided if state == FAILS} == kinds
    assert {kind for kind, state in decided if state == HOLDS} == kinds


@pytest.mark.parametrize(("text", "state"), [("101", HOLDS), ("100", FAILS), ("", UNDECIDED)])
def test_texts_are_equal_or_not(two: Experiment, text: str, state: str) -> None:
    claim = Claim("so", "equal", {"column": "hr"})
    experiment = replace(two, claims=(claim,), published={"bce": {"hr": "101"}})
    [found] = verdicts(Results(experiment, "paper", {"bce": {"hr": Cell(text=text)}}))
    assert found.state == state


def test_one_seed_decides_nothing_and_numbers_that_mean_nothing_neither(two) -> None:
    claim = Claim("so", "above", {"column": "hr", "row": "bce", "than": "emb-cos"})
    experiment = replace(two, claims=(claim,))
    cells = {"bce": {"hr": Cell((0.9,))}, "emb-cos": {"hr": Cell((0.1,))}}
    [found] = verdicts(Results(experiment, "laptop", cells))
    assert found.state == UNDECIDED
    assert "one seed tells no spread" in found.because
    sure = {row: {"hr": cell_of(of["hr"].mean, 0.01)} for row, of in cells.items()}
    results = Results(experiment, "smoke", sure)
    assert verdicts(results)[0].state == HOLDS
    [found] = verdicts(results, tested=False)
    assert (found.state, "says nothing" in found.because) == (UNDECIDED, True)


def test_a_claim_that_cannot_be_read_is_refused(two: Experiment) -> None:
    with pytest.raises(ExperimentError, match="claim 'better' is unknown, expected one of: best"):
        judged(two, "better", HIGH, column="hr")
    with pytest.raises(ExperimentError, match="unexpected keyword argument 'colum'"):
        judged(two, "best", HIGH, colum="hr", row="bce")


def published() -> dict[str, Results]:
    return {name: as_published(experiment_named(name)) for name in names()}


# Claims of the paper that its own numbers, with their spread over five seeds, do not decide.
OPEN = {
    "The best HR@1 with lists of equal mass is obtained with a contrastive loss.",
    "Tanimoto is best at γ = 1.",
    "fp-cos retrieves best at τ = 1/256.",
    "fp-mlp retrieves best at τ = 1/16.",
    "emb-mlp retrieves best at τ = 1/16.",
    "Trained on equal mass, it ranks lists of equal formula better than the model trained on these "
    "(HR@1).",
    "The gap in HR@1 between emb-cos and the IoU loss shrinks with the width of the band.",
    "With the radius, Morgan fingerprints retrieve worse after the IoU loss, too (HR@1).",
}


def test_no_published_number_contradicts_a_claim_of_the_paper_and_some_decide_none() -> None:
    tables = published()
    found = [v for name in names() for v in verdicts(tables[name], tables) if v.claim.by_paper]
    assert [v.claim.says for v in found if v.state == FAILS] == []
    assert sum(v.state == HOLDS for v in found) >= 30
    missing = ("not measured", "has no", "was not run")
    undecided = [v for v in found if v.state == UNDECIDED]
    assert {v.claim.says for v in undecided if not any(m in v.because for m in missing)} == OPEN


def random_tables(seed: int) -> dict[str, Results]:
    """Every table with numbers that mean nothing, known to three digits."""
    rng = np.random.default_rng(seed)
    tables = {}
    for name in names():
        experiment = experiment_named(name)
        cells = {
            row.key: {
                c.key: Cell(tuple(m + 1e-4 * rng.standard_normal(5)), text=str(m))
                for c in experiment.columns
                for m in [float(rng.random()) - (0.5 if c.key == "growth" else 0)]
            }
            for row in experiment.rows
        }
        tables[name] = Results(experiment, "paper", cells)
    return tables


def test_every_claim_of_every_experiment_can_fail() -> None:
    left = {(name, c.says) for name in names() for c in experiment_named(name).claims}
    left -= {("sigma", c.says) for c in experiment_named("sigma").claims}  # shares above 0: below
    left -= {("over-time", "Different metrics have their optima at different times.")}  # below
    for seed in range(60):
        tables = random_tables(seed)
        for name in {name for name, _ in left}:
            found = verdicts(tables[name], tables)
            left -= {(name, v.claim.says) for v in found if v.state == FAILS}
        if not left:
            return
    assert left == set()


@pytest.mark.parametrize("name", ["sigma", "over-time"])
def test_what_is_nowhere_found_does_not_hold(name: str) -> None:
    experiment = experiment_named(name)
    same = Cell((0.0, 0.0), has_seeds=False)
    cells = {row.key: dict.fromkeys((c.key for c in experiment.columns), same)
             for row in experiment.rows}  # fmt: skip
    states = [v.state for v in verdicts(Results(experiment, "paper", cells))]
    assert states[0] == FAILS
    assert states[1] == (FAILS if name == "sigma" else UNDECIDED)


def test_statements_that_the_paper_does_not_make_are_marked() -> None:
    added = {c.says for name in names() for c in experiment_named(name).claims if not c.by_paper}
    assert "More weight on the contrastive part, better retrieval." in added
    assert "MAP4 has the narrowest band of all." in added
    assert len(added) == 8


def test_intervals_are_over_seeds_and_molecules() -> None:
    rng = np.random.default_rng(1)
    seeds = Cell((0.30, 0.34)), Cell((0.20, 0.21))
    by_hand = contrast([(1, seeds[0]), (-1, seeds[1])])
    # Welch: variances 0.0004 and 0.000025 of the means, 1.125 degrees of freedom.
    assert by_hand.value == pytest.approx(0.115)
    assert by_hand.half == pytest.approx(9.80 * 0.000425**0.5, rel=0.02)
    hits = rng.random((2, 3_000)) < [[0.5], [0.3]]
    molecules = np.repeat(np.arange(300), 10)
    cells = [
        Cell((float(h.mean()),), resampled=tuple(resampled_means(h, molecules)), has_seeds=False)
        for h in hits
    ]
    difference = contrast([(1, cells[0]), (-1, cells[1])])
    expected = 1.96 * ((hits[0].astype(float) - hits[1]).std() / 3_000**0.5)
    assert difference.half == pytest.approx(expected, rel=0.2)
    same = contrast([(1, cells[0]), (-1, cells[0])])
    assert same.value == same.half == 0  # paired: the same molecules are drawn
