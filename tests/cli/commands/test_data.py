"""``mzseek data build``: where candidates come from; ``mzseek data match``."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from mzseek.datasets.prepared import Prepared
from mzseek.runs.run import Run

from ...molecules import MOLECULES
from ..conftest import QUICK, commands

SPECTRUM = "BEGIN IONS\nPEPMASS={}\nADDUCT=[M+H]+\nSMILES={}\n20.5 1\nEND IONS\n"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "library.mgf"
    path.write_text(SPECTRUM.format(47.0491, "CCO") + SPECTRUM.format(61.0648, "CCCO"))
    return path


def lists(folder: Path, setting: str = "formula") -> dict[str, list[str]]:
    return json.loads(gzip.decompress((folder / f"candidates_{setting}.json.gz").read_bytes()))


def test_candidates_come_from_a_database(mzseek, library: Path, store: Path, tmp_path) -> None:
    out = mzseek.ok("data", "build", library, "--database", store, "--out", tmp_path / "a")
    assert "2 spectra" in out
    for setting in ("mass", "formula"):
        found = lists(tmp_path / "a", setting)
        assert {truth: sorted(candidates) for truth, candidates in found.items()} == {
            "CCO": ["CCO", "COC"], "CCCO": ["CC(C)O", "CCCO", "CCOC"],
        }  # fmt: skip


def test_sources_can_be_preferred(mzseek, library: Path, store: Path, tmp_path: Path) -> None:
    for source, expected in (("hmdb", "CC(C)O"), ("drugs", "CCOC")):
        arguments = ("--database", store, "--out", tmp_path / source, "--max-candidates", 2)
        mzseek.ok("data", "build", library, *arguments, "--priority", source)
        assert sorted(lists(tmp_path / source)["CCCO"]) == sorted(["CCCO", expected])


def test_what_the_database_reads_is_read(mzseek, library: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("CID,Canonical SMILES\n1,COC\n")
    (tmp_path / "b.smi").write_text("CCOC ether\n")
    arguments = ("--molecules", tmp_path / "a.csv", "--molecules", tmp_path / "b.smi", "--jobs", 1)
    kept = ("--keep-database", tmp_path / "db")
    out = mzseek.ok("data", "build", library, *arguments, "--out", tmp_path / "a", *kept)
    assert "the database of its molecules is kept in" in out
    assert {truth: len(found) for truth, found in lists(tmp_path / "a").items()} == {
        "CCO": 2, "CCCO": 2,
    }  # fmt: skip
    out = mzseek.ok("data", "build", library, *arguments, "--out", tmp_path / "b")
    assert "is kept in" not in out
    out = mzseek.ok("database", "search", tmp_path / "db", "--formula", "C2H6O")
    assert out.splitlines()[1].startswith("COC\t")
    assert lists(tmp_path / "a") == lists(tmp_path / "b")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"library.mgf", "a.csv", "b.smi", "a", "b", "db"}


@pytest.fixture
def matchable(mzseek, small_set, tmp_path: Path, monkeypatch) -> Path:
    """A prepared folder and a store, side by side; the working folder."""
    shutil.copytree(small_set.folder, tmp_path / "prepared")
    others = MOLECULES[:400]
    smiles = dict.fromkeys([*Prepared.open(small_set.folder).smiles, *others])
    (tmp_path / "pool.smi").write_text("".join(f"{each}\n" for each in smiles))
    made = ("--out", tmp_path / "pool", "--fingerprint", "maccs", "--jobs", 1)
    mzseek.ok("database", "build", tmp_path / "pool.smi", *made)
    monkeypatch.chdir(tmp_path)
    return tmp_path


WIDE = ("--database", "pool", "--ppm", 4e5, "--jobs", 1)


@pytest.mark.slow
@pytest.mark.usefixtures("threads_kept")
def test_matched_lists_are_added_trained_on_and_measured_on_as_printed(mzseek, matchable) -> None:
    out = mzseek.ok("data", "match", "prepared", *WIDE)
    sizes = Prepared.open("prepared", verify=True).candidates("matched").sizes
    assert f"matched: {len(sizes)} lists, mean {sizes.mean():.1f}, " in out
    assert "a blind scorer trained on them: HR@1 " in out
    [words] = commands(out)
    out = mzseek.ok(*words, *QUICK)
    assert Run.open("runs/emb-cos").candidates == "matched"
    [words] = commands(out)
    out = mzseek.ok(*words)
    assert ", matched candidates, " in out


def test_every_option_of_match_reaches_the_lists(mzseek, matchable) -> None:
    given = "--name fair --keep 7 --pool 100 --seed 3"
    facts = mzseek.json("data", "match", "prepared", *WIDE, *given.split())
    assert facts["name"] == "fair"
    assert facts["largest"] <= 7
    wanted = {"by": "mass", "ppm": 4e5, "keep": 7, "pool": 100, "seed": 3}
    assert {name: facts["matched"][name] for name in wanted} == wanted
    assert Prepared.open("prepared").settings[-1] == "fair"
