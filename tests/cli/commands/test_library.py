"""``mzseek library``: build, add, info, check and search, as they are called."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest

RECORD = """BEGIN IONS
SPECTRUM_ID={name}
PEPMASS={precursor}
ADDUCT=[M+H]+
CHARGE=1+
SMILES={smiles}
LICENSE=CC0
{peaks}
END IONS

"""
CAFFEINE = "Cn1c(=O)c2c(ncn2C)n(C)c1=O"


def record(name: str, precursor: float, smiles: str, *peaks: str) -> str:
    return RECORD.format(name=name, precursor=precursor, smiles=smiles, peaks="\n".join(peaks))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "references.mgf"
    path.write_text(
        record("caffeine", 195.0877, CAFFEINE, "138.066 100", "110.071 30", "195.0877 50")
        + record("theobromine", 181.072, "Cn1c(=O)[nH]c(=O)c2c1ncn2C", "138.066 80", "110.071 40")
        + record("nothing", 181.072, "", "138.066 80")
    )
    return path


@pytest.fixture
def store(mzseek, source: Path, tmp_path: Path) -> Path:
    out = tmp_path / "store"
    text = mzseek.ok("library", "build", source, "--out", out)
    assert "store: 2 spectra of 2 molecules, 5 peaks" in text
    assert "Skipped: 1" in text
    assert "has no structure" in text
    return out


def test_search_writes_a_table(mzseek, store: Path, source: Path) -> None:
    for kind in ("cosine", "analog"):
        text = mzseek.ok("library", "search", store, source, "--kind", kind, "--top", 1)
        rows = list(csv.DictReader(io.StringIO(text), delimiter="\t"))
        assert [row["query"] for row in rows[:2]] == ["caffeine", "theobromine"]
        assert [row["identifier"] for row in rows[:2]] == ["caffeine", "theobromine"]
        assert float(rows[0]["score"]) == pytest.approx(1, abs=1e-5)
        assert (rows[0]["smiles"], rows[0]["license"]) == (CAFFEINE, "CC0")


def test_every_option_of_search_counts(mzseek, store: Path, source: Path) -> None:
    def found(*options: object) -> list[str]:
        text = mzseek.ok("library", "search", store, source, *options)
        rows = csv.DictReader(io.StringIO(text), delimiter="\t")
        return [row["identifier"] for row in rows if row["query"] == "caffeine"]

    assert found() == ["caffeine", "theobromine"]
    assert found("--ppm", 10) == ["caffeine"]
    assert found("--by-molecule") == ["caffeine", "theobromine"]
    assert found("--top", 1) == ["caffeine"]


def test_add_info_and_check(mzseek, store: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.mgf"
    more.write_text(record("phenol", 95.0491, "Oc1ccccc1", "77.039 10", "95.0491 5"))
    text = mzseek.ok("library", "add", store, more)
    assert "1 new spectrum" in text
    counts = mzseek.json("library", "info", store)["counts"]
    assert counts == {"spectra": 3, "molecules": 3, "peaks": 7, "rejects": 1}
    text = mzseek.ok("library", "check", store)
    assert "3 spectra, every file as it was written" in text


def test_refusals_are_one_line(mzseek, store: Path, source: Path, tmp_path: Path) -> None:
    status, _, err = mzseek("library", "search", store, source, "--kind", "dot")
    assert (status, err.count("\n")) == (2, 1)
    assert "expected one of: cosine, modified, entropy, analog" in err


def test_a_changed_library_is_not_searched(mzseek, store: Path, source: Path) -> None:
    masses = np.load(store / "mz.npy")
    np.save(store / "mz.npy", masses + 0.05)  # as long as it was
    status, out, told = mzseek("library", "search", store, source)
    assert (status, out) == (2, "")
    assert told.splitlines()[-1].endswith("mz.npy has changed; build it again")


def test_what_was_set_aside_of_the_queries_is_told(mzseek, store: Path, tmp_path: Path) -> None:
    queries = tmp_path / "q.mgf"
    queries.write_text(
        record("good", 195.0877, "", "138.066 1") + record("bad", 195.0877, "", "138.066 nan")
    )
    status, text, err = mzseek("library", "search", store, queries)
    assert status == 0
    assert "\ngood\t1\t" in text
    assert "1 record was skipped, first" in err
