import gzip
import zipfile
from pathlib import Path

import pytest

from mzseek.spectra import read_spectra

RECORD = """ACCESSION: {id}
RECORD_TITLE: Caffeine
LICENSE: CC BY
CH$NAME: Caffeine
CH$FORMULA: C8H10N4O2
CH$EXACT_MASS: 194.0804
CH$SMILES: CN1C=NC2=C1C(=O)N(C(=O)N2C)C
CH$LINK: INCHIKEY RYYVLZVUVIJVGH-UHFFFAOYSA-N
AC$MASS_SPECTROMETRY: MS_TYPE {level}
AC$MASS_SPECTROMETRY: ION_MODE POSITIVE
{precursor}
MS$FOCUSED_ION: PRECURSOR_TYPE [M+H]+
PK$ANNOTATION: m/z tentative_formula
  138.066 C6H8N3O+
PK$NUM_PEAK: 2
PK$PEAK: m/z int. rel.int.
  42.03 5 1
  138.066 100 999
//
"""


def text(identifier: str = "MSBNK-1", level: str = "MS2", precursor: str = "") -> str:
    return RECORD.format(id=identifier, level=level, precursor=precursor)


def read(path: Path):
    rejects: list[tuple[str, str]] = []
    return list(read_spectra(path, rejects)), rejects


def test_fields_peaks_and_a_derived_precursor(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text(text())
    (got,), rejects = read(tmp_path / "r.txt")
    assert rejects == []
    assert got.identifier == "MSBNK-1"
    assert got.precursor_mz == pytest.approx(195.0877, abs=1e-4)  # from exact mass and adduct
    assert got.mz.tolist() == [42.03, 138.066]
    assert got.metadata["inchikey"].startswith("RYYVLZVUVIJVGH")
    assert got.metadata["license"] == "CC BY"


def test_stated_precursor_wins(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text(text(precursor="MS$FOCUSED_ION: PRECURSOR_M/Z 195.0880"))
    (got,), _ = read(tmp_path / "r.txt")
    assert got.precursor_mz == 195.0880


def test_folder_and_zip_read_alike(tmp_path: Path) -> None:
    folder = tmp_path / "records"
    (folder / "sub").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    (folder / "a.txt").write_text(text("A"))
    (folder / "sub" / "b.txt").write_text(text("B"))
    (folder / "sub" / "c.txt").write_text(text("C", level="MS"))
    (folder / "README.md").write_text("not a record")
    (folder / ".hidden" / "d.txt").write_text(text("D"))
    with zipfile.ZipFile(tmp_path / "records.zip", "w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and ".hidden" not in path.parts:
                archive.write(path, path.relative_to(folder))
    for source in (folder, tmp_path / "records.zip"):
        got, rejects = read(source)
        assert [s.identifier for s in got] == ["A", "B"]
        reasons = sorted(reason for _, reason in rejects)
        assert reasons[0] == "is an MS1 spectrum, expected MS2 or higher"
        assert reasons[1].startswith("not a spectrum file")
        assert len(rejects) == 2


def test_linked_folders_gzip_in_zips_and_apples_extras(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text(text("A"))
    (tmp_path / "real" / "loop").symlink_to(tmp_path / "real")
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "link").symlink_to(tmp_path / "real")
    got, rejects = read(tmp_path / "top")
    assert ([s.identifier for s in got], rejects) == (["A"], [])
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("b.txt.gz", gzip.compress(text("B").encode()))
        archive.writestr("__MACOSX/._b.txt.gz", b"\0\5\x16\7")
    got, rejects = read(tmp_path / "z.zip")
    assert ([s.identifier for s in got], rejects) == (["B"], [])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda t: t.replace("//\n", ""), "no // at its end"),
        (lambda t: t[: t.index("  138.066 100")], "no // at its end"),
        (lambda t: t.replace("NUM_PEAK: 2", "NUM_PEAK: 3"), "says it has 3 peaks, but has 2"),
        (lambda t: t.replace("42.03 5 1", "42.03 x 1"), "intensity 'x' is not a number"),
        (lambda t: "DEPRECATED: noisy\n".join([t[:19], t[19:]]), "is deprecated"),
    ],
)
def test_damage_is_told(tmp_path: Path, damage, message: str) -> None:
    (tmp_path / "r.txt").write_text(damage(text()))
    got, rejects = read(tmp_path / "r.txt")
    assert got == []
    assert message in rejects[0][1]


def test_a_record_that_lost_its_accession_is_reported(tmp_path: Path) -> None:
    lost = text("B").replace("ACCESSION: B", "ACCESSIOM: B")
    (tmp_path / "r.txt").write_text(text("A") + lost + text("C"))
    got, rejects = read(tmp_path / "r.txt")
    assert [s.identifier for s in got] == ["A", "C"]
    ((where, reason),) = rejects
    assert where.endswith("record 2")
    assert "has no ACCESSION" in reason


def test_words_between_records_are_no_record(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text(f"downloaded today\n{text('A')}\n# and\n{text('B')}\n//\n")
    got, rejects = read(tmp_path / "r.txt")
    assert ([s.identifier for s in got], rejects) == (["A", "B"], [])


@pytest.mark.parametrize(
    ("written", "kept"),
    [("3.04", "3.04 min"), ("684.81", "684.81 s"), ("3,04", "3,04 min"), ("3.04 min", "3.04 min"),
     ("40 sec", "40 sec"), ("7.84 min.", "7.84 min.")],
)  # fmt: skip
def test_retention_times_without_a_unit_are_minutes(
    tmp_path: Path, written: str, kept: str
) -> None:
    line = f"AC$CHROMATOGRAPHY: RETENTION_TIME {written}\n"
    path = tmp_path / "a.txt"
    path.write_text(text("A").replace("PK$NUM_PEAK", line + "PK$NUM_PEAK"))
    got, _ = read(path)
    assert got[0].metadata["retention_time"] == kept
