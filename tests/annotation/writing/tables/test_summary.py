"""One row a feature, with the columns that the docs list."""

import csv
from pathlib import Path

import pytest

from mzseek.annotation.annotation import Level
from mzseek.export.tables import SUMMARY_COLUMNS, Summary
from mzseek.export.writer import Settings


@pytest.fixture
def rows(tmp_path: Path):
    def written(*annotations) -> list[dict[str, str]]:
        writer = Summary(tmp_path, "summary.tsv", Settings())
        for annotation in annotations:
            writer.write(annotation)
        assert writer.finish() == []
        with (tmp_path / "summary.tsv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, dialect="excel-tab"))

    return written


def test_a_row_says_what_the_answer_does(
    rows, make_annotation, make_candidate, make_reference
) -> None:
    best = make_candidate(match=make_reference())
    annotation = make_annotation("17", candidates=(best,), notes=("a note", "another; one"))
    (row,) = rows(annotation)
    assert list(row) == list(SUMMARY_COLUMNS)
    assert row == {
        "feature": "17", "named_by": "feature_id", "rank": "1", "name": "Caffeine",
        "molecularFormula": "C8H10N4O2", "adduct": "[M+H]+", "InChIkey2D": "RYYVLZVUVIJVGH",
        "smiles": "Cn1c(=O)c2c(ncn2C)n(C)c1=O", "ionMass": "195.08770",
        "retentionTimeInSeconds": "61.50",
        "links": "https://hmdb.ca/metabolites/HMDB0001847; "
                 "https://pubchem.ncbi.nlm.nih.gov/compound/2519",
        "confidence": "0.76", "probability": "0.8", "inDatabaseProbability": "0.95",
        "setSize": "1", "coverage": "0.9", "candidates": "1", "scored": "1",
        "evidence": "2.5000", "analogy": "1.0000", "match": "",
        "prior": "", "explainedIntensity": "0.9700",
        "libraryMatch": "MSBNK-Eawag-EA000001", "librarySimilarity": "0.9300",
        "unlistedMatch": "", "unlistedMatchSmiles": "", "unlistedMatchSimilarity": "",
        "nearestSimilarity": "0.9300", "level": "3",
        "levelReason": "tentative structure: the best candidate has probability 0.76",
        "spectra": "1", "file": "run.mgf", "notes": "a note; another\\; one",
    }  # fmt: skip


def test_a_feature_without_candidates_has_a_row(rows, make_annotation) -> None:
    annotation = make_annotation(
        candidates=(), present=None, nearest=float("nan"), level=Level("5", "exact mass only")
    )
    (row,) = rows(annotation)
    assert row["feature"] == "17"
    assert row["confidence"] == "0"
    empty = {"rank", "name", "smiles", "probability", "evidence", "inDatabaseProbability"}
    assert {name for name in empty | {"nearestSimilarity"} if row[name]} == set()


def test_the_answer_is_what_the_objective_decides_for(rows, make_annotation) -> None:
    (row,) = rows(make_annotation(objective="tanimoto", choices={"hit": 0, "tanimoto": 1}))
    assert (row["InChIkey2D"], row["probability"]) == ("AAAAAAAAAAAAAA", "0.2")


def test_a_prior_that_is_on_is_shown(rows, make_annotation, make_candidate) -> None:
    kinds = {"fragments": "evidence", "prior": "prior"}
    annotation = make_annotation(
        candidates=(make_candidate(parts=(1.0, -0.5)),), channels=("fragments", "prior"),
        kinds=kinds,
    )  # fmt: skip
    (row,) = rows(annotation)
    assert (row["evidence"], row["analogy"], row["prior"]) == ("1.0000", "", "-0.5000")


def test_without_answers_there_is_a_header(rows) -> None:
    assert rows() == []


def test_a_compound_that_matches_at_several_times_is_marked(tmp_path, make_annotation, make_feature,
                                                            make_peaks) -> None:  # fmt: skip
    def at(name: str, seconds: float, level: str = "2a"):
        spectrum = make_peaks(metadata={"retention_time": f"{seconds} s"})
        feature = make_feature(name, spectra=(spectrum,))
        return make_annotation(feature=feature, level=Level(level, "library match"))

    writer = Summary(tmp_path, "summary.tsv", Settings())
    annotations = [at("a", 61.0), at("b", 62.0), at("c", 300.0), at("d", 500.0, "3")]
    for annotation in annotations:
        writer.write(annotation)
    [line] = writer.finish()
    assert "3 features at level 2a" in line
    with (tmp_path / "summary.tsv").open(newline="") as file:
        notes = {row["feature"]: row["notes"] for row in csv.DictReader(file, delimiter="\t")}
    assert (
        notes["a"]
        == notes["b"]
        == "Caffeine is also the library match of feature c, at another time"
    )
    assert notes["c"].endswith("of feature a, b, at another time")
    assert notes["d"] == ""


def test_a_run_that_stopped_while_it_ended_goes_on(tmp_path, make_annotation) -> None:
    for name in ("a", "b"):
        writer = Summary(tmp_path, "summary.tsv", Settings())
        writer.write(make_annotation(name))
        writer.finish()
    with (tmp_path / "summary.tsv").open(newline="") as file:
        assert [row["feature"] for row in csv.DictReader(file, delimiter="\t")] == ["a", "b"]
