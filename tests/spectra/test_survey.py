"""Survey scans are kept with the tandem spectra that they belong to."""

from pathlib import Path

from mzseek.spectra import read_spectra

MGF = """BEGIN IONS
FEATURE_ID={id}
MSLEVEL={level}
PEPMASS=195.0877
{peaks}
END IONS
"""


def write(path: Path, *records: tuple[str, int, str]) -> Path:
    text = "".join(MGF.format(id=i, level=level, peaks=peaks) for i, level, peaks in records)
    path.write_text(text)
    return path


def test_records_of_one_feature_share_their_survey_scan(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.mgf",
        ("1", 1, "195.0877 100\n196.0910 9"), ("1", 2, "138.066 10"), ("1", 2, "110.071 10"),
        ("2", 2, "138.066 10"), ("2", 1, "195.0877 50\n196.0910 5"), ("3", 2, "138.066 10"),
    )  # fmt: skip
    skipped: list[tuple[str, str]] = []
    spectra = list(read_spectra(path, skipped))
    ms1 = [spectrum.metadata.get("ms1_peaks") for spectrum in spectra]
    first, second = "195.0877:100.0 196.091:9.0", "195.0877:50.0 196.091:5.0"
    assert ms1 == [first, first, second, None]
    assert [reason.code for _, reason in skipped] == ["ms1", "ms1"]


def test_names_and_ion_modes_divide_libraries(tmp_path: Path) -> None:
    record = (
        "Name: {n}\nIon_mode: {m}\nSpectrum_type: {t}\nPrecursorMZ: 200.1\nNum Peaks: 1\n{p}\n\n"
    )
    path = tmp_path / "a.msp"
    path.write_text(
        record.format(n="x", m="POSITIVE", t="MS2", p="50.0 1")
        + record.format(n="x", m="NEGATIVE", t="MS1", p="200.1 1")
        + record.format(n="x", m="NEGATIVE", t="MS2", p="51.0 1")
    )
    spectra = list(read_spectra(path, []))
    assert [s.metadata.get("ms1_peaks") for s in spectra] == [None, "200.1:1.0"]


def test_a_damaged_survey_scan_tells_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mgf", ("1", 1, "195.0877 nan"), ("1", 2, "138.066 10"))
    (spectrum,) = read_spectra(path, [])
    assert "ms1_peaks" not in spectrum.metadata
