import warnings

import numpy as np
import pytest

from mzseek.report.tradeoff import DECODED, METRICS, Row, tradeoff_rows, tradeoff_svg
from mzseek.training.beliefs import beliefs_of
from mzseek.training.evaluate import Evaluation, evaluate
from mzseek.training.scored import How

HITS = METRICS[:3]


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def evaluation(value: float, *, fingerprint: bool = True, spread: float = 0.1) -> Evaluation:
    names = METRICS if fingerprint else HITS
    values = {n: np.array([value - spread, value, value + spread]) for n in names}
    molecule = {n: np.array([1, 2, 3], np.int32) for n in names}
    return Evaluation(How(), values, molecule, dict.fromkeys(names, 5), dict.fromkeys(HITS, 0.03))


def row(name: str, hit: float | None, similarity: float | None = None, **changes) -> Row:
    values = {"hit_rate@1": hit, "hit_rate@5": hit, "hit_rate@20": hit, "tanimoto": similarity}
    bounds = {n: (v - 0.01, v + 0.01) for n, v in values.items() if v is not None}
    return Row(name, values, bounds, **changes)


def test_rows_are_models_then_controls_then_chance() -> None:
    found = {
        "blind": evaluation(0.1, fingerprint=False),
        "bce": evaluation(0.2),
        "emb-cos": evaluation(0.3, fingerprint=False),
    }
    rows = tradeoff_rows(found, ("blind",))
    assert [r.name for r in rows] == ["bce", "emb-cos", "blind", "random"]
    assert [r.control for r in rows] == [False, False, True, True]
    assert rows[0].values == pytest.approx(dict.fromkeys(METRICS, 0.2))
    assert rows[1].values["tanimoto"] is None
    assert rows[3].values == {**dict.fromkeys(HITS, 0.03), "tanimoto": None}
    low, high = rows[0].intervals["hit_rate@1"]
    assert low < 0.2 < high


@pytest.fixture
def with_beliefs(trained):
    """Evaluations and beliefs of a model and a control, by name."""
    runs = {"emb-cos": trained("emb-cos"), "blind": trained("emb-cos", model="blind")}
    runs |= {"bce": trained("bce")}
    found = {name: evaluate(run) for name, run in runs.items()}
    return found, {name: beliefs_of(run) for name, run in runs.items()}


def test_decoded_values_have_a_column_of_their_own(with_beliefs) -> None:
    found, beliefs = with_beliefs
    rows = {row.name: row for row in tradeoff_rows(found, ("blind",), beliefs)}
    assert list(rows) == ["emb-cos", "bce", "blind", "random"]
    for name, each in beliefs.items():
        interval = each.decoded.interval("tanimoto", "tanimoto")
        assert rows[name].values[DECODED] == interval.mean
        assert rows[name].intervals[DECODED] == (interval.low, interval.high)
    even = beliefs["bce"].uniform.interval("tanimoto", "tanimoto").mean
    assert rows["random"].values[DECODED] == even
    assert rows["emb-cos"].values["tanimoto"] is None


def test_a_model_without_beliefs_has_no_decoded_value(with_beliefs) -> None:
    found, beliefs = with_beliefs
    rows = {row.name: row for row in tradeoff_rows(found, (), {"bce": beliefs["bce"]})}
    assert rows["emb-cos"].values[DECODED] is None
    assert DECODED not in rows["emb-cos"].intervals
    assert rows["bce"].values[DECODED] is not None
    assert DECODED not in tradeoff_rows(found, ())[0].values


def test_decoded_models_are_points_also_without_a_fingerprint(with_beliefs) -> None:
    found, beliefs = with_beliefs
    svg = tradeoff_svg(tradeoff_rows(found, ("blind",), beliefs))
    for name in ("emb-cos", "bce", "blind", "random"):
        assert svg.count(f">{name}</text>") == 1
    assert "(no fingerprint)" not in svg
    assert ">posterior decoded for Tanimoto</text>" in svg


def test_nothing_has_no_rows() -> None:
    assert tradeoff_rows({}) == []


def test_the_picture_names_every_model() -> None:
    rows = tradeoff_rows(
        {"bce": evaluation(0.2), "emb <cos>": evaluation(0.3, fingerprint=False)}, ()
    )
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
