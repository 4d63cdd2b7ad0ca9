from dataclasses import replace

import pytest

from mzseek.core.errors import ExperimentError
from mzseek.experiments import Claim, Experiment, experiment_named, names
from mzseek.experiments.results import FAILS, HOLDS, UNTESTED, Cell, Results, verdicts

from .conftest import as_published


def judged(two: Experiment, kind: str, cells: dict[str, dict[str, float]], **details: object):
    experiment = replace(two, claims=(Claim("so", kind, details),))
    measured = {row: {c: Cell((v,)) for c, v in own.items()} for row, own in cells.items()}
    [verdict] = verdicts(Results(experiment, "paper", measured))
    return verdict


HIGH = {"bce": {"hr": 0.3, "tanimoto": 0.1, "formula": 0.2},
        "emb-cos": {"hr": 0.2, "tanimoto": 0.2, "formula": 0.2},
        "random": {"hr": 0.1, "tanimoto": 0.3, "formula": 0.5}}  # fmt: skip


def test_best(two: Experiment) -> None:
    assert judged(two, "best", HIGH, column="hr", row="bce").state == HOLDS
    assert judged(two, "best", HIGH, column="hr", row=["x", "emb-cos"][1:]).state == FAILS
    assert judged(two, "best", HIGH, column="formula", row="bce").state == UNTESTED  # a tie
    found = judged(two, "best", HIGH, column="tanimoto", row="emb-cos")
    assert found.state == HOLDS  # controls do not compete
    assert found.because == "emb-cos 20.0, bce 10.0"


def test_above(two: Experiment) -> None:
    assert (
        judged(two, "above", HIGH, column="hr", row="bce", than=["emb-cos", "random"]).state
        == HOLDS
    )
    assert (
        judged(two, "above", HIGH, column="hr", row=["bce", "random"], than="emb-cos").state
        == FAILS
    )
    missing = judged(two, "above", HIGH, column="hr", row="bce", than="old")
    assert (missing.state, missing.because) == (UNTESTED, "old has no hr here")


def test_opposed_and_rising(two: Experiment) -> None:
    rows = ["bce", "emb-cos", "random"]
    assert judged(two, "opposed", HIGH, columns=["hr", "tanimoto"], rows=rows).state == HOLDS
    assert judged(two, "opposed", HIGH, columns=["hr", "tanimoto"]).state == UNTESTED  # two points
    assert judged(two, "rising", HIGH, column="tanimoto", rows=rows).state == HOLDS
    assert judged(two, "rising", HIGH, column="hr", rows=rows).state == FAILS


def test_related_reads_differences_and_other_tables(two: Experiment) -> None:
    rows = ["bce", "emb-cos", "random"]
    claim = Claim(
        "so", "related",
        {"x": {"experiment": "other", "column": "hr"}, "y": {"minus": ["hr", "tanimoto"]},
         "sign": 1, "rows": rows},
    )  # fmt: skip
    measured = {row: {c: Cell((v,)) for c, v in own.items()} for row, own in HIGH.items()}
    results = Results(replace(two, claims=(claim,)), "paper", measured)
    assert verdicts(results)[0].state == UNTESTED
    assert verdicts(results, {"other": results})[0].state == HOLDS
    assert verdicts(results, {"other": results}, tested=False)[0].state == UNTESTED


def test_never_exceeds_and_equal(two: Experiment) -> None:
    assert judged(two, "never_exceeds", HIGH, column="tanimoto", bound="formula").state == HOLDS
    assert judged(two, "never_exceeds", HIGH, column="formula", bound="tanimoto").state == FAILS
    experiment = replace(two, published={"bce": {"hr": (30.0, None)}})
    assert judged(experiment, "equal", HIGH, column="hr").state == HOLDS
    experiment = replace(two, published={"bce": {"hr": (31.0, None)}})
    assert judged(experiment, "equal", HIGH, column="hr").state == FAILS


def test_the_lowest_of_a_column(two: Experiment) -> None:
    found = judged(two, "best", HIGH, column="tanimoto", row="bce", lowest=True)
    assert (found.state, found.because) == (HOLDS, "bce 10.0, emb-cos 20.0")
    assert judged(two, "best", HIGH, column="tanimoto", row="emb-cos", lowest=True).state == FAILS


def test_texts_are_equal_or_not(two: Experiment) -> None:
    claim = Claim("so", "equal", {"column": "hr"})
    experiment = replace(two, claims=(claim,), published={}, texts={"bce": {"hr": "101"}})
    for text, state in (("101", HOLDS), ("100", FAILS), ("", UNTESTED)):
        [found] = verdicts(Results(experiment, "paper", {"bce": {"hr": Cell(text=text)}}))
        assert found.state == state


def test_within(two: Experiment) -> None:
    found = judged(two, "within", HIGH, column="hr", least=0.1, most=0.3)
    assert (found.state, found.because) == (HOLDS, "from 10.0 (random) to 30.0 (bce)")
    assert judged(two, "within", HIGH, column="hr", least=0.11).state == FAILS
    assert judged(two, "within", HIGH, column="hr", most=0.29).state == FAILS
    assert judged(two, "within", HIGH, column="hr", least=0.2, rows=["bce"]).state == HOLDS
    assert judged(two, "within", HIGH, column="length", least=0).state == UNTESTED


def test_beside(two: Experiment) -> None:
    two = replace(two, columns=two.columns[:3])
    rows = {"emb-cos": "bce"}  # above it in tanimoto, below it in hr
    assert judged(two, "beside", HIGH, rows=rows, by=0.11).state == HOLDS
    assert judged(two, "beside", HIGH, rows=rows, by=0.09).state == FAILS
    assert judged(two, "beside", HIGH, rows=rows, by=0.09, at_least=True).state == FAILS
    higher = {**HIGH, "emb-cos": {"hr": 0.5, "tanimoto": 0.5, "formula": 0.5}}
    assert judged(two, "beside", higher, rows=rows, by=0.01, at_least=True).state == HOLDS
    assert judged(two, "beside", higher, rows=rows, by=0.01).state == FAILS
    assert judged(two, "beside", HIGH, rows={"bce": "old"}, by=1.0).state == UNTESTED


def test_differ(two: Experiment) -> None:
    assert judged(two, "differ", HIGH, columns=["hr", "tanimoto"]).state == HOLDS
    same = {"bce": {"hr": 0.1, "tanimoto": 0.1}}
    found = judged(two, "differ", same, columns=["hr", "tanimoto"])
    assert (found.state, found.because) == (FAILS, "bce: 10.0 and 10.0")
    assert judged(two, "differ", {}, columns=["hr", "tanimoto"]).state == UNTESTED


def test_a_claim_that_cannot_be_read_is_refused(two: Experiment) -> None:
    with pytest.raises(ExperimentError, match="claim 'better' is unknown, expected one of: best"):
        judged(two, "better", HIGH, column="hr")
    with pytest.raises(ExperimentError, match="unexpected keyword argument 'colum'"):
        judged(two, "best", HIGH, colum="hr", row="bce")


@pytest.mark.parametrize("name", names())
def test_claims_are_the_paper_s_own_its_numbers_bear_them_out(name: str) -> None:
    """Where the paper prints the numbers that a claim is about."""
    published = {other: as_published(experiment_named(other)) for other in names()}
    found = verdicts(published[name], published)
    assert [v.claim.says for v in found if v.state == FAILS] == []
    if published[name].cells and name not in {"sigma"}:
        assert any(v.state == HOLDS for v in found)
