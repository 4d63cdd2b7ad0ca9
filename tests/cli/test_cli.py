import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mzseek import __version__

from .conftest import CLI


def test_version(mzseek) -> None:
    assert mzseek("--version") == (0, f"mzseek {__version__}\n", "")


def test_the_module_is_the_command_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mzseek", "show", "nowhere.mgf"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "mzseek: nowhere.mgf: no such file\n"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    folder = tmp_path / "set"
    folder.mkdir()
    header = "identifier\tmzs\tintensities\tsmiles\tprecursor_mz\tadduct\tfold\n"
    good = "A\t50,60\t1,2\tCCO\t47.0491\t[M+H]+\ttrain\n"
    (folder / "s.tsv").write_text(header + good + "B\t\t\tCCO\t47.0491\t[M+H]+\ttrain\n")
    (folder / "candidates_mass.json").write_text('{"CCO": ["COC", "CCO"]}')
    return folder


def test_prepare(mzseek, small: Path, tmp_path: Path) -> None:
    arguments = ("prepare", small / "s.tsv", "--candidates-mass", small / "candidates_mass.json")
    out = mzseek.ok(*arguments, "--out", tmp_path / "p")
    assert "1 spectrum (train 1, val 0, test 0) of 1 molecule," in out
    assert "Skipped: 1" in out
    assert "has no peaks" in out
    assert "is up to date" in mzseek.ok(*arguments, "--out", tmp_path / "p")
    out = mzseek.ok("prepare", small, "--out", tmp_path / "p")  # the folder has the same lists
    assert "mass candidates: 1 list, median 2" in out
    assert mzseek.json(*arguments, "--out", tmp_path / "p")["counts"]["spectra"] == 1
    out = mzseek.ok("prepare", small / "s.tsv", "--out", tmp_path / "p")
    assert "made anew, since the source candidates.mass is no longer named" in out
    assert "No candidate lists were given" in out
    (tmp_path / "other.json").write_text('{"CCN": ["CCN", "CNC"]}')
    arguments = ("prepare", small / "s.tsv", "--candidates-mass", tmp_path / "other.json")
    assert "1 molecule has no list" in mzseek.ok(*arguments, "--out", tmp_path / "p")


def test_check_says_faults_by_its_exit_status(mzseek, small: Path) -> None:
    status, out, _ = mzseek("data", "check", small)
    assert status == 1
    assert "unreadable records" in out
    status, out, _ = mzseek("data", "check", small, "--json")
    assert status == 1
    assert json.loads(out.splitlines()[-1])["counts"]["spectra"] == 1
    table = small / "s.tsv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:2]))
    out = mzseek.ok("data", "check", small)
    assert "None of:" in out


def test_build(mzseek, tmp_path: Path) -> None:
    library = tmp_path / "l.mgf"
    library.write_text(
        "BEGIN IONS\nTITLE=a\nPEPMASS=47.0491\nADDUCT=[M+H]+\nSMILES=CCO\n20.5 1\nEND IONS\n"
        "BEGIN IONS\nTITLE=b\nPEPMASS=47.0491\nADDUCT=[M+H]+\n20.5 1\nEND IONS\n"
        "BEGIN IONS\nPEPMASS=69.0311\nINCHI=1S/C2H6O/c1-2-3/h3H,2H2,1H3\n20.5 1\nEND IONS\n"
    )
    (tmp_path / "pool.smi").write_text("COC\nCCO\n")
    out = mzseek.ok(
        "data", "build", library, "--molecules", tmp_path / "pool.smi", "--out", tmp_path / "out"
    )
    assert "2 spectra" in out
    assert "adduct inferred from precursor and mass, since none was stated: 1 spectrum" in out
    assert "has no structure" in out
    out = mzseek.ok("data", "check", tmp_path / "out")


@pytest.mark.slow
def test_demo_ends_with_where_to_look(tmp_path: Path) -> None:
    result = subprocess.run(
        [*CLI, "demo", "--out", "made", "--epochs", "1"],
        capture_output=True, text=True, cwd=tmp_path, timeout=600, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "Look at made/answers/report.html" in result.stdout
    assert "60 records = 60 annotated (60 features) + 0 skipped" in result.stdout
    assert (tmp_path / "made" / "answers" / "report.html").stat().st_size > 100_000
    page = (tmp_path / "made" / "index.html").read_text()
    for name in ("iou", "emb-cos", "emb-cos, spectrum-blind", "analogs, nothing trained", "random"):
        assert f"<td>{name}</td>" in page
    assert "Simulated" not in page


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(small: Path) -> None:
    command = f"{shlex.join([*CLI, 'data', 'check', str(small)])} | head -c 1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr
