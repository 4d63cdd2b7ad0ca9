"""``mzseek annotate``: what it prints, what it refuses, and that names do nothing."""

import json

import numpy as np
import pytest

from mzseek.evidence.asked import spectra_from
from mzseek.prepared.reader import Prepared
from mzseek.spectra import write_mgf


@pytest.fixture
def mgf(small_set, tmp_path):
    path = tmp_path / "mine.mgf"
    write_mgf(path, spectra_from(Prepared.open(small_set.folder), np.arange(4)))
    return path


@pytest.fixture
def options(bundle_folder):
    return ["--model", str(bundle_folder), "--coverage", "0.5", "--ppm", "1000"]


def test_answers_are_shown_here(mzseek, mgf, options):
    status, shown, _ = mzseek("annotate", mgf, *options)
    assert status == 0
    assert "confidence" in shown
    assert "S0-1" in shown
    assert "Searched the small database that comes with mzseek" in shown
    assert "mzseek database hmdb --out hmdb" in shown  # which pip can bring
    assert "pubchem" not in shown  # which it cannot
    assert "4 records = 4 answered + 0 set aside" in shown


def test_one_feature_is_shown_with_its_reasons(mzseek, small_set, options, tmp_path):
    path = tmp_path / "one.mgf"
    write_mgf(path, spectra_from(Prepared.open(small_set.folder), np.arange(1)))
    _, shown, _ = mzseek("annotate", path, *options)
    for word in ("probability", "explained", "Reasons", "evidence", "analogy", "Level"):
        assert word in shown


def test_a_folder_ends_with_where_to_look(mzseek, mgf, options, tmp_path):
    status, out, told = mzseek("annotate", mgf, *options, "--out", tmp_path / "out", "--json")
    assert status == 0
    facts = json.loads(out)
    assert (facts["records"], facts["answered"], facts["set_aside"]) == (4, 4, 0)
    assert (tmp_path / "out" / "report.html").is_file()
    assert "4 records = 4 answered (4 features) + 0 set aside" in told
    assert "report.html" in told


def test_a_prior_is_counted_in_and_said(mzseek, mgf, options, tmp_path):
    _, shown, _ = mzseek("annotate", mgf, *options, "--prior", "learned")
    assert "A prior is counted in: learned by the model" in " ".join(shown.split())
    (tmp_path / "w.csv").write_text("smiles,weight\nCCO,3\nCCN,none\n")
    _, shown, _ = mzseek(
        "annotate", mgf, *options, "--prior", tmp_path / "w.csv", "--out", tmp_path / "out"
    )
    assert "Skipped weights: 1, the first: w.csv: line 3" in shown
    assert "A prior is counted in: weights of w.csv, 1 molecules" in " ".join(shown.split())
    _, out, _ = mzseek("annotate", mgf, *options, "--prior", "learned", "--json")
    assert "prior" in json.loads(out)["answers"][0]["candidates"][0]["nats"]


def test_json_alone(mzseek, mgf, options):
    _, out, _ = mzseek("annotate", mgf, *options, "--json")
    found = json.loads(out)["answers"]
    assert [each["feature"] for each in found] == ["S0-1", "S0-2", "S1-1", "S1-2"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--objective", "luck"], "objective 'luck'"),
        (["--adduct", "[M+Xx]+"], "[M+Xx]+"),
        (["--peak-ppm", "ten"], "tolerance 'ten'"),
        (["--instrument", "tof"], "instrument 'tof' is unknown, expected one of: orbitrap, qtof"),
        (["--group", "mass"], "grouping 'mass'"),
        (["--database", "nowhere"], "nowhere: no such file or folder"),
        (["--library", "nowhere"], "nowhere"),
        (["--coverage", "0.9999"], "coverage is 0.9999"),
        (["--out", "out.docx"], "ends in none of"),
        (["--formulas", "nowhere.csv"], "nowhere.csv"),
        (["--prior", "nowhere.csv"], "nowhere.csv: no such file, expected none, learned or"),
    ],
)
def test_refused_with_one_line(mzseek, mgf, options, more, reason):
    status, _, told = mzseek("annotate", mgf, *options, *more)
    assert status == 2
    assert reason in told
    assert len(told.strip().splitlines()) == 1


def test_a_file_that_is_not_there(mzseek):
    status, _, told = mzseek("annotate", "nothing.mgf")
    assert (status, told.count("\n")) == (2, 1)
    assert "nothing.mgf: no such file" in told


def test_names_do_nothing(mzseek, small_set, options, tmp_path):
    path = tmp_path / "evil.mgf"
    spectra = spectra_from(Prepared.open(small_set.folder), np.arange(2))
    text = "".join(
        f"BEGIN IONS\nFEATURE_ID={name}\nPEPMASS={one.precursor_mz}\nADDUCT=[M+H]+\n"
        + "".join(f"{mz} {height}\n" for mz, height in zip(one.mz, one.intensities, strict=True))
        + "END IONS\n"
        for name, one in zip(("[red]x", "\x1b[2Jy"), spectra, strict=True)
    )
    path.write_text(text)
    _, shown, _ = mzseek("annotate", path, *options)
    assert "[red]x" in shown
    assert "\x1b[2J" not in shown


def test_an_unknown_instrument_is_told_before_anything_is_read(mzseek):
    status, _, told = mzseek("annotate", "nothing.mgf", "--instrument", "tof")
    assert (status, told.count("\n")) == (2, 1)
    assert "instrument 'tof' is unknown" in told


def test_features_that_no_file_has_are_named(mzseek, mgf, options, tmp_path):
    table = tmp_path / "formulas.csv"
    table.write_text("feature,formula\nS0-1,C2H6O\n[red]lost,CH4\n")
    wanted = "1 of its 2 features is not among the spectra: '[red]lost'"
    for more in ([], ["--out", tmp_path / "out"]):
        status, shown, told = mzseek("annotate", mgf, *options, "--formulas", table, *more)
        assert status == 0
        assert wanted in " ".join((shown + told).split())


@pytest.mark.parametrize("role", ["spectra", "--database", "--features"])
def test_what_is_read_is_not_written_over(mzseek, mgf, options, tmp_path, role):
    table = tmp_path / {"spectra": "s.json", "--database": "list.tsv", "--features": "q.csv"}[role]
    table.write_bytes(mgf.read_bytes() if role == "spectra" else b"SMILES\tmzseek\nCCO\tyes\n")
    before = table.read_bytes()
    given = [table] if role == "spectra" else [mgf, role, table]
    status, _, told = mzseek("annotate", *given, *options, "--out", table)
    assert status != 0
    assert "is read as well, and would be written over" in told
    assert table.read_bytes() == before


def test_a_file_of_another_is_not_replaced_and_ones_own_is(mzseek, mgf, options, tmp_path):
    out = tmp_path / "notes.tsv"
    out.write_text("hello\n")
    status, _, told = mzseek("annotate", mgf, *options, "--out", out)
    assert status != 0
    assert "exists and is no output of annotate; name another --out" in told
    assert out.read_text() == "hello\n"
    for suffix in ("tsv", "json", "html", "mztab", "graphml"):
        own = tmp_path / f"own.{suffix}"
        for _ in range(2):
            assert mzseek("annotate", mgf, *options, "--out", own)[0] == 0


def test_spectra_that_are_not_looked_at_are_counted(mzseek, small_set, options, tmp_path):
    path = tmp_path / "many.mgf"
    write_mgf(path, spectra_from(Prepared.open(small_set.folder), np.arange(13)))
    with path.open("a") as file:
        file.write("BEGIN IONS\nTITLE=bad\nPEPMASS=none\n50 1\nEND IONS\n")
    _, shown, told = mzseek("annotate", path, *options)
    assert "3 more features: give --out" in shown + told
    assert "14 records = 10 answered + 1 set aside + 3 not looked at" in shown + told
