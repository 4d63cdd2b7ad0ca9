"""Tables: cells that nothing acts on, and the columns that the docs list."""

import csv
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.annotation.annotation import Level
from mzseek.classes import ClassProbability, CompoundClass
from mzseek.export.tables import (
    PEAK_COLUMNS,
    SUMMARY_COLUMNS,
    Candidates,
    Peaks,
    SkippedTable,
    Summary,
    decimal,
    fraction,
    free_text,
    free_texts,
    line,
    read_skipped,
)
from mzseek.export.writer import Writer
from mzseek.formulas import RankedFormula
from mzseek.fragments import explain
from mzseek.io.text_tables import cell_text, cell_texts

PAYLOADS = [
    "=HYPERLINK(\"http://x\",\"y\")", "+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "@SUM(1)",
    "\t=1+1", "a\tb", "two\nlines", "\r=1", "\x1b[31mred\x1b[0m", "\x9b2J", "\u202egnp.exe",
    "<script>alert(1)</script>", '"never closed', "＝1+1", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_text_acts(payload: str) -> None:
    cell = free_text(payload)
    assert cell[0] not in "=+-@＝\t\r\n"
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\ud800" for c in cell)
    assert next(csv.reader([line([cell, "next"])], "excel-tab"))[1:] == ["next"]


def test_numbers_stay_as_they_are_and_long_texts_are_what_spreadsheets_read() -> None:
    assert [free_text(number) for number in ("-5", "+3.25", "17")] == ["-5", "+3.25", "17"]
    assert len(free_text("x" * 100_000)) == 32_000


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=30))
def test_text_comes_back(text: str) -> None:
    read = next(csv.reader([line([free_text(text), "x"])], "excel-tab"))
    assert cell_text(read[0]) == " ".join(text.split())


@given(st.lists(st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=9)))
def test_several_texts_come_back(texts: list[str]) -> None:
    read = next(csv.reader([line([free_texts(texts), "x"])], "excel-tab"))
    assert cell_texts(read[0]) == texts


@given(st.floats())
def test_numbers_come_back_or_are_empty(value: float) -> None:
    for cell in (decimal(value, 4), fraction(value)):
        assert (cell == "") == (not math.isfinite(value))
        assert "nan" not in cell
    if math.isfinite(value):
        assert float(fraction(value)) == pytest.approx(value, rel=1e-5)
        assert float(decimal(value, 4)) == pytest.approx(value, abs=5e-5, rel=1e-12)


def test_skipped_records_are_written_counted_and_read_again(tmp_path: Path) -> None:
    (tmp_path / "skipped.tsv").write_text("of an earlier run\n")
    skipped = SkippedTable(tmp_path)
    skipped('"b" c.mgf', 'says "x"')
    skipped("=cmd", "two\nlines\tand \x1b[31mred")
    skipped.spool.close()
    assert skipped.count == 2
    assert (tmp_path / "skipped.tsv").read_text("utf-8") == (
        'where\treason\n"""b"" c.mgf"\tsays "x"\n\'=cmd\ttwo lines and \ufffd[31mred\n'
    )
    assert next(read_skipped(tmp_path)) == ('"b" c.mgf', 'says "x"')


@pytest.fixture
def rows(write_file) -> Callable[..., list[dict[str, str]]]:
    """The rows that a writer makes of annotations."""

    def write(kind: type[Writer], *annotations) -> list[dict[str, str]]:
        path, said = write_file(kind, f"{kind.__name__}.tsv", *annotations)
        assert said == []
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, dialect="excel-tab"))

    return write


@pytest.mark.parametrize("kind", [Summary, Candidates, Peaks])
def test_without_annotations_there_is_a_header(rows, tmp_path: Path, kind) -> None:
    assert rows(kind) == []
    assert (tmp_path / f"{kind.__name__}.tsv").read_text().startswith("feature\t")


def test_a_summary_row_says_what_the_annotation_does(
    rows, make_annotation, make_candidate, make_reference
) -> None:
    best = make_candidate(match=make_reference())
    formula = RankedFormula("C8H10N4O2", "[M+H]+", 0.99, 194.08, 0.1, 0.9, 3, None, 1.0)
    annotation = make_annotation(
        "17", candidates=(best,), notes=("a note", "another; one"), formulas=(formula,)
    )
    (row,) = rows(Summary, annotation)
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
        "spectra": "1", "file": "run.mgf", "notes": "a note; another\\; one", "ionSupport": "",
        "class": "", "classLevel": "", "classProbability": "",
        "rankedFormula": "C8H10N4O2", "rankedFormulaAdduct": "[M+H]+",
        "rankedFormulaProbability": "0.99", "rankedFormulaInCandidates": "0.8",
    }  # fmt: skip


def test_a_feature_without_candidates_has_a_summary_row(rows, make_annotation) -> None:
    annotation = make_annotation(
        candidates=(), present=None, nearest=float("nan"), level=Level("5", "exact mass only")
    )
    (row,) = rows(Summary, annotation)
    assert (row["feature"], row["confidence"]) == ("17", "0")
    empty = {"rank", "name", "smiles", "probability", "evidence", "inDatabaseProbability"}
    assert {name for name in empty | {"nearestSimilarity"} if row[name]} == set()
    found = rows(Candidates, annotation, make_annotation("2"))
    assert {row["feature"] for row in found} == {"2"}


def test_what_the_objective_decides_for_ranks_first(rows, make_annotation) -> None:
    annotation = make_annotation(objective="tanimoto", choices={"hit": 0, "tanimoto": 1})
    (row,) = rows(Summary, annotation)
    assert (row["InChIkey2D"], row["probability"]) == ("AAAAAAAAAAAAAA", "0.2")
    assert [row["probability"] for row in rows(Candidates, annotation)] == ["0.2", "0.8"]


def test_a_prior_that_is_applied_is_shown(rows, make_annotation, make_candidate) -> None:
    annotation = make_annotation(
        candidates=(make_candidate(parts=(1.0, -0.5)),), channels=("fragments", "prior"),
        kinds={"fragments": "evidence", "prior": "prior"},
    )  # fmt: skip
    (row,) = rows(Summary, annotation)
    assert (row["evidence"], row["analogy"], row["prior"]) == ("1.0000", "", "-0.5000")


def test_a_compound_that_matches_at_several_times_is_marked(
    write_file, make_annotation, make_feature, make_peaks
) -> None:
    def at(name: str, seconds: float, level: str = "2a"):
        spectrum = make_peaks(metadata={"retention_time": f"{seconds} s"})
        feature = make_feature(name, spectra=(spectrum,))
        return make_annotation(feature=feature, level=Level(level, "library match"))

    annotations = [at("a", 61.0), at("b", 62.0), at("c", 300.0), at("d", 500.0, "3")]
    path, [said] = write_file(Summary, "summary.tsv", *annotations)
    assert "3 features at level 2a" in said
    with path.open(newline="") as file:
        notes = {row["feature"]: row["notes"] for row in csv.DictReader(file, delimiter="\t")}
    expected = "Caffeine is also the library match of feature c, at another time"
    assert notes["a"] == notes["b"] == expected
    assert notes["c"].endswith("of feature a, b, at another time")
    assert notes["d"] == ""


def test_the_first_columns_of_candidates_are_the_interface(rows, make_annotation) -> None:
    first, second = rows(Candidates, make_annotation())
    assert list(first)[:7] == [
        "feature", "rank", "smiles", "InChIkey2D", "molecularFormula", "adduct", "probability",
    ]  # fmt: skip
    assert [(row["feature"], row["rank"], row["probability"]) for row in (first, second)] == [
        ("17", "1", "0.8"), ("17", "2", "0.2"),
    ]  # fmt: skip
    assert (first["channel_fragments"], first["channel_analogs"]) == ("2.5000", "1.0000")
    assert (second["evidence"], second["analogy"], second["prior"]) == ("1.5000", "0.6000", "")


def test_references_of_candidates_are_named(
    rows, make_annotation, make_candidate, make_reference
) -> None:
    analog = make_reference(record="CCMSLIB00000000001", similarity=0.5, tanimoto=0.25)
    best = make_candidate(match=make_reference(), analog=analog)
    (row,) = rows(Candidates, make_annotation(candidates=(best,)))
    assert (row["libraryMatch"], row["librarySimilarity"]) == ("MSBNK-Eawag-EA000001", "0.9300")
    assert (row["analogRecord"], row["analogSimilarity"]) == ("CCMSLIB00000000001", "0.5000")
    assert row["analogLikeness"] == "0.2500"


def test_channels_that_change_are_refused(rows, make_annotation, make_candidate) -> None:
    other = make_annotation(
        candidates=(make_candidate(parts=(1.0,)),), channels=("x",), kinds={"x": "evidence"}
    )
    with pytest.raises(ValueError, match="different channels"):
        rows(Candidates, make_annotation(), other)


def test_peaks_are_what_explain_finds(rows, make_annotation, make_feature, make_peaks) -> None:
    annotation = make_annotation()
    (spectrum,) = annotation.feature.spectra
    expected = explain(spectrum, annotation.candidates[0].smiles, adduct="[M+H]+")
    found = rows(Peaks, annotation)
    assert list(found[0]) == list(PEAK_COLUMNS)
    assert [row["formula"] for row in found] == [peak.formula or "" for peak in expected]
    assert [row["atoms"] for row in found] == [" ".join(map(str, p.atoms)) for p in expected]
    assert {row["spectrum"] for row in found} == {"s1"}
    base = found[-1]
    assert (base["mz"], base["intensity"], base["relative"]) == ("138.06620", "100", "1.0000")
    assert base["formula"] == "C6H8N3O"
    assert abs(float(base["errorPpm"])) < 5
    assert base["piece"] != ""
    (unexplained,) = [row for row in found if row["mz"] == "123.40000"]
    assert [unexplained[name] for name in PEAK_COLUMNS[7:]] == [""] * 9
    small = make_peaks("b", mz=np.array([55.0]), intensities=np.ones(1))
    several = make_annotation(feature=make_feature(spectra=(make_peaks("a"), small)))
    found = [(row["rank"], row["spectrum"]) for row in rows(Peaks, several)]
    assert found == [("1", "a")] * 5 + [("1", "b")]


@pytest.mark.parametrize(
    "changes", [{"smiles": "no molecule"}, {"adduct": "[M+Xx]+"}, {"adduct": "nonsense"}, None]
)
def test_what_cannot_be_broken_explains_no_peak(
    rows, make_annotation, make_candidate, changes
) -> None:
    candidates = () if changes is None else (make_candidate(**changes),)
    found = rows(Peaks, make_annotation(candidates=candidates))
    assert [(row["formula"], row["piece"]) for row in found] == [("", "")] * 5
    assert {row["rank"] for row in found} == {"" if changes is None else "1"}


def test_the_compound_class_is_in_the_row_of_a_feature(rows, make_annotation):
    of_class = CompoundClass(
        (
            (ClassProbability(("Lipids",), 0.9), ClassProbability(("",), 0.1)),
            (ClassProbability(("Lipids", "Fatty Acyls"), 0.75),),
            (ClassProbability(("Lipids", "Fatty Acyls", "Fatty alcohols"), 0.5),),
        ),
        ClassProbability(("Lipids", "Fatty Acyls"), 0.75),
    )
    (row,) = rows(Summary, make_annotation("17", compound_class=of_class))
    assert [row[name] for name in ("class", "classLevel", "classProbability")] == [
        "Fatty Acyls", "class", "0.75",
    ]  # fmt: skip
    (row,) = rows(Summary, make_annotation("17", compound_class=replace(of_class, answer=None)))
    assert [row[name] for name in ("class", "classLevel", "classProbability")] == [""] * 3
