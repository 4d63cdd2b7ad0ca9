import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mzseek.database import Database

CAFFEINE = "Cn1c(=O)c2c(ncn2C)n(C)c1=O"
HEADER = ["smiles", "formula", "mass", "key", "sources", "identifiers", "names"]
Table = list[dict[str, str]]


@pytest.fixture
def molecules(tmp_path: Path) -> Path:
    path = tmp_path / "molecules.csv"
    path.write_text(
        "smiles,id,name,source\n"
        f"{CAFFEINE},1,caffeine,drugs\n{CAFFEINE},HMDB1847,Coffein,hmdb\n"
        "CCO,2,ethanol,drugs\nCOC,3,ether,mine\nC1CC,4,broken,mine\nCCCO,5,,mine\n"
        "CC(C)O,6,isopropanol,hmdb\nCCOC,7,,drugs\n"
    )
    return path


@pytest.fixture
def store(mzseek, molecules: Path, tmp_path: Path) -> Path:
    assert mzseek("database", "build", molecules, "--out", tmp_path / "store", "--jobs", 1)[0] == 0
    return tmp_path / "store"


@pytest.fixture
def search(mzseek, store: Path) -> Callable[..., tuple[Table, str]]:
    """Rows of the table on standard output, and what is said beside it."""

    def ask(*arguments: object) -> tuple[Table, str]:
        status, out, err = mzseek("database", "search", store, *arguments)
        assert status == 0
        lines = out.splitlines()
        assert lines[0].split("\t")[:7] == HEADER
        assert all(line.count("\t") == lines[0].count("\t") for line in lines)
        return list(csv.DictReader(io.StringIO(out), delimiter="\t")), err

    return ask


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
    assert "Set aside: 1" in out
    assert "not valid SMILES" in out
    assert names(tmp_path) == ["molecules.csv", "store"]


def test_every_option_of_build_reaches_the_store(mzseek, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("structure,called,nr,from\nCCO,ethanol,7,x\nCCN,,8,\n")
    status, _, _ = mzseek(
        "database", "build", tmp_path / "a.csv", "--out", tmp_path / "store", "--jobs", 1,
        "--fingerprint", "maccs", "--source", "mine", "--smiles-column", "structure",
        "--name-column", "called", "--id-column", "nr", "--source-column", "from", "--no-nearest",
    )  # fmt: skip
    assert status == 0
    database = Database.open(tmp_path / "store")
    assert database.manifest["options"] == {
        "fingerprint": "maccs", "fingerprint_bits": 167, "nearest": False,
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
    assert "Set aside: 2" in out  # one of them when it was built
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


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--mass", 194.0804), [CAFFEINE]),
        (("--mass", 46.0419, "--ppm", 1), ["CCO", "COC"]),
        (("--mass", 47), []),
        (("--precursor", 195.0877), [CAFFEINE]),
        (("--precursor", 217.0696, "--adduct", "[M+Na]+"), [CAFFEINE]),
        (("--formula", "C3H8O"), ["CC(C)O", "CCCO", "CCOC"]),
        (("--inchikey", "RYYVLZVUVIJVGH-UHFFFAOYSA-N"), [CAFFEINE]),
        (("--inchikey", "RYYVLZVUVIJVGH"), [CAFFEINE]),
    ],
)
def test_search_is_a_table_and_nothing_else(search, arguments, expected: list[str]) -> None:
    rows, err = search(*arguments)
    assert sorted(row["smiles"] for row in rows) == expected
    assert err == ""


def test_search_by_likeness_has_similarities(search) -> None:
    rows, _ = search("--like", "Cn1cnc2c1c(=O)n(C)c(=O)n2C", "--top", 2)
    assert len(rows) == 2
    assert (rows[0]["smiles"], rows[0]["similarity"]) == (CAFFEINE, "1.000000")
    assert rows[0]["sources"] == "drugs; hmdb"


@pytest.mark.parametrize(
    ("priorities", "first"),
    [(["drugs"], "CCOC"), (["hmdb"], "CC(C)O"), (["unknown", "mine", "hmdb"], "CCCO")],
)
def test_a_capped_list_follows_the_priorities_and_says_so(search, priorities, first: str) -> None:
    wanted = [text for name in priorities for text in ("--priority", name)]
    rows, err = search("--formula", "C3H8O", "--cap", 1, *wanted)
    assert [row["smiles"] for row in rows] == [first]
    assert err == "mzseek: 1 of 3 shown (--cap)\n"
    rows, err = search("--formula", "C3H8O", "--cap", 3, *wanted)
    assert (len(rows), err) == (3, "")


def test_hmdb(mzseek, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "HMDB2StructMapping.tsv"
    table.write_text(
        "HMDB:HMDB0001847\tCaffeine\tCN1C=NC2=C1C(=O)N(C)C(=O)N2C\tInChI=1S/x\n"
        "HMDB:HMDB0000108\tEthanol\t\tInChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3\n"
        "EXTRA:EXTRA001\tNothing\t\t\n"
    )
    for name in ("inputs", "sources"):
        monkeypatch.setattr(f"mzseek.database.{name}.hmdb_table", lambda: table)
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
        (("search", "store"), "nothing was asked for, expected one of --mass"),
        (
            ("search", "store", "--mass", "1", "--formula", "C"),
            "--mass and --formula was asked for, expected one of",
        ),
        (("search", "store", "--mass", "-1"), "expected positive numbers"),
        (("search", "store", "--mass", "nan"), "expected positive numbers"),
        (("search", "store", "--precursor", "100", "--adduct", "[M+Xx]+"), "unknown part 'Xx'"),
        (("search", "store", "--precursor", "1", "--adduct", "[M+Na]+"), "too small"),
        (("search", "store", "--formula", " "), "the formula is empty"),
        (("search", "store", "--inchikey", "caffeine"), "'caffeine' is no InChIKey"),
        (("search", "store", "--like", "C1CC"), "'C1CC': not valid SMILES"),
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
