from pathlib import Path

import pytest

from mzseek.spectra import read_spectra, write_mgf


def read(path: Path, text: str):
    path.write_text(text)
    rejects: list[tuple[str, str]] = []
    return list(read_spectra(path, rejects)), rejects


def record(body: str, end: str = "END IONS\n") -> str:
    return f"BEGIN IONS\n{body}\n{end}"


def test_fields_and_peaks(tmp_path: Path) -> None:
    text = "# a comment\n\n" + record(
        "TITLE=first\nPEPMASS=195.0877 1000 1+\nADDUCT=[M+H]+\nRTINSECONDS=12.5\n"
        "138.066 100\n42.03 5"
    )
    (got,), rejects = read(tmp_path / "a.mgf", text)
    assert rejects == []
    assert got.identifier == "first"
    assert (got.precursor_mz, got.adduct, got.charge) == (195.0877, "[M+H]+", 1)
    assert got.mz.tolist() == [42.03, 138.066]
    assert got.intensities.tolist() == [5.0, 100.0]
    assert got.metadata["retention_time"] == "12.5 s"


def test_missing_end_ions(tmp_path: Path) -> None:
    text = record("TITLE=a\nPEPMASS=100\n50 1", end="") + record(
        "TITLE=b\nPEPMASS=200\n60 2\n70 3", end=""
    )
    got, rejects = read(tmp_path / "a.mgf", text)
    assert [(s.identifier, len(s)) for s in got] == [("a", 1), ("b", 2)]
    assert rejects == []


def test_a_file_cut_in_a_line_loses_its_last_record_only(tmp_path: Path) -> None:
    text = record("TITLE=a\nPEPMASS=100\n50 1") + "BEGIN IONS\nTITLE=b\nPEPMASS=200\n60.1 2"
    got, rejects = read(tmp_path / "a.mgf", text)
    assert [s.identifier for s in got] == ["a"]
    assert "ends in the middle of a line" in rejects[0][1]
    assert "record 2 (line 6)" in rejects[0][0]


def test_decimal_commas_and_pepmass_with_charge(tmp_path: Path) -> None:
    (got,), _ = read(tmp_path / "a.mgf", record("PEPMASS=445,12 99,5 2-\n100,25 1,5\n200,5 3"))
    assert got.precursor_mz == 445.12
    assert got.charge == -2
    assert got.mz.tolist() == [100.25, 200.5]


def test_mascot_header_holds_for_all(tmp_path: Path) -> None:
    text = (
        "CHARGE=2+\nCOM=search\n"
        + record("PEPMASS=100\n50 1")
        + record("PEPMASS=100\nCHARGE=1+\n50 1")
    )
    got, _ = read(tmp_path / "a.mgf", text)
    assert [s.charge for s in got] == [2, 1]


def test_titles_may_repeat_but_identifiers_may_not(tmp_path: Path) -> None:
    weak = record("TITLE=caffeine\nPEPMASS=195\n50 1")
    strong = record("SPECTRUMID=X1\nPEPMASS=195\n50 1")
    got, rejects = read(tmp_path / "a.mgf", weak * 2 + strong * 2)
    assert [s.identifier for s in got] == ["caffeine", "caffeine #2", "X1"]
    assert len(rejects) == 1
    assert "'X1' was used by an earlier record" in rejects[0][1]


def test_a_line_that_is_neither_field_nor_peak(tmp_path: Path) -> None:
    got, rejects = read(
        tmp_path / "a.mgf", record("PEPMASS=1\nhello world\n50 1") + record("PEPMASS=9\n5 1")
    )
    assert len(got) == 1
    assert "'hello world' is neither KEY=value nor a peak" in rejects[0][1]


def test_written_files_read_back_the_same(tmp_path: Path, make_spectrum) -> None:
    original = make_spectrum([50.123456789, 60.1], [0.1, 1e6], 195.08765, "id 1", smiles="CCO")
    assert write_mgf(tmp_path / "out.mgf", [original]) == 1
    (got,) = read_spectra(tmp_path / "out.mgf")
    assert got.mz.tolist() == original.mz.tolist()
    assert got.intensities.tolist() == original.intensities.tolist()
    assert (got.identifier, got.precursor_mz, got.adduct, got.charge) == (
        "id 1",
        195.08765,
        "[M+H]+",
        1,
    )
    assert got.metadata == {"smiles": "CCO"}


def test_a_record_without_begin_ions_is_reported_and_colours_no_other(tmp_path: Path) -> None:
    lost = "PEPMASS=300.5\nSMILES=CCO\n60 1\nEND IONS\n"
    text = record("TITLE=a\nPEPMASS=100\n50 1") + lost + record("TITLE=c\n50 1")
    text += record("TITLE=d\nPEPMASS=1\n50 1") + "70 1\n"
    got, rejects = read(tmp_path / "a.mgf", text)
    assert [s.identifier for s in got] == ["a", "d"]
    assert [reason[:17] for _, reason in rejects] == [
        "has no BEGIN IONS", "has no precursor ", "has no BEGIN IONS",
    ]  # fmt: skip


def test_charge_of_pepmass_before_the_header(tmp_path: Path) -> None:
    text = "CHARGE=1+\n" + record("PEPMASS=200.1 1000 2+\n50 1")
    text += record("PEPMASS=200.1 1000 3+\nCHARGE=0\n50 1", end="END  IONS\n")
    got, _ = read(tmp_path / "a.mgf", text)
    assert [s.charge for s in got] == [2, 3]


def test_names_stay_unique(tmp_path: Path) -> None:
    titles = ["a", "a", "a #2", "a"]
    text = "".join(record(f"TITLE={t}\nPEPMASS=100\n50 1") for t in titles)
    got, _ = read(tmp_path / "a.mgf", text)
    assert len({s.identifier for s in got}) == 4


def test_fields_that_mgf_cannot_name_are_written_all_the_same(
    tmp_path: Path, make_spectrum
) -> None:
    write_mgf(
        tmp_path / "a.mgf", [make_spectrum([50], [1], **{"1st": "x", "_id": "y", "a=b": "z"})]
    )
    (got,) = read_spectra(tmp_path / "a.mgf")
    assert got.metadata == {"x_1st": "x", "x__id": "y", "a_b": "z"}


def test_gnps_writes_the_adduct_behind_the_name(tmp_path: Path) -> None:
    names = ["Fuberidazole M-H", "Vitamin M", "Something [M+H]+", "Odd M+Xx", "Plain"]
    text = "".join(record(f"PEPMASS=183.057\nNAME={name}\n50 1") for name in names)
    text += record("PEPMASS=183.057\nNAME=x M-H\nADDUCT=[M+FA-H]-\n50 1")
    got, rejects = read(tmp_path / "a.mgf", text)
    assert rejects == []
    assert [s.adduct for s in got] == ["[M-H]-", None, "[M+H]+", None, None, "[M+FA-H]-"]
    assert [s.metadata.get("adduct_from") for s in got[:2]] == ["name", None]


@pytest.mark.parametrize(
    ("name", "adduct"),
    [
        ("Quercetin [M+H]+", "[M+H]+"),
        ("Quercetin [M+H]", "[M+H]+"),
        ("Quercetin - 40.0 eV M+H", "[M+H]+"),
        ("Quercetin M+H - 40.0 eV", "[M+H]+"),
        ("Quercetin M-2H2O+H (35 NCE)", "[M+H-2H2O]+"),
        ("Carbazole; LC-ESI-QFT; MS2; CE: 30 NCE; R=7500; [M+H]+", "[M+H]+"),
        ("Massbank:EA000401 Carbazole [M+H]+ CollisionEnergy:102040", "[M+H]+"),
        ("MoNA:12 Crystal violet M+", "[M]+"),
        ('"Quercetin 2M-H"', "[2M-H]-"),
        ("Poly M-H", "[M-H]-"),
        ("Quercetin - 40.0 eV", None),
        ("Vitamin M", None),
        ("Compound 4,4-M+Xx", None),
        ("Protein M-HCl-salt", None),
        ("Mixture A+B M", None),
        ("[M+H]+ of quercetin", None),
    ],
)
def test_adducts_behind_names(tmp_path: Path, name: str, adduct: str | None) -> None:
    (got,), rejects = read(tmp_path / "a.mgf", record(f"PEPMASS=300.1\nNAME={name}\n50 1"))
    assert rejects == []
    assert got.adduct == adduct


def test_gnps_libraries_of_negative_mode_are_read_whole(tmp_path: Path) -> None:
    charges = ["-1+", "1-", "-1", "1", "0", "1+"]
    text = "".join(
        record(f"PEPMASS=183.057\nCHARGE={charge}\nIONMODE=Negative\nNAME=x M-H\n50 1")
        for charge in charges
    )
    got, rejects = read(tmp_path / "a.mgf", text)
    assert rejects == []
    assert [(s.charge, s.adduct) for s in got] == [(-1, "[M-H]-")] * len(charges)
    assert ["polarity_conflict" in s.metadata for s in got] == [False] * 5 + [True]


def test_ms_dial_writes_a_plus_in_negative_mode(tmp_path: Path) -> None:
    text = record("SCANS=0\nPEPMASS=301.0354\nMSLEVEL=2\nCHARGE=1+\nRTINMINUTES=5.41\n"
                  "ION=[M-H]-\n151.0031 100")  # fmt: skip
    (got,), rejects = read(tmp_path / "a.mgf", text)
    assert rejects == []
    assert (got.adduct, got.charge) == ("[M-H]-", -1)
    assert got.metadata["retention_time"] == "5.41 min"
    assert "charge 1+ beside adduct [M-H]-" in got.metadata["polarity_conflict"]


def test_a_charge_of_two_needs_no_adduct(tmp_path: Path) -> None:
    (got,), _ = read(tmp_path / "a.mgf", record("PEPMASS=445.12\nCHARGE=2+\n50 1"))
    assert (got.charge, got.adduct) == (2, None)
