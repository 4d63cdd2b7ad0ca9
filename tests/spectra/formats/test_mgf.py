from pathlib import Path

import pytest

from mzseek.spectra import read_spectra, write_mgf


def record(body: str, end: str = "END IONS\n") -> str:
    return f"BEGIN IONS\n{body}\n{end}"


def test_fields_and_peaks(read) -> None:
    text = "# a comment\n\n" + record(
        "TITLE=first\nPEPMASS=195.0877 1000 1+\nADDUCT=[M+H]+\nRTINSECONDS=12.5\n"
        "138.066 100\n42.03 5"
    )
    (got,), rejects = read("a.mgf", text)
    assert rejects == []
    assert got.identifier == "first"
    assert (got.precursor_mz, got.adduct, got.charge) == (195.0877, "[M+H]+", 1)
    assert got.mz.tolist() == [42.03, 138.066]
    assert got.intensities.tolist() == [5.0, 100.0]
    assert got.metadata["retention_time"] == "12.5 s"


def test_missing_end_ions_and_a_file_cut_in_a_line(read) -> None:
    text = record("TITLE=a\nPEPMASS=100\n50 1", end="")
    got, rejects = read("a.mgf", text + record("TITLE=b\nPEPMASS=2\n6 2\n7 3", end=""))
    assert [(s.identifier, len(s)) for s in got] == [("a", 1), ("b", 2)]
    assert rejects == []
    got, rejects = read("a.mgf", text + "BEGIN IONS\nTITLE=b\nPEPMASS=200\n60.1 2")
    assert [s.identifier for s in got] == ["a"]
    assert rejects[0].code == "truncated"
    assert "record 2 (line 5)" in rejects[0][0]


def test_decimal_commas_and_pepmass_with_charge(read) -> None:
    (got,), _ = read("a.mgf", record("PEPMASS=445,12 99,5 2-\n100,25 1,5\n200,5 3"))
    assert got.precursor_mz == 445.12
    assert got.charge == -2
    assert got.mz.tolist() == [100.25, 200.5]


def test_mascot_header_holds_for_all_that_state_no_charge(read) -> None:
    text = "CHARGE=2+\nCOM=search\n" + record("PEPMASS=100\n50 1")
    text += record("PEPMASS=100\nCHARGE=1+\n50 1") + record("PEPMASS=200.1 1000 3+\n50 1")
    text += record("PEPMASS=200.1 1000 3+\nCHARGE=0\n50 1", end="END  IONS\n")
    got, _ = read("a.mgf", text)
    assert [s.charge for s in got] == [2, 1, 3, 3]


def test_titles_may_repeat_but_identifiers_may_not(read) -> None:
    weak = record("TITLE=caffeine\nPEPMASS=195\n50 1")
    strong = record("SPECTRUMID=X1\nPEPMASS=195\n50 1")
    got, rejects = read("a.mgf", weak * 2 + strong * 2)
    assert [s.identifier for s in got] == ["caffeine", "caffeine #2", "X1"]
    assert len(rejects) == 1
    assert "'X1' was used by an earlier record" in rejects[0][1]


def test_written_files_read_back_the_same(tmp_path: Path, make_spectrum) -> None:
    original = make_spectrum([50.123456789, 60.1], [0.1, 1e6], 195.08765, "id 1", smiles="CCO")
    odd = make_spectrum([50], [1], **{"1st": "x", "_id": "y", "a=b": "z"})
    assert write_mgf(tmp_path / "out.mgf", [original, odd]) == 2
    got, renamed = read_spectra(tmp_path / "out.mgf")
    for name in ("mz", "intensities"):
        assert getattr(got, name).tolist() == getattr(original, name).tolist()
    for name in ("identifier", "precursor_mz", "adduct", "charge", "metadata"):
        assert getattr(got, name) == getattr(original, name)
    assert renamed.metadata == {"x_1st": "x", "x__id": "y", "a_b": "z"}


def test_a_record_without_begin_ions_is_reported_and_colours_no_other(read) -> None:
    lost = "PEPMASS=300.5\nSMILES=CCO\n60 1\nEND IONS\n"
    text = record("TITLE=a\nPEPMASS=100\n50 1") + lost + record("TITLE=c\n50 1")
    text += record("TITLE=d\nPEPMASS=1\n50 1") + "70 1\n"
    got, rejects = read("a.mgf", text)
    assert [s.identifier for s in got] == ["a", "d"]
    assert [reason[:17] for _, reason in rejects] == [
        "has no BEGIN IONS", "has no precursor ", "has no BEGIN IONS",
    ]  # fmt: skip


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
        ("Fuberidazole M-H", "[M-H]-"),
        ("Odd M+Xx", None),
        ("x M-H\nADDUCT=[M+FA-H]-", "[M+FA-H]-"),
    ],
)
def test_adducts_behind_names(read, name: str, adduct: str | None) -> None:
    (got,), rejects = read("a.mgf", record(f"PEPMASS=300.1\nNAME={name}\n50 1"))
    assert rejects == []
    assert got.adduct == adduct
    from_name = "name" if adduct and "ADDUCT" not in name else None
    assert got.metadata.get("adduct_from") == from_name


def test_gnps_libraries_of_negative_mode_are_read_whole(read) -> None:
    charges = ["-1+", "1-", "-1", "1", "0", "1+"]
    text = "".join(
        record(f"PEPMASS=183.057\nCHARGE={charge}\nIONMODE=Negative\nNAME=x M-H\n50 1")
        for charge in charges
    )
    got, rejects = read("a.mgf", text)
    assert rejects == []
    assert [(s.charge, s.adduct) for s in got] == [(-1, "[M-H]-")] * len(charges)
    assert ["polarity_conflict" in s.metadata for s in got] == [False] * 5 + [True]


def test_ms_dial_writes_a_plus_in_negative_mode(read) -> None:
    text = record("SCANS=0\nPEPMASS=301.0354\nMSLEVEL=2\nCHARGE=1+\nRTINMINUTES=5.41\n"
                  "ION=[M-H]-\n151.0031 100")  # fmt: skip
    (got,), rejects = read("a.mgf", text)
    assert rejects == []
    assert (got.adduct, got.charge) == ("[M-H]-", -1)
    assert got.metadata["retention_time"] == "5.41 min"
    assert "charge 1+ beside adduct [M-H]-" in got.metadata["polarity_conflict"]
