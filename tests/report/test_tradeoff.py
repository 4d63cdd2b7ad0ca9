import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mzseek.evaluation.evaluate import Evaluation, evaluate
from mzseek.evaluation.posterior_report import posterior_report
from mzseek.evaluation.scored import Scoring
from mzseek.export.figures import drawn_labels
from mzseek.export.run_pages import DECODED, METRICS, Row, Shown, tradeoff_rows, tradeoff_svg
from mzseek.runs.run import Description, Run
from mzseek.training.options import Options

from .conftest import ODD_NAMES, drawn_texts

HITS = METRICS[:3]


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def shown(folder: str, value: float, *, fingerprint: bool = True, control: bool = False) -> Shown:
    names = METRICS if fingerprint else HITS
    values = {n: np.array([value - 0.1, value, value + 0.1]) for n in names}
    molecule = {n: np.array([1, 2, 3], np.int32) for n in names}
    path = Path("/runs", folder)
    found = Evaluation(
        path, Scoring(), values, molecule, dict.fromkeys(names, 5), dict.fromkeys(HITS, 0.03)
    )
    options = Options.of("emb-cos", "blind" if control else "mlp")
    made = Description(
        options.loss, options.scorer, options.encoder, None, 100, 64, options.training_dict()
    )
    return Shown(Run(path, made.to_dict()), found)


def row(name: str, hit: float | None, similarity: float | None = None, **changes) -> Row:
    values = {"hit_rate@1": hit, "hit_rate@5": hit, "hit_rate@20": hit, "tanimoto": similarity}
    bounds = {n: (v - 0.01, v + 0.01) for n, v in values.items() if v is not None}
    return Row(name, values, bounds, **changes)


def test_rows_are_models_then_controls_then_chance() -> None:
    rows = tradeoff_rows(
        [
            shown("blind", 0.1, fingerprint=False, control=True),
            shown("bce", 0.2),
            shown("emb-cos", 0.3, fingerprint=False),
        ]
    )
    assert [r.name for r in rows] == ["bce", "emb-cos", "blind", "random"]
    assert [r.control for r in rows] == [False, False, True, True]
    assert rows[0].values == pytest.approx(dict.fromkeys(METRICS, 0.2))
    assert rows[1].values["tanimoto"] is None
    assert rows[3].values == {**dict.fromkeys(HITS, 0.03), "tanimoto": None}
    low, high = rows[0].intervals["hit_rate@1"]
    assert low < 0.2 < high


def test_runs_of_one_name_have_a_row_each_with_their_own_numbers() -> None:
    rows = tradeoff_rows([shown("a/run", 0.2), shown("b/run", 0.4), shown("random", 0.6)])
    got = {row.name: row.values["hit_rate@1"] for row in rows}
    assert got == pytest.approx({"a/run": 0.2, "b/run": 0.4, "runs/random": 0.6, "random": 0.03})


@pytest.fixture
def with_beliefs(trained) -> list[Shown]:
    """Two models and a control, with their beliefs."""
    runs = [trained("emb-cos"), trained("emb-cos", model="blind"), trained("bce")]
    return [Shown(run, evaluate(run), posterior_report(run)) for run in runs]


def test_decoded_values_have_a_column_of_their_own(with_beliefs) -> None:
    rows = {row.name: row for row in tradeoff_rows(with_beliefs)}
    assert list(rows) == ["emb-cos-mlp", "bce-mlp", "emb-cos-blind", "random"]
    for each in with_beliefs:
        interval = each.beliefs.decoded.interval("tanimoto", "tanimoto")
        row = rows[each.run.folder.name]
        assert row.values[DECODED] == interval.mean
        assert row.intervals[DECODED] == (interval.low, interval.high)
    even = with_beliefs[0].beliefs.uniform.interval("tanimoto", "tanimoto").mean
    assert rows["random"].values[DECODED] == even
    assert rows["emb-cos-mlp"].values["tanimoto"] is None


def test_a_model_without_beliefs_has_no_decoded_value(with_beliefs) -> None:
    embedded, blind, bitwise = with_beliefs
    without = [replace(embedded, beliefs=None), replace(blind, beliefs=None)]
    rows = {row.name: row for row in tradeoff_rows([*without, bitwise])}
    assert rows["emb-cos-mlp"].values[DECODED] is None
    assert DECODED not in rows["emb-cos-mlp"].intervals
    assert rows["bce-mlp"].values[DECODED] is not None
    assert DECODED not in tradeoff_rows(without)[0].values


def test_decoded_models_are_points_also_without_a_fingerprint(with_beliefs) -> None:
    svg = tradeoff_svg(tradeoff_rows(with_beliefs))
    for name in ("emb-cos-mlp", "bce-mlp", "emb-cos-blind", "random"):
        assert svg.count(f">{name}</text>") == 1
    assert "(no fingerprint)" not in svg
    assert ">posterior decoded for Tanimoto</text>" in svg


def test_nothing_has_no_rows() -> None:
    assert tradeoff_rows([]) == []


def test_the_picture_names_every_model() -> None:
    rows = tradeoff_rows([shown("bce", 0.2), shown("emb <cos>", 0.3, fingerprint=False)])
    svg = tradeoff_svg(rows)
    assert svg.startswith("<svg")
    assert svg.rstrip().endswith("</svg>")
    for text in (
        "bce",
        "emb &lt;cos&gt; (no fingerprint)",
        "random",
        "hit rate @1, %",
    ):
        assert f">{text}</text>" in svg
    assert svg == tradeoff_svg(rows)  # the same every time


@pytest.mark.parametrize(
    "rows",
    [
        [row("a", 0.2, 0.3)],
        [row("a", 0.0, 0.0)],
        [row("a", 1.0, 1.0)],
        [row("a", 0.2)],
        [row("a", 0.2), row("b", 0.4)],
        [row("a", 0.2, 0.3), row("b", 0.2, 0.3)],
        [row("a", 0.2, control=True)],
        [row("a", 0.2, 0.3), row("b", None, 0.3)],
        [row("b", None, 0.3)],
        [],
    ],
    ids=["one", "zero", "all", "no fingerprint", "no fingerprints", "equal", "control", "no hits",
         "no hits at all", "none"],
)  # fmt: skip
def test_few_and_odd_rows_make_a_picture(rows: list[Row]) -> None:
    svg = tradeoff_svg(rows)
    assert svg.startswith("<svg")
    for each in rows:
        assert (f">{each.name}" in svg) == (each.values["hit_rate@1"] is not None)


def test_controls_are_lines_also_where_they_predict_a_fingerprint() -> None:
    svg = tradeoff_svg([row("bce", 0.3, 0.4), row("blind", 0.1, 0.2, control=True)])
    point, line = (svg[: svg.index(f">{name}</text>")].rindex("<text") for name in ("bce", "blind"))
    assert "rotate(-90" in svg[line : line + 400]
    assert "rotate(-90" not in svg[point : svg.index(">bce</text>")]


@pytest.mark.parametrize("similarity", [0.3, None], ids=["points", "lines"])
def test_names_are_drawn_as_they_are(similarity: float | None) -> None:
    for name in ODD_NAMES:
        texts = drawn_texts(tradeoff_svg([row(name, 0.2, similarity)]))
        [label] = drawn_labels([name])
        assert label.strip() in [
            text.removesuffix("(no fingerprint)").strip() for text in [*texts, ""]
        ]
