import pytest

from mzseek.export.page import templates
from mzseek.export.report_data import lowered, row_data

from .conftest import CAFFEINE, PAYLOADS, empty_annotation, hostile_annotation, make_annotation


def rendered(annotation, place: int = 0) -> str:
    return templates().get_template("annotations/row.html").render(row_data(annotation, place))


def test_a_row_says_what_is_decided_for() -> None:
    row = row_data(make_annotation("X7"), 3)
    assert (row["name"], row["best"], row["formula"]) == ("X7", "caffeine", "C₈H₁₀N₄O₂")
    assert row["confidence"] == pytest.approx(0.6 * 0.8)
    assert row["width"] == 48.0
    assert row_data(make_annotation(objective="tanimoto"), 0)["best"] != CAFFEINE
    text = rendered(make_annotation("X7"), 3)
    assert 'id="f3"' in text
    assert 'data-key="RYYVLZVUVIJVGH"' in text
    assert "48 %" in text
    assert "195.0877" in text


def test_a_feature_without_candidates_has_a_row() -> None:
    text = rendered(empty_annotation())
    assert "no answer" in text
    assert "0 %" in text


@pytest.mark.parametrize("payload", PAYLOADS)
def test_text_of_files_stays_text(payload: str, read_page) -> None:
    text = rendered(hostile_annotation(payload))
    assert "<script" not in text
    assert "<img" not in text
    assert ' onmouseover="' not in text
    assert "\x1b" not in text
    read_page(text)


def test_only_counts_of_atoms_go_below_the_line() -> None:
    assert lowered("[13C]2C10H22") == "[13C]₂C₁₀H₂₂"
    assert lowered("") == ""
