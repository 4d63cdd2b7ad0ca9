import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from mzseek.database import Database

from ..conftest import CAFFEINE

HEADER = ["smiles", "formula", "mass", "key", "sources", "identifiers", "names"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_build_says_what_it_has_made(mzseek, molecules: Path, tmp_path: Path) -> None:
    out = mzseek.ok("database", "build", molecules, "--out", tmp_path / "store", "--jobs", 1)
    assert "store: 6 molecules of 8 records, morgan2, " in out
    assert "1 record was of molecules that were there already" in out
    assert "molecules.csv" in out
    assert "Skipped: 1" in out
    assert "not valid SMILES" in out
    assert names(tmp_path) == ["molecules.csv", "store"]


def test_every_option_of_build_reaches_the_store(mzseek, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("structure,called,nr,from\nCCO,ethanol,7,x\nCCN,,8,\n")
    given = (
        "--jobs 1 --fingerprint maccs --source mine --smiles-column structure --name-column called"
    )
    given += " --id-column nr --source-column from --no-nearest --keep-stereo"
    arguments = ("database", "build", tmp_path / "a.csv", "--out", tmp_path / "store")
    mzseek.ok(*arguments, *given.split())
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
        if path.name not in {"rejects.tsv", "manifest.json"}:  # which name the copied source
            assert (out / path.name).read_bytes() == path.read_bytes()
    one, two = ((f / "rejects.tsv").read_text().rpartition("/")[2] for f in (store, out))
    assert one == two


def test_add(mzseek, store: Path, tmp_path: Path) -> None:
    (tmp_path / "more.smi").write_text("CCO alcohol\nCCCCO\n")
    arguments = ("database", "add", store, tmp_path / "more.smi", "--source", "more", "--jobs", 1)
    out = mzseek.ok(*arguments)
    assert "1 new molecules" in out
    assert "7 molecules of " in out
    [row] = [r for r in Database.open(store).by_formula("C2H6O").table.to_pylist()
             if r["smiles"] == "CCO"]  # fmt: skip
    assert row["sources"] == ["drugs", "more"]
    assert names(tmp_path) == ["more.smi", "store"]


def test_info_and_check(mzseek, store: Path) -> None:
    assert "6 molecules of 8 records" in mzseek.ok("database", "info", store)
    counts = mzseek.json("database", "info", store)["counts"]
    assert counts == {"molecules": 6, "records": 8, "merged": 1, "rejects": 1}
    assert "6 molecules, every file as it was written" in mzseek.ok("database", "check", store)
    data = bytearray((store / "masses.npy").read_bytes())
    data[-1] ^= 1
    (store / "masses.npy").write_bytes(data)
    status, _, err = mzseek("database", "check", store)
    assert (status, err.count("\n")) == (2, 1)
    assert "masses.npy has changed" in err


@pytest.mark.parametrize("suffix", ["tsv", "csv", "smi"])
def test_what_is_exported_builds_the_same_molecules(
    mzseek, store: Path, tmp_path: Path, suffix: str
) -> None:
    file = tmp_path / f"all.{suffix}"
    out = mzseek.ok("database", "export", store, file)
    assert "6 molecules in " in out
    again = tmp_path / "again"
    mzseek.ok("database", "build", file, "--out", again, "--jobs", 1)
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
    mzseek.ok(*arguments, "--jobs", 1)
    return tmp_path / "nasty"


def test_names_act_neither_on_a_terminal_nor_in_a_spreadsheet(mzseek, nasty: Path) -> None:
    out = nasty.with_name("all.csv")
    mzseek.ok("database", "export", nasty, out)
    exported = list(csv.reader(out.read_text(encoding="utf-8").splitlines()))
    text = mzseek.ok("database", "search", nasty, "--mass", 100, "--ppm", 9.9e5)
    found = list(csv.reader(io.StringIO(text), delimiter="\t"))
    assert len(exported) == len(found) == len(NASTY) + 1
    for row in exported + found:
        assert all(cell.isprintable() for cell in row)
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row[4:7])
    assert exported[1][6] == "�[31mred�2J; methane"
    assert exported[2][6] == "'=cmd|' /C calc'!A0"
    assert exported[1][4] == "'=evil; @home"


def test_hmdb(mzseek, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "HMDB2StructMapping.tsv"
    table.write_text(
        "HMDB:HMDB0001847\tCaffeine\tCN1C=NC2=C1C(=O)N(C)C(=O)N2C\tInChI=1S/x\n"
        "HMDB:HMDB0000108\tEthanol\t\tInChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3\n"
        "EXTRA:EXTRA001\tNothing\t\t\n"
    )
    monkeypatch.setattr("mzseek.database.sources.hmdb_table", lambda: table)
    out = mzseek.ok("database", "hmdb", "--out", tmp_path / "hmdb", "--jobs", 1)
    assert "2 molecules of 3 records" in out
    [row] = Database.open(tmp_path / "hmdb").by_mass(194.0804).table.to_pylist()
    assert (row["smiles"], row["names"]) == (CAFFEINE, ["Caffeine"])
    assert row["identifiers"] == ["hmdb:HMDB0001847"]


def test_pubchem(mzseek, tmp_path: Path) -> None:
    (tmp_path / "extras").mkdir()
    (tmp_path / "extras" / "CID-SMILES").write_text(f"702\tCCO\n2519\t{CAFFEINE}\n")
    (tmp_path / "extras" / "CID-Title").write_text("702\tEthanol\n")
    arguments = ("database", "pubchem", tmp_path / "extras", "--out", tmp_path / "pubchem")
    out = mzseek.ok(*arguments, "--jobs", 1, "--no-nearest")
    assert "2 molecules of 2 records" in out
    [row] = Database.open(tmp_path / "pubchem").by_formula("C2H6O").table.to_pylist()
    assert (row["identifiers"], row["names"]) == (["pubchem:CID702"], ["Ethanol"])


Table = list[dict[str, str]]


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


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--mass", 194.0804), [CAFFEINE]),
        (("--mass", 46.0419, "--ppm", 1), ["CCO", "COC"]),
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


def test_search_by_likeness_and_by_priority(search) -> None:
    rows, _ = search("--like", "Cn1cnc2c1c(=O)n(C)c(=O)n2C", "--top", 2)
    assert len(rows) == 2
    assert (rows[0]["smiles"], rows[0]["similarity"]) == (CAFFEINE, "1.000000")
    assert rows[0]["sources"] == "drugs; hmdb"
    wanted = ("--formula", "C3H8O", "--priority", "mine", "--priority", "hmdb")
    rows, err = search(*wanted, "--cap", 1)
    assert ([row["smiles"] for row in rows], err) == (["CCCO"], "mzseek: 1 of 3 shown (--cap)\n")
    rows, err = search(*wanted, "--cap", 3)
    assert (len(rows), err) == (3, "")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (("--formula", "c9h9o9"), "no molecule has the formula C9H9O9"),
        (("--mass", 47), "the query found nothing within 10 ppm"),
        (("--precursor", 47, "--ppm", 5), "the query found nothing within 5 ppm"),
        (("--inchikey", "AAAAAAAAAAAAAA"), "no molecule has the InChIKey 'AAAAAAAAAAAAAA'"),
        (("--name", "nowhere"), "no molecule has a name with 'nowhere'"),
    ],
)
def test_a_query_that_finds_nothing_is_told(search, query, said: str) -> None:
    assert search(*query) == ([], f"mzseek: {said}\n")


def test_rows_say_how_far_they_are_and_by_which_adduct(search) -> None:
    [row], _ = search("--mass", 194.0804)
    assert list(row) == [*HEADER, "ppm", "adduct", "asked", "query"]
    assert float(row["ppm"]) == pytest.approx((194.080376 - 194.0804) / 194.0804 * 1e6, abs=1e-3)
    assert (row["adduct"], row["asked"], row["query"]) == ("", "194.0804", "1")
    [row], _ = search("--precursor", 195.0877, "--adduct", "M+H")
    assert float(row["ppm"]) == pytest.approx(-0.237, abs=0.02)
    assert (row["adduct"], row["asked"]) == ("[M+H]+", "195.0877")


def test_several_masses_and_several_adducts_say_what_they_answer(search) -> None:
    rows, err = search("--mass", 46.0419, "--mass", 500, "--mass", 194.0804)
    answers = [(row["query"], row["asked"], row["smiles"]) for row in rows]
    assert sorted(answers) == [
        ("1", "46.0419", "CCO"), ("1", "46.0419", "COC"), ("3", "194.0804", CAFFEINE),
    ]  # fmt: skip
    assert err == "mzseek: 1 of 3 queries found nothing within 10 ppm\n"
    rows, err = search(
        "--precursor", 217.0696, "--precursor", 195.0877, "--adduct", "[M+H]+", "--adduct", "M+Na"
    )
    assert [(row["query"], row["adduct"]) for row in rows] == [("1", "[M+Na]+"), ("2", "[M+H]+")]


def test_masses_of_a_file_and_a_bad_line_never_stops_the_others(search, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(
        "id;m/z;adduct\ncoffee;195.0877;\nbad;heavy;\n=cmd|x;217.0696;[M+Na]+\nx;1;[M+Na]+\n"
    )
    rows, err = search("--masses", tmp_path / "m.csv")
    assert [(row["query"], row["adduct"], row["smiles"]) for row in rows] == [
        ("coffee", "[M+H]+", CAFFEINE), ("'=cmd|x", "[M+Na]+", CAFFEINE),
    ]  # fmt: skip
    assert err.startswith(f"mzseek: {tmp_path / 'm.csv'}: skipped 2: line 3: 'heavy' is no posit")
    assert err.count("\n") == 1
