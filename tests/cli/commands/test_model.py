"""``mzseek model``: build, export, info and verify, as they are called."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from mzseek.datasets.prepared import Prepared
from mzseek.evidence import channels_from
from mzseek.evidence.fitting import fit


@pytest.fixture(scope="session")
def run_folder(small_set: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model") / "run"
    fit(Prepared.open(small_set.folder), channels_from("analogs"), out, jobs=1)
    return out


@pytest.fixture
def exported(mzseek, run_folder: Path, tmp_path: Path) -> Path:
    out = tmp_path / "mine"
    (tmp_path / "list.smi").write_text("CCO ethanol\n")
    given = ("--molecules", tmp_path / "list.smi", "--jobs", 1)
    text = mzseek.ok("model", "export", run_folder, "--out", out, *given)
    assert "52 reference spectra of 26 molecules, 27 molecules in all" in text
    assert "Next: mzseek model info" in text
    return out


def test_info_shows_the_card(mzseek, exported: Path) -> None:
    text = mzseek.ok("model", "info", exported)
    assert "Channels: analogs" in text
    assert "They learned from: train" in text
    assert "ions: [M+H]+ 52" in text
    assert "Bundled database: 27 molecules: library 26, list 1" in text
    assert "with a name: 1; with an identifier: 0, with a link to its page: 0" in text
    assert "HR@1" in text
    assert "Learned prior: there, and in no number above" in " ".join(text.split())
    assert "test fold without and with the prior" in text
    assert "Limits\n- " in text
    facts = mzseek.json("model", "info", exported)
    assert facts["library"]["spectra"] == 52
    assert facts["bytes"] > 1000


def test_info_writes_every_record(mzseek, exported: Path) -> None:
    text = mzseek.ok("model", "info", exported, "--records")
    rows = list(csv.DictReader(io.StringIO(text), delimiter="\t"))
    assert len(rows) == 52
    assert {"identifier", "contributor", "license"} <= set(rows[0])
    assert rows[0]["identifier"] == "S0-1"


def test_molecules_are_replaced(mzseek, exported: Path, tmp_path: Path, assert_refused) -> None:
    known = tmp_path / "lab_known.tsv"
    known.write_text(
        "inchikey\tname\tsynonyms\tsmiles\tpubchem_cid\tin_sets\n"
        "RYYVLZVUVIJVGH\tCAF_1\tCaffeine\tCn1c(=O)c2c(ncn2C)n(C)c1=O\t2519\tno\n"
        "VNWKTOKETHGBQD\tMethane\t\tC\t297\tno\n"
    )
    words = ("--known", known, "--electrospray-only", "--jobs", 1)
    text = mzseek.ok("model", "molecules", exported, *words)
    assert "1 records skipped: has no atom that takes or loses a proton" in text
    assert "26 molecules in all" in text
    text = mzseek.ok("model", "info", exported)
    assert "Bundled database: 26 molecules: lab 1, library 26" in text
    assert "with a name: 1; with an identifier: 1, with a link to its page: 1" in text
    known.write_text("name\tsmiles\nMethane\tC\n")
    assert_refused("is no table of molecules with", "model", "molecules", exported, *words)


def test_verify_says_what_it_has_read(mzseek, exported: Path, assert_refused) -> None:
    text = mzseek.ok("model", "verify", exported)
    assert "8 files" in text
    assert "every one as it was written" in text
    path = exported / "card.json"
    path.write_bytes(path.read_bytes().replace(b"analogs", b"analogz"))
    assert_refused("card.json has changed", "model", "verify", exported)


@pytest.mark.slow
def test_build_makes_one_of_tables(mzseek, small_set: Any, tmp_path: Path) -> None:
    source = small_set.folder.parent
    (tmp_path / "one.tsv").write_bytes((source / "spectra.tsv").read_bytes())
    lists = (source / "candidates_mass.json").read_bytes()
    (tmp_path / "one_candidates_mass.json").write_bytes(lists)
    words = ("--channels", "analogs", "--set", "analogs.likeness=morgan2", "--jobs", 1)
    status, _, err = mzseek("model", "build", tmp_path / "one.tsv", "--out", tmp_path / "b", *words)
    assert status == 2
    assert "no spectrum has a licence that allows it (left out: 88 without)" in err
    words += ("--licence", "any", "--folds", "train")
    text = mzseek.ok("model", "build", tmp_path / "one.tsv", "--out", tmp_path / "b", *words)
    assert "88 spectra are kept: 88 without" in text
    assert "52 reference spectra" in text
