"""Each peak of each spectrum, with the piece that explains it."""

import csv
from pathlib import Path

import numpy as np
import pytest

from mzseek.export.tables import PEAK_COLUMNS, Peaks
from mzseek.export.writer import Settings
from mzseek.fragments import explain


@pytest.fixture
def rows(tmp_path: Path):
    def written(annotation, **settings) -> list[dict[str, str]]:
        writer = Peaks(tmp_path, "peaks.tsv", Settings(**settings))
        writer.write(annotation)
        writer.finish()
        with (tmp_path / "peaks.tsv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, dialect="excel-tab"))

    return written


def test_rows_are_what_explain_finds(rows, make_annotation) -> None:
    annotation = make_annotation()
    (spectrum,) = annotation.feature.spectra
    expected = explain(spectrum, annotation.candidates[0].smiles, adduct="[M+H]+")
    found = rows(annotation)
    assert list(found[0]) == list(PEAK_COLUMNS)
    assert [row["formula"] for row in found] == [peak.formula or "" for peak in expected]
    assert [row["atoms"] for row in found] == [" ".join(map(str, p.atoms)) for p in expected]
    assert {row["spectrum"] for row in found} == {"s1"}
    base = found[-1]
    assert (base["mz"], base["intensity"], base["relative"]) == ("138.06620", "100", "1.0000")
    assert base["formula"] == "C6H8N3O"
    assert abs(float(base["errorPpm"])) < 5
    assert base["piece"] != ""


def test_a_peak_that_nothing_explains_has_empty_cells(rows, make_annotation) -> None:
    (row,) = [row for row in rows(make_annotation()) if row["mz"] == "123.40000"]
    assert [row[name] for name in PEAK_COLUMNS[7:]] == [""] * 8


def test_several_candidates_and_spectra(rows, make_annotation, make_feature, make_peaks) -> None:
    small = make_peaks("b", mz=np.array([55.0]), intensities=np.ones(1))
    feature = make_feature(spectra=(make_peaks("a"), small))
    found = rows(make_annotation(feature=feature), peaks_of=2)
    assert [(row["rank"], row["spectrum"]) for row in found] == (
        [("1", "a")] * 5 + [("1", "b")] + [("2", "a")] * 5 + [("2", "b")]
    )


@pytest.mark.parametrize(
    ("name", "value"), [("smiles", "no molecule"), ("adduct", "[M+Xx]+"), ("adduct", "nonsense")]
)
def test_what_cannot_be_broken_explains_nothing(
    rows, make_annotation, make_candidate, name, value
) -> None:
    found = rows(make_annotation(candidates=(make_candidate(**{name: value}),)))
    assert [row["formula"] for row in found] == [""] * 5


def test_without_candidates_peaks_are_there(rows, make_annotation) -> None:
    found = rows(make_annotation(candidates=()))
    assert [(row["rank"], row["smiles"], row["piece"]) for row in found] == [("", "", "")] * 5
