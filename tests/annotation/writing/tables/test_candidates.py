"""One row a candidate; the first columns and their order are an interface."""

import csv
from pathlib import Path

import pytest

from mzseek.export.tables import Candidates
from mzseek.export.writer import Settings


@pytest.fixture
def rows(tmp_path: Path):
    def written(*annotations) -> list[dict[str, str]]:
        writer = Candidates(tmp_path, "out.tsv", Settings())
        for annotation in annotations:
            writer.write(annotation)
        writer.finish()
        with (tmp_path / "out.tsv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, dialect="excel-tab"))

    return written


def test_the_first_columns_are_the_interface(rows, make_annotation) -> None:
    first, second = rows(make_annotation())
    assert list(first)[:7] == [
        "feature", "rank", "smiles", "InChIkey2D", "molecularFormula", "adduct", "probability",
    ]  # fmt: skip
    assert [(row["feature"], row["rank"], row["probability"]) for row in (first, second)] == [
        ("17", "1", "0.8"), ("17", "2", "0.2"),
    ]  # fmt: skip
    assert (first["channel_fragments"], first["channel_analogs"]) == ("2.5000", "1.0000")
    assert (second["evidence"], second["analogy"], second["prior"]) == ("1.5000", "0.6000", "")


def test_references_are_named(rows, make_annotation, make_candidate, make_reference) -> None:
    analog = make_reference(record="CCMSLIB00000000001", similarity=0.5, likeness=0.25)
    best = make_candidate(match=make_reference(), analog=analog)
    (row,) = rows(make_annotation(candidates=(best,)))
    assert (row["libraryMatch"], row["librarySimilarity"]) == ("MSBNK-Eawag-EA000001", "0.9300")
    assert (row["analogRecord"], row["analogSimilarity"]) == ("CCMSLIB00000000001", "0.5000")
    assert row["analogLikeness"] == "0.2500"


def test_what_is_decided_for_ranks_first(rows, make_annotation) -> None:
    annotation = make_annotation(objective="tanimoto", choices={"hit": 0, "tanimoto": 1})
    assert [row["probability"] for row in rows(annotation)] == ["0.2", "0.8"]


def test_a_feature_without_candidates_has_no_row(rows, make_annotation) -> None:
    found = rows(make_annotation("1", candidates=()), make_annotation("2"))
    assert {row["feature"] for row in found} == {"2"}


def test_channels_that_change_are_refused(rows, make_annotation, make_candidate) -> None:
    other = make_annotation(
        candidates=(make_candidate(parts=(1.0,)),), channels=("x",), kinds={"x": "evidence"}
    )
    with pytest.raises(ValueError, match="different channels"):
        rows(make_annotation(), other)


def test_without_answers_there_is_a_header(rows, tmp_path: Path) -> None:
    assert rows() == []
    assert (tmp_path / "out.tsv").read_text().startswith("feature\trank\tsmiles\t")
