import csv
import io
import json
from pathlib import Path

import pytest

from mzseek.database import Database

from ..conftest import CAFFEINE

HEADER = ["smiles", "formula", "mass", "key", "sources", "identifiers", "names"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_build_says_what_it_has_made(mzseek, molecules: Path, tmp_path: Path) -> None:
    status, out, err = mzseek(
        "database", "build", molecules, "--out", tmp_path / "store", "--jobs", 1
    )
    assert (status, err) == (0, "")
    assert "store: 6 molecules of 8 records, morgan2, " in out
    assert "1 records were of molecules that were there already" in out
    assert "molecules.csv" in out
    assert "Skipped: 1" in out
    assert "not valid SMILES" in out
    assert names(tmp_path) == ["molecules.csv", "store"]


def test_every_option_of_build_reaches_the_store(mzseek, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("structure,called,nr,from\nCCO,ethanol,7,x\nCCN,,8,\n")
    status, _, _ = mzseek(
        "database", "build", tmp_path / "a.csv", "--out", tmp_path / "store", "--jobs", 1,
        "--fingerprint", "maccs", "--source", "mine", "--smiles-column", "structure",
        "--name-column", "called", "--id-column", "nr", "--source-column", "from", "--no-nearest",
        "--keep-stereo",
    )  # fmt: skip
    assert status == 0
    database = Database.open(tmp_path / "store")
    assert database.manifest["options"] == {
        "fingerprint": "maccs", "fingerprint_bits": 167, "nearest": False, "keep_stereo": True,
    }  # fmt: skip
    rows = {row["smiles"]: row for batch in database.batches() for row in batch.to_pylist()}
    assert rows["CCO"]["names"] == ["ethanol"]
    assert rows["CCO"]["identifiers"] == ["x:7"]
    assert rows["CCN"]["sources"] == ["mine"]


@pytest.mark.slow
def test_build_on_a_cluster_of_its_own(mzseek, molecules: Path, store: Path) -> None:
    pytest.importorskip("ray")
    out = store.with_name("there")
    status, _, err = mzseek(
        "database", "build", molecules, "--out", out, "--engine", "ray", "--jobs", 2
    )
    assert status == 0
    assert "Traceback" not in err
    for path in store.iterdir():
        assert (out / path.name).read_bytes() == path.read_bytes()


def test_add(mzseek, store: Path, tmp_path: Path) -> None:
    (tmp_path / "more.smi").write_text("CCO alcohol\nCCCCO\n")
    arguments = ("database", "add", store, tmp_path / "more.smi", "--source", "more", "--jobs", 1)
    status, out, _ = mzseek(*arguments)
    assert status == 0
    assert "1 new molecules" in out
    assert "7 molecules of " in out
    [row] = [r for r in Database.open(store).by_formula("C2H6O").table.to_pylist()
             if r["smiles"] == "CCO"]  # fmt: skip
    assert row["sources"] == ["drugs", "more"]
    assert names(tmp_path) == ["molecules.csv", "more.smi", "store"]


def test_adding_nothing_good_keeps_what_is_there(mzseek, store: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("smiles\nC1CC\n")
    status, out, _ = mzseek("database", "add", store, tmp_path / "bad.csv", "--jobs", 1)
    assert status == 0
    assert "0 new molecules" in out
    assert "6 molecules of 9 records" in out
    assert "Skipped: 2" in out  # one of them when it was built
    assert len(Database.open(store)) == 6


def test_info(mzseek, store: Path) -> None:
    status, out, _ = mzseek("database", "info", store)
    assert status == 0
    assert "6 molecules of 8 records" in out
    status, out, _ = mzseek("database", "info", store, "--json")
    assert json.loads(out)["counts"] == {"molecules": 6, "records": 8, "merged": 1, "rejects": 1}


def test_check(mzseek, store: Path) -> None:
    status, out, _ = mzseek("database", "check", store)
    assert status == 0
    assert "6 molecules, every file as it was written" in out
    data = bytearray((store / "molecules.parquet").read_bytes())
    data[100] ^= 1
    (store / "molecules.parquet").write_bytes(bytes(data))
    status, out, err = mzseek("database", "check", store)
    assert (status, out) == (2, "")
    assert err.endswith("molecules.parquet has changed; build it again\n")


@pytest.mark.parametrize("suffix", ["tsv", "csv", "smi"])
def test_what_is_exported_builds_the_same_molecules(
    mzseek, store: Path, tmp_path: Path, suffix: str
) -> None:
    file = tmp_path / f"all.{suffix}"
    status, out, _ = mzseek("database", "export", store, file)
    assert status == 0
    assert "6 molecules in " in out
    again = tmp_path / "again"
    assert mzseek("database", "build", file, "--out", again, "--jobs", 1)[0] == 0
    sql = "SELECT key, smiles, formula, mass, fingerprint FROM molecules"
    assert Database.open(again).query(sql) == Database.open(store).query(sql)
    lines = file.read_text().splitlines()
    if suffix == "smi":
        assert len(lines) == 6
    else:
        rows = list(csv.DictReader(lines, delimiter="\t" if suffix == "tsv" else ","))
        assert list(rows[0]) == HEADER
        assert rows[-1]["names"] == "caffeine; Coffein"
        assert rows[-1]["mass"] == "194.080376"


NASTY = [
    "\x1b[31mred\x9b2J",
    "=cmd|' /C calc'!A0",
    "-carotene",
    "'@quoted",
    "a\\b; c",
    "+1",
    "plain",
]


@pytest.fixture
def nasty(mzseek, tmp_path: Path) -> Path:
    """A store whose names would act on a terminal or in a spreadsheet."""
    rows = "".join(f'{"C" * n},{n},"{name}",=evil\n' for n, name in enumerate(NASTY, 1))
    (tmp_path / "nasty.csv").write_text(f"smiles,id,name,source\n{rows}C,99,methane,@home\n")
    arguments = ("database", "build", tmp_path / "nasty.csv", "--out", tmp_path / "nasty")
    assert mzseek(*arguments, "--jobs", 1)[0] == 0
    return tmp_path / "nasty"


def test_names_act_neither_on_a_terminal_nor_in_a_spreadsheet(mzseek, nasty: Path) -> None:
    out = nasty.with_name("all.csv")
    assert mzseek("database", "export", nasty, out)[0] == 0
    exported = list(csv.reader(out.read_text(encoding="utf-8").splitlines()))
    _, text, _ = mzseek("database", "search", nasty, "--mass", 100, "--ppm", 9.9e5)
    found = list(csv.reader(io.StringIO(text), delimiter="\t"))
    assert len(exported) == len(found) == len(NASTY) + 1
    for row in exported + found:
        assert all(cell.isprintable() for cell in row)
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row[4:7])
    assert exported[1][6] == "�[31mred�2J; methane"
    assert exported[2][6] == "'=cmd|' /C calc'!A0"
    assert exported[1][4] == "'=evil; @home"


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_a_store_built_of_its_export_has_the_same_names(mzseek, nasty: Path, suffix: str) -> None:
    out, again = nasty.with_name(f"all.{suffix}"), nasty.with_name("again")
    assert mzseek("database", "export", nasty, out)[0] == 0
    assert mzseek("database", "build", out, "--out", again, "--jobs", 1)[0] == 0
    sql = "SELECT smiles, sources, identifiers, names FROM molecules ORDER BY mass"
    before, after = (Database.open(folder).query(sql).to_pylist() for folder in (nasty, again))
    before[0]["names"][0] = before[0]["names"][0].replace("\x1b", "�").replace("\x9b", "�")
    assert after == before
    assert after[4]["names"] == ["a\\b; c"]


def test_hmdb(mzseek, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "HMDB2StructMapping.tsv"
    table.write_text(
        "HMDB:HMDB0001847\tCaffeine\tCN1C=NC2=C1C(=O)N(C)C(=O)N2C\tInChI=1S/x\n"
        "HMDB:HMDB0000108\tEthanol\t\tInChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3\n"
        "EXTRA:EXTRA001\tNothing\t\t\n"
    )
    monkeypatch.setattr("mzseek.database.sources.hmdb_table", lambda: table)
    status, out, _ = mzseek("database", "hmdb", "--out", tmp_path / "hmdb", "--jobs", 1)
    assert status == 0
    assert "2 molecules of 3 records" in out
    [row] = Database.open(tmp_path / "hmdb").by_mass(194.0804).table.to_pylist()
    assert (row["smiles"], row["names"]) == (CAFFEINE, ["Caffeine"])
    assert row["identifiers"] == ["hmdb:HMDB0001847"]


def test_pubchem(mzseek, tmp_path: Path) -> None:
    (tmp_path / "extras").mkdir()
    (tmp_path / "extras" / "CID-SMILES").write_text(f"702\tCCO\n2519\t{CAFFEINE}\n")
    (tmp_path / "extras" / "CID-Title").write_text("702\tEthanol\n")
    arguments = ("database", "pubchem", tmp_path / "extras", "--out", tmp_path / "pubchem")
    status, out, _ = mzseek(*arguments, "--jobs", 1, "--no-nearest")
    assert status == 0
    assert "2 molecules of 2 records" in out
    [row] = Database.open(tmp_path / "pubchem").by_formula("C2H6O").table.to_pylist()
    assert (row["identifiers"], row["names"]) == (["pubchem:CID702"], ["Ethanol"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("build", "absent.smi", "--out", "x"), "absent.smi: no such file"),
        (("build", "empty.smi", "--out", "x"), "empty.smi: the file is empty"),
        (("build", "bad.csv", "--out", "x"), "no molecule could be read (first: bad.csv: line 2"),
        (("build", "prose.txt", "--out", "x"), "prose.txt: is no list of molecules"),
        (("build", "good.smi", "--out", "mine"), "mine: exists and is no molecule database"),
        (("build", "good.smi", "--out", "good.smi"), "good.smi: is a file"),
        (("build", "good.smi", "--out", "x", "--fingerprint", "ecfp"), "'ecfp' is unknown"),
        (("build", "good.smi", "--out", "x", "--engine", "dask"), "engine 'dask' is unknown"),
        (("build", "good.smi", "--out", "x", "--address", "a:1"), "'local' has no address"),
        (("build", "good.smi", "--out", "/proc/nowhere/x"), "/proc/nowhere"),
        (("build", "a.csv", "--out", "x", "--smiles-column", "b"), "a.csv: "),
        (("pubchem", "mine", "--out", "x"), "mine: has no CID-SMILES.gz"),
        (("add", "absent", "good.smi"), "absent: is no molecule database"),
        (("add", "store", "absent.smi"), "absent.smi: no such file"),
        (("info", "mine"), "mine: is no molecule database"),
        (("check", "absent"), "absent: is no molecule database"),
        (("export", "store", "all.xlsx"), "all.xlsx: expected a name that ends in .tsv"),
        (("export", "store", "nowhere.tsv/all.tsv"), ""),
        (("export", "store", "store/all.tsv"), "all.tsv: lies in the source"),
        (("search", "absent", "--mass", "1"), "absent: is no molecule database"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_line_and_status_2(
    mzseek, store: Path, arguments, message: str, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.smi").write_text("")
    (tmp_path / "bad.csv").write_text("smiles\nC1CC\nC1CN\n")
    (tmp_path / "prose.txt").write_text("It was a dark and stormy night.\n")
    (tmp_path / "good.smi").write_text("CCO\n")
    (tmp_path / "a.csv").write_text("a,c\nCCO,1\n")
    (tmp_path / "nowhere.tsv").write_text("a file")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    before = names(tmp_path)
    status, out, err = mzseek("database", *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("mzseek: ")
    assert err.count("\n") == 1
    assert message in err
    assert names(tmp_path) == before
