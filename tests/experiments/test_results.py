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
from mzseek.experiments import Column, Experiment, experiment_named
from mzseek.experiments.claims import verdicts
from mzseek.experiments.results import (
    RESAMPLES,
    Cell,
    Measured,
    Results,
    against_published,
    shown_number,
)
from mzseek.experiments.tables import as_rows, comma_separated, comparison, latex, markdown

from .conftest import as_published, cell_of

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


def test_what_is_published_is_a_number_a_text_or_nothing(two: Experiment) -> None:
    experiment = replace(two, published={**two.published, "emb-cos": {"hr": "11001"}})
    results = Results(experiment, "paper", {"bce": {"hr": Cell(), "tanimoto": Cell((0.5,))}})
    assert results.cell("bce", "hr") is None  # an empty cell is as none
    assert results.cell("bce", "tanimoto") == Cell((0.5,))
    assert results.published("bce", "hr") == (10.0, 0.5)
    assert results.published("random", "hr") is results.published("emb-cos", "hr") is None
    assert results.printed("bce", "hr") == "10.00 ± 0.50"
    assert results.printed("emb-cos", "hr") == "11001"
    assert results.printed("random", "hr") == ""
    assert results.to_dict()["cells"]["bce"]["tanimoto"] == {"values": [0.5], "chosen": {}}


@pytest.mark.parametrize("fold", ["val", "test"])
def test_numbers_are_those_of_evaluate(trained, tmp_path: Path, fold: str) -> None:
    run = trained("bce")
    numbers = Measured(run, tmp_path / "bce.json")
    scored = evaluate(run, Scoring(fold, "mass"))
    for metric in ("hit_rate@1", "hit_rate@20", "tanimoto"):
        assert numbers.value(metric, "mass", fold) == scored.values[metric].mean()
        resampled = numbers.resampled(metric, "mass", fold)
        assert len(resampled) == RESAMPLES
        assert min(resampled) <= scored.values[metric].mean() <= max(resampled)
    assert numbers.value("chance hit_rate@1", "mass", fold) == scored.random_order["hit_rate@1"]
    by_tanimoto = evaluate(run, Scoring(fold, "mass", "minmax-tanimoto"))
    value = numbers.value("hit_rate@1", "mass", fold, "minmax-tanimoto")
    assert value == by_tanimoto.values["hit_rate@1"].mean()
    again = Measured(run, tmp_path / "bce.json")
    assert again.resampled("tanimoto", "mass", fold) == numbers.resampled("tanimoto", "mass", fold)


def test_decoded_numbers_are_those_of_the_posterior(trained, tmp_path: Path) -> None:
    run = trained("emb-cos")
    numbers = Measured(run, tmp_path / "a.json")
    value = numbers.value("decoded tanimoto", "mass", "test")
    decoded = posterior_report(run, Scoring("test", "mass")).decoded
    assert value == decoded.interval("tanimoto", "tanimoto").mean
    assert len(numbers.resampled("decoded tanimoto", "mass", "test")) == RESAMPLES
    assert numbers.value("tanimoto", "mass", "test") is None  # it predicts no fingerprint
    kept = json.loads((tmp_path / "a.json").read_text())
    assert kept["values"]["tanimoto|mass|test|"] is None  # nor asked again


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
    file.write_text("{")
    with pytest.raises(ExperimentError, match="is damaged"):
        Measured(trained("bce"), file)


def measured(two: Experiment) -> Results:
    cells = {
        "bce": {"hr": Cell((0.1, 0.2), {"lr": 1e-4}), "tanimoto": Cell((0.25, 0.25))},
        "random": {"hr": Cell((0.03,))},
    }
    return Results(two, "laptop", cells, ["1 of 5 seeds"], {"x|y": "broke"}, {"spectra": "a.tsv"})


def test_markdown_has_both_numbers_the_claims_and_what_failed(two: Experiment) -> None:
    results = measured(two)
    first, second = two.claims
    results = replace(
        results, experiment=replace(two, claims=(first, replace(second, by_paper=False)))
    )
    text = markdown(results, verdicts(results))
    assert "| bce, 5 % | 15.00 ± 7.07 (10.00 ± 0.50) | – | 25.00 ± 0.00 (20.00) | – |" in text
    assert "| control: random | 3.00 | – | – | – |" in text
    assert "| old | (30.00) | – | – | – |" in text
    assert "Measured on a.tsv, test fold, scale laptop" in text
    assert "Reduced: 1 of 5 seeds." in text
    paper, ours = text.split("| also measured, not in the paper | here | because |")
    assert "| bce has fingerprints. | undecided | emb-cos has no tanimoto here |" in paper
    assert "| One of the two is best. | undecided |" in ours
    assert "- x|y: broke" in text
    assert "A note." in text


def test_the_best_is_bold_and_the_second_underlined_as_in_the_paper() -> None:
    results = as_published(experiment_named("fingerprints"))
    text, tex = markdown(results, []), latex(results)
    for line in ("**12.29 ± 0.69**", "<u>45.05 ± 0.71</u>", "**30.32 ± 0.15**", "<u>7.66"):
        assert (line in text) == (line != "<u>7.66")  # which is the best
    assert r"\textbf{12.29 $\pm$ 0.69} (12.29 $\pm$ 0.69)" in tex
    assert r"\underline{45.05 $\pm$ 0.71}" in tex
    ranks = [row["cells"][4]["rank"] for row in as_rows(results)["rows"]]
    assert ranks == [1, None, None, None, None, 2]
    assert "**" not in markdown(as_published(experiment_named("sigma-by-fingerprint")), [])


def test_cells_are_compared_with_the_published_ones_at_full_scale(two: Experiment) -> None:
    numbers = {"hr": (10.0, 0.5), "formula": (20.0, 0.5), "tanimoto": (20.0, None)}
    cells = {
        "hr": cell_of(0.105, 0.005),
        "formula": cell_of(0.22, 0.005),
        "tanimoto": Cell((0.19,)),
    }
    experiment = replace(two, published={"bce": numbers}, seeds=5)
    results = Results(experiment, "paper", {"bce": cells}, metadata={"full_scale": True})
    assert against_published(results) == {
        ("bce", "hr"): "as published", ("bce", "formula"): "higher", ("bce", "tanimoto"): "lower",
    }  # fmt: skip
    [note] = comparison(results)
    assert note.startswith("1 of 3 cells are as published")
    assert "bce, 5 %, equal formula HR@1, %: higher" in note
    assert note in markdown(results, [])
    lines = list(csv.DictReader(io.StringIO(comma_separated(results))))
    assert [line["against_published"] for line in lines] == ["as published", "higher", "lower"]
    assert comparison(replace(results, metadata={})) == []
    # A single seed is taken to vary as the published ones do.
    for value, state in ((0.111, "as published"), (0.12, "higher")):
        one = Results(experiment, "paper", {"bce": {"hr": Cell((value,))}})
        assert against_published(one) == {("bce", "hr"): state}
    assert set(against_published(as_published(experiment_named("main"))).values()) == {
        "as published"
    }


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
    columns = ("mean", "sd", "seeds", "chosen", "published_mean", "published_sd", "fold")
    expected = ["15", "7.07107", "2", "lr=0.0001", "10.0", "0.5", "test"]
    assert [rows[0][name] for name in columns] == expected
    assert (rows[-1]["mean"], rows[-1]["published_mean"]) == ("", "30.0")


def test_rows_of_a_page_have_the_published_number_apart(two: Experiment) -> None:
    table = as_rows(measured(two))
    assert (table["heads"][0], table["heads"][-1]) == ("equal mass HR@1, %", "mean list")
    cell = {"here": "15.00 ± 7.07", "published": "10.00 ± 0.50", "rank": None}
    assert table["rows"][0]["cells"][0] == cell
    assert [row["control"] for row in table["rows"]] == [False, False, True, False]
