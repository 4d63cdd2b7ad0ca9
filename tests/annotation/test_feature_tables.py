"""Isotope patterns of feature tables become the survey scans of features that have none."""

from dataclasses import replace
from pathlib import Path

import pytest

from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.feature_tables import TablePatterns, pattern_peaks
from mzseek.annotation.formulas import feature_formulas
from mzseek.annotation.reading import Features
from mzseek.core.errors import InputError, RunError
from mzseek.export.job import annotating_files

CAFFEINE = "195.08770:100000 196.09060:9900 197.09300:700"
PEAKS = "195.0877:100000.0 196.0906:9900.0 197.093:700.0"
MSDIAL = (
    "\t\t\tClass\n\t\t\tFile type\n\t\t\tInjection order\n\t\t\tBatch ID\n"
    "Alignment ID\tAverage Mz\tAdduct type\tMS1 isotopic spectrum\n"
)
MGF = (
    "BEGIN IONS\nFEATURE_ID=17\nPEPMASS=195.0877\nCHARGE=1+\n{more}"
    "110.0713 40\n138.0662 100\nEND IONS\n"
)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "peaks"),
    [
        (CAFFEINE, PEAKS),  # MS-DIAL 5
        ("195.08770 100000;196.09060 9900;197.09300 700", PEAKS),  # MS-DIAL 4.9
        ("196.09060:9900|195.08770:100000|197.09300:700", PEAKS),
        ("195.08770:100000 196.09060:9900 197.09300:700 198.09600:0", PEAKS),
        ("195.0877:1e400", ""), ("195.0877:-5 196.09:1", ""), ("195.0877", ""), ("a:b", ""),
        ("195.0877:1 196.09", ""), ("195.0877 1 2", ""), (";", ""),
    ],
)  # fmt: skip
def test_pairs_of_mz_and_intensity_are_a_pattern(text: str, peaks: str) -> None:
    assert pattern_peaks(text) == peaks


@pytest.mark.parametrize(
    "text",
    [
        f"{MSDIAL}0\t118.0863\t[M+H]+\tnull\n17\t195.0877\t[M+H]+\t{CAFFEINE}\n",
        f"row ID,row m/z,isotopes\n17,195.0877,{CAFFEINE}\n",
        "id,mz,rt,datafile:a.mzML:isotopes,datafile:b.mzML:isotopes\n"
        f"17,195.0877,1.0,195.08770:10 196.09060:1,{CAFFEINE}\n",
    ],
)
def test_a_feature_takes_the_pattern_of_its_row(tmp_path: Path, make_feature, text: str) -> None:
    patterns = TablePatterns(write(tmp_path / "table", text))
    (spectrum,) = patterns.add_to(make_feature("17")).spectra
    assert spectrum.metadata["ms1_peaks"] == PEAKS
    assert patterns.lines() == ["table: 1 feature without a survey scan took the isotope pattern"]
    other = make_feature("18")
    assert patterns.add_to(other) is other


def test_a_survey_scan_of_the_file_comes_first(tmp_path: Path, make_feature, make_peaks) -> None:
    table = write(tmp_path / "t.csv", f"row ID,row m/z,isotopes\n17,195.0877,{CAFFEINE}\n")
    patterns = TablePatterns(table)
    with_scan = make_peaks(metadata={"ms1_peaks": "195.0877:2.0 196.09:1.0"})
    feature = make_feature("17", spectra=(make_peaks(), with_scan))
    assert patterns.add_to(feature) is feature


def test_a_row_of_another_mass_gives_no_pattern(tmp_path: Path, make_feature, make_peaks) -> None:
    table = write(tmp_path / "t.csv", f"row ID,row m/z,isotopes\n17,195.0877,{CAFFEINE}\n")
    patterns = TablePatterns(table)
    sodium = make_peaks(precursor_mz=217.0696, adduct="[M+Na]+")
    assert patterns.add_to(make_feature("17", spectra=(sodium,))).spectra == (sodium,)
    first, second = patterns.add_to(make_feature("17", spectra=(make_peaks(), sodium))).spectra
    assert first.metadata["ms1_peaks"] == PEAKS
    assert second is sodium


def test_numbers_of_peaks_and_unreadable_patterns_are_told(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", "id,mz,rt,datafile:a.mzML:isotopes\n17,195.0877,1,3\n")
    (line,) = TablePatterns(table).lines()
    assert line.startswith("t.csv: its isotope columns hold numbers of peaks, expected pairs")
    table = write(
        tmp_path / "t.tsv",
        f"{MSDIAL}1\t195.0877\t\tx:y\n2\t200.1\t\t7 8 9\n3\t195.1\t\t{CAFFEINE}\n",
    )
    assert TablePatterns(table).lines() == [
        "t.tsv: 2 isotope patterns are skipped, the first in line 6: 'x:y', expected pairs such as "
        "195.0877:1000 196.0907:98"
    ]


def test_features_of_files_are_ranked_with_the_patterns_of_the_table(tmp_path: Path) -> None:
    mgf = write(tmp_path / "a.mgf", MGF.format(more="SCANS=17\n"))
    table = write(tmp_path / "t.tsv", f"{MSDIAL}17\t195.0877\t[M+H]+\t{CAFFEINE}\n")
    scores = []
    for given in (None, table):
        config = AnnotateConfig(features=given, ppm=5, adduct="[M+H]+")
        features = Features(mgf, config)
        (feature,) = features
        first = feature_formulas(feature, config, 3).formulas[0]
        scores.append(first.isotope_score)
        assert first.formula == "C8H10N4O2"
    assert scores == [None, 0.0]
    assert any("took the isotope pattern" in line for line in features.warnings())
    assert AnnotateConfig(features=table).paths() == [table]


def test_another_file_is_no_table_of_features(tmp_path: Path) -> None:
    mgf = write(tmp_path / "a.mgf", MGF.format(more=""))
    config = AnnotateConfig(features=write(tmp_path / "b.csv", "SMILES,name\nCCO,x\n"))
    with pytest.raises(InputError, match=r"b\.csv: is no table of features: it begins with"):
        Features(mgf, config)
    with pytest.raises(InputError, match=r"gone\.csv"):
        Features(mgf, replace(config, features=str(tmp_path / "gone.csv")))


def test_a_run_is_not_resumed_with_a_changed_table(tmp_path: Path) -> None:
    record = MGF.format(more="")
    mgf = write(tmp_path / "a.mgf", record + record.replace("=17", "=18"))
    table = write(tmp_path / "t.csv", f"row ID,row m/z,isotopes\n17,195.0877,{CAFFEINE}\n")
    config = AnnotateConfig(features=table)
    steps = annotating_files([mgf], tmp_path / "out", config, at_once=1)
    next(steps)
    steps.close()
    write(table, table.read_text().replace("17,", "18,"))
    with pytest.raises(RunError, match="--features"):
        next(annotating_files([mgf], tmp_path / "out", config, at_once=1, resume=True))
