import csv
import io

from mzseek.experiments import Experiment
from mzseek.experiments.results import (
    Cell,
    Results,
    as_rows,
    comma_separated,
    latex,
    markdown,
    verdicts,
)


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
    assert (first["published_mean"], first["published_sd"], first["fold"]) == (
        "10.0",
        "0.5",
        "test",
    )
    assert (rows[-1]["mean"], rows[-1]["published_mean"]) == ("", "30.0")


def test_rows_of_a_page_have_the_published_number_apart(two: Experiment) -> None:
    table = as_rows(measured(two))
    assert table["heads"][0] == "equal mass HR@1, %"
    assert table["heads"][-1] == "mean list"
    assert table["rows"][0]["cells"][0] == {"here": "15.00 ± 7.07", "published": "10.00 ± 0.50"}
    assert [row["control"] for row in table["rows"]] == [False, False, True, False]
