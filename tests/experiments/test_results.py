import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from mzseek.core.errors import ExperimentError
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.posterior_report import posterior_report
from mzseek.evaluation.scored import Scoring
from mzseek.experiments import Claim, Column, Experiment, experiment_named, names
from mzseek.experiments.results import (
    FAILS,
    HOLDS,
    UNTESTED,
    Cell,
    Measured,
    Results,
    as_rows,
    comma_separated,
    latex,
    markdown,
    shown_number,
    verdicts,
)

from .conftest import as_published

PERCENT, PLAIN = Column("a", "A", "tanimoto"), Column("b", "B", "length", unit="")


def test_a_cell_has_a_mean_and_the_spread_of_its_seeds() -> None:
    cell = Cell((0.1, 0.2, 0.3))
    assert math.isclose(cell.mean, 0.2)
    assert math.isclose(cell.sd or 0, 0.1)  # by n - 1
    assert cell.shown(PERCENT) == "20.00 ± 10.00"
    assert Cell((0.123456,)).shown(PERCENT) == "12.35"
    assert Cell((0.123456,)).sd is None
    assert Cell((252.84,)).shown(PLAIN) == "252.8"
    assert Cell((0.0263,)).shown(PLAIN) == "0.026"
    assert Cell().shown(PERCENT) == "–"
    assert Cell(text="11001").shown(PLAIN) == "11001"
    assert shown_number(None, None, PERCENT) == "–"


def test_an_empty_cell_is_as_none(two: Experiment) -> None:
    results = Results(two, "paper", {"bce": {"hr": Cell(), "tanimoto": Cell((0.5,))}})
    assert results.cell("bce", "hr") is None
    assert results.cell("emb-cos", "hr") is None
    assert results.cell("bce", "tanimoto") == Cell((0.5,))
    assert results.published("bce", "hr") == (10.0, 0.5)
    assert results.published("random", "hr") is None
    assert results.to_dict()["cells"]["bce"]["tanimoto"] == {"values": [0.5], "chosen": {}}


def test_what_is_published_is_a_number_a_text_or_nothing(two: Experiment) -> None:
    experiment = replace(two, texts={"emb-cos": {"hr": "11001"}})
    results = Results(experiment, "paper", {})
    assert results.printed("bce", "hr") == "10.00 ± 0.50"
    assert results.printed("emb-cos", "hr") == "11001"
    assert results.printed("random", "hr") == ""
    assert as_published(experiment).cell("emb-cos", "hr") == Cell(text="11001")


@pytest.mark.parametrize("fold", ["val", "test"])
def test_numbers_are_those_of_evaluate(trained, tmp_path: Path, fold: str) -> None:
    run = trained("bce")
    numbers = Measured(run, tmp_path / "bce.json")
    scored = evaluate(run, Scoring(fold, "mass"))
    for metric in ("hit_rate@1", "hit_rate@20", "tanimoto"):
        assert numbers.value(metric, "mass", fold) == scored.values[metric].mean()
    assert numbers.value("chance hit_rate@1", "mass", fold) == scored.random_order["hit_rate@1"]
    by_tanimoto = evaluate(run, Scoring(fold, "mass", "minmax-tanimoto"))
    value = numbers.value("hit_rate@1", "mass", fold, "minmax-tanimoto")
    assert value == by_tanimoto.values["hit_rate@1"].mean()


def test_decoded_numbers_are_those_of_the_posterior(trained, tmp_path: Path) -> None:
    run = trained("emb-cos")
    value = Measured(run, tmp_path / "a.json").value("decoded tanimoto", "mass", "test")
    decoded = posterior_report(run, Scoring("test", "mass")).decoded
    assert value == decoded.interval("tanimoto", "tanimoto").mean


def test_what_a_model_does_not_have_is_none(trained, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    assert Measured(trained("emb-cos"), file).value("tanimoto", "mass", "test") is None
    assert json.loads(file.read_text())["values"]["tanimoto|mass|test|"] is None  # nor asked again


def test_numbers_are_kept_and_not_those_of_another_run(trained, tmp_path: Path) -> None:
    file = tmp_path / "numbers" / "a.json"
    value = Measured(trained("bce"), file).value("hit_rate@1", "mass", "test")
    kept = json.loads(file.read_text())
    kept["values"]["hit_rate@1|mass|test|"] = 0.125
    file.write_text(json.dumps(kept))
    assert Measured(trained("bce"), file).value("hit_rate@1", "mass", "test") == 0.125  # not again
    other = Measured(trained("iou"), file).value("hit_rate@1", "mass", "test")
    assert other == evaluate(trained("iou"), Scoring("test", "mass")).values["hit_rate@1"].mean()
    assert Measured(trained("bce"), file).value("hit_rate@1", "mass", "test") == value


def test_a_damaged_file_is_told(trained, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(ExperimentError, match="is damaged"):
        Measured(trained("bce"), tmp_path / "a.json")


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
    higher = judged(two, "above", HIGH, column="hr", row="bce", than=["emb-cos", "random"])
    assert higher.state == HOLDS
    mixed = judged(two, "above", HIGH, column="hr", row=["bce", "random"], than="emb-cos")
    assert mixed.state == FAILS
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


def measured(two: Experiment) -> Results:
    cells = {
        "bce": {"hr": Cell((0.1, 0.2), {"lr": 1e-4}), "tanimoto": Cell((0.25, 0.25))},
        "random": {"hr": Cell((0.03,))},
    }
    return Results(two, "laptop", cells, ["1 of 5 seeds"], {"x|y": "broke"}, {"spectra": "a.tsv"})


def test_markdown_has_both_numbers_the_claims_and_what_failed(two: Experiment) -> None:
    results = measured(two)
    text = markdown(results, verdicts(results))
    assert "| bce, 5 % | 15.00 ± 7.07 (10.00 ± 0.50) | – | 25.00 ± 0.00 (20.00) | – |" in text
    assert "| control: random | 3.00 | – | – | – |" in text
    assert "| old | (30.00) | – | – | – |" in text
    assert "Measured on a.tsv, test fold, scale laptop" in text
    assert "Reduced: 1 of 5 seeds." in text
    assert "| One of the two is best. | not tested | emb-cos has no hr here |" in text
    assert "- x|y: broke" in text
    assert "A note." in text


def test_latex_is_escaped(two: Experiment) -> None:
    text = latex(measured(two))
    assert r"bce, 5 \% & 15.00 $\pm$ 7.07 (10.00 $\pm$ 0.50) & -- &" in text
    assert text.count(r"\\") == 1 + len(two.rows)
    assert text.count("{") == text.count("}")


def test_csv_has_a_line_for_each_number(two: Experiment) -> None:
    rows = list(csv.DictReader(io.StringIO(comma_separated(measured(two)))))
    assert [(row["row"], row["column"]) for row in rows] == [
        ("bce", "hr"), ("bce", "tanimoto"), ("random", "hr"), ("old", "hr"),
    ]  # fmt: skip
    first = rows[0]
    assert (first["mean"], first["sd"], first["seeds"], first["chosen"]) == (
        "15", "7.07107", "2", "lr=0.0001",
    )  # fmt: skip
    published = (first["published_mean"], first["published_sd"], first["fold"])
    assert published == ("10.0", "0.5", "test")
    assert (rows[-1]["mean"], rows[-1]["published_mean"]) == ("", "30.0")


def test_rows_of_a_page_have_the_published_number_apart(two: Experiment) -> None:
    table = as_rows(measured(two))
    assert table["heads"][0] == "equal mass HR@1, %"
    assert table["heads"][-1] == "mean list"
    assert table["rows"][0]["cells"][0] == {"here": "15.00 ± 7.07", "published": "10.00 ± 0.50"}
    assert [row["control"] for row in table["rows"]] == [False, False, True, False]
