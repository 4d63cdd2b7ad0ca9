"""``mzseek data build``: where candidates come from."""

import gzip
import json
from pathlib import Path

import pytest

SPECTRUM = "BEGIN IONS\nPEPMASS={}\nADDUCT=[M+H]+\nSMILES={}\n20.5 1\nEND IONS\n"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "library.mgf"
    path.write_text(SPECTRUM.format(47.0491, "CCO") + SPECTRUM.format(61.0648, "CCCO"))
    return path


def lists(folder: Path, setting: str = "formula") -> dict[str, list[str]]:
    return json.loads(gzip.decompress((folder / f"candidates_{setting}.json.gz").read_bytes()))


def test_candidates_come_from_a_database(mzseek, library: Path, store: Path, tmp_path) -> None:
    status, out, err = mzseek(
        "data", "build", library, "--database", store, "--out", tmp_path / "a"
    )
    assert (status, err) == (0, "")
    assert "2 spectra" in out
    for setting in ("mass", "formula"):
        found = lists(tmp_path / "a", setting)
        assert {truth: sorted(candidates) for truth, candidates in found.items()} == {
            "CCO": ["CCO", "COC"], "CCCO": ["CC(C)O", "CCCO", "CCOC"],
        }  # fmt: skip


def test_sources_can_be_preferred(mzseek, library: Path, store: Path, tmp_path: Path) -> None:
    for source, expected in (("hmdb", "CC(C)O"), ("drugs", "CCOC")):
        arguments = ("--database", store, "--out", tmp_path / source, "--max-candidates", 2)
        assert mzseek("data", "build", library, *arguments, "--priority", source)[0] == 0
        assert sorted(lists(tmp_path / source)["CCCO"]) == sorted(["CCCO", expected])


def test_what_the_database_reads_is_read(mzseek, library: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("CID,Canonical SMILES\n1,COC\n")
    (tmp_path / "b.smi").write_text("CCOC ether\n")
    arguments = ("--molecules", tmp_path / "a.csv", "--molecules", tmp_path / "b.smi", "--jobs", 1)
    kept = ("--keep-database", tmp_path / "db")
    status, out, _ = mzseek("data", "build", library, *arguments, "--out", tmp_path / "a", *kept)
    assert status == 0
    assert "the database of its molecules is kept in" in out
    assert {truth: len(found) for truth, found in lists(tmp_path / "a").items()} == {
        "CCO": 2, "CCCO": 2,
    }  # fmt: skip
    status, out, _ = mzseek("data", "build", library, *arguments, "--out", tmp_path / "b")
    assert status == 0
    assert "is kept in" not in out
    status, out, _ = mzseek("database", "search", tmp_path / "db", "--formula", "C2H6O")
    assert out.splitlines()[1].startswith("COC\t")
    assert lists(tmp_path / "a") == lists(tmp_path / "b")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"library.mgf", "a.csv", "b.smi", "a", "b", "db"}


def test_unclear_or_unfit_sources_are_one_line(
    assert_refused, library: Path, store: Path, molecules: Path, tmp_path: Path
) -> None:
    out = ("--out", tmp_path / "out")
    build = ("data", "build", library, *out)
    assert_refused("--database or --molecules, and none was given", *build)
    both = ("--database", store, "--molecules", molecules)
    assert_refused("--database or --molecules, and both were given", *build, *both)
    kept = ("--database", store, "--keep-database", tmp_path / "x")
    assert_refused("--keep-database is for what --molecules gives", *build, *kept)
    assert_refused("has no stereo in its SMILES", *build, "--database", store, "--keep-stereo")
    assert_refused("is no source of", *build, "--database", store, "--priority", "pubchem")
    assert_refused("is no molecule database", *build, "--database", tmp_path)
    assert not (tmp_path / "out").exists()
