import math
from dataclasses import replace

from mzseek.experiments import Column, Experiment
from mzseek.experiments.results import Cell, Results, shown_number

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


def test_the_published_table_has_the_same_form(two: Experiment) -> None:
    cell = as_published(two).cell("bce", "hr")
    assert cell is not None
    assert math.isclose(cell.mean, 0.1)


def test_what_is_published_is_a_number_a_text_or_nothing(two: Experiment) -> None:
    experiment = replace(two, texts={"emb-cos": {"hr": "11001"}})
    results = Results(experiment, "paper", {})
    assert results.printed("bce", "hr") == "10.00 ± 0.50"
    assert results.printed("emb-cos", "hr") == "11001"
    assert results.printed("random", "hr") == ""
    assert as_published(experiment).cell("emb-cos", "hr") == Cell(text="11001")
