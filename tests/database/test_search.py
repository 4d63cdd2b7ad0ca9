import gzip
from pathlib import Path

import pytest

from mzseek.chem.adducts import parse_adduct
from mzseek.core.errors import AdductError, DatabaseError, InputError
from mzseek.database import Database
from mzseek.database.search import ADDED_COLUMNS, Query, look_up, read_queries, typed_queries
from mzseek.database.store import COLUMNS


def read(path: Path, data: str | bytes, *adducts: str):
    """Queries of a file, and what was set aside."""
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    rejects: list[tuple[str, str]] = []
    queries = read_queries(path, adducts, lambda w, r: rejects.append((w, r)))
    return queries, [(where.removeprefix(f"{path}: "), reason) for where, reason in rejects]


def test_typed_queries_are_numbered_and_every_ion_is_tried() -> None:
    assert typed_queries([1.5, 2.5], [], []) == [Query("1", 1.5), Query("2", 2.5)]
    assert typed_queries([], [100.0], []) == [Query("1", 100.0, "[M+H]+")]
    assert typed_queries([], [100.0, 200.0], ["M+H", "[M+Na]+"]) == [
        Query("1", 100.0, "[M+H]+"), Query("1", 100.0, "[M+Na]+"),
        Query("2", 200.0, "[M+H]+"), Query("2", 200.0, "[M+Na]+"),
    ]  # fmt: skip


@pytest.mark.parametrize("mass", [0.0, -1.0, float("nan"), float("inf"), float("1" * 5000)])
def test_a_typed_mass_that_is_none_is_refused_before_any_is_answered(mass: float) -> None:
    with pytest.raises(DatabaseError, match="expected a positive number"):
        typed_queries([100.0, mass], [], [])
    with pytest.raises(AdductError):
        typed_queries([], [100.0, mass], [])


def test_one_number_a_line(tmp_path: Path) -> None:
    queries, rejects = read(tmp_path / "m.txt", "194.0804\n\n 46.0419 \r\n1e2\n")
    assert queries == [Query("1", 194.0804), Query("3", 46.0419), Query("4", 100.0)]
    assert rejects == []


def test_a_bad_line_is_set_aside_and_the_others_are_asked(tmp_path: Path) -> None:
    lines = ["abc", "-1", "0", "nan", "inf", "1" * 5000, "1_0", "1,5", "2 3", "46.0419"]
    queries, rejects = read(tmp_path / "m.txt", "\n".join(lines))
    assert queries == [Query("10", 46.0419)]
    assert [where for where, _ in rejects] == [f"line {n}" for n in range(1, 10)]
    assert all("is no positive number" in reason and len(reason) < 80 for _, reason in rejects)


@pytest.mark.parametrize("mark", ["\t", ";", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_tables_with_names_and_adducts(tmp_path: Path, mark: str, encoding: str) -> None:
    text = "Feature ID,Precursor m/z,rt,Adduct\nF1,195.0877,1,[M+H]+\nF2,217.0696,2,\n,100,3,M-H\n"
    data = text.replace(",", mark).encode(encoding)
    for pack in (bytes, gzip.compress):
        queries, rejects = read(tmp_path / "m.csv", pack(data), "[M+Na]+", "[M+K]+")
        assert queries == [
            Query("F1", 195.0877, "[M+H]+"), Query("F2", 217.0696, "[M+Na]+"),
            Query("F2", 217.0696, "[M+K]+"), Query("4", 100.0, "[M-H]-"),
        ]  # fmt: skip
        assert rejects == []


def test_a_column_of_neutral_masses(tmp_path: Path) -> None:
    assert read(tmp_path / "m.txt", "mass\n194.0804\n")[0] == [Query("2", 194.0804)]
    text = "id,exact_mass,adduct\na,194.0804,[M+H]+\n"
    assert read(tmp_path / "m.csv", text)[0] == [Query("a", 194.0804)]
    assert read(tmp_path / "m.csv", "mz\n195.0877\n")[0] == [Query("2", 195.0877, "[M+H]+")]


def test_bad_rows_are_set_aside(tmp_path: Path) -> None:
    text = (
        "id,mz,adduct\na,195.0877,[M+Xx]+\nb,x,\nc,1,[M+Na]+\nd,195.0877\n"
        f"e,195.0877,,5\nf,{'x' * 2_000_000},\ng,195.0877,\n"
    )
    queries, rejects = read(tmp_path / "m.csv", text)
    assert queries == [Query("g", 195.0877, "[M+H]+")]
    assert [where for where, _ in rejects] == [f"line {n}" for n in range(2, 8)]
    said = ["unknown part", "'x' is no", "too small", "has 2 col", "has 4 col", "is longer than"]
    assert all(part in reason for part, (_, reason) in zip(said, rejects, strict=True))


@pytest.mark.parametrize(
    ("text", "adducts", "message"),
    [
        ("mass,mass\n1,2\n", (), "columns 1 .* and 2 .* have one name"),
        ("mass,MZ\n1,2\n", (), r"columns 1 \('mass'\) and 2 \('MZ'\): which of them to look up"),
        ("mz,adduct,Adduct\n1,2,3\n", (), "columns 2 .* and 3 .* have one name"),
        ("id,id,mz\n1,2,3\n", (), "columns 1 .* and 2 .* have one name"),
        ("194.1\n", ("[M+H]+",), "holds neutral masses, which have no adduct"),
        ("mass\n194.1\n", ("[M+H]+",), "holds neutral masses, which have no adduct"),
        ("name,weight\nx,1\n", (), r"nothing to look up \(it has the columns 'name', 'weight'\)"),
        ("abc\nx\n", (), r"holds nothing to look up \(line 1: 'abc' is no positive number\)"),
        ("mass\n", (), "holds nothing to look up; expected one mass a line"),
        (" \n", (), "the file is empty"),
        ("PK\x03\x04\0", (), "is not a text file"),
    ],
)
def test_files_that_ask_nothing_clear_are_refused(
    tmp_path: Path, text: str, adducts: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path / "m.csv", text, *adducts)
    assert str(caught.value).startswith(str(tmp_path / "m.csv"))


def test_answers_say_how_far_they_are_and_from_what(store: Database) -> None:
    mass = float(store.masses[len(store) // 2])
    found = look_up(store, Query("x", mass + 0.001), 1e4)
    assert tuple(found.table.column_names) == ("row", *COLUMNS, *ADDED_COLUMNS)
    rows = found.table.to_pylist()
    assert len(rows) == found.total > 1
    for row in rows:
        asked = mass + 0.001
        assert row["ppm"] == pytest.approx((row["mass"] - asked) / asked * 1e6)
        assert (row["query"], row["adduct"], float(row["asked"])) == ("x", "", asked)
    assert {row["ppm"] < 0 for row in rows} == {True, False}


@pytest.mark.parametrize("adduct", ["[M+H]+", "[2M+Na]+", "[M-2H]2-"])
def test_the_error_of_an_ion_is_that_of_its_mz(store: Database, adduct: str) -> None:
    ion = parse_adduct(adduct)
    mz = ion.precursor_mz(float(store.masses[len(store) // 2])) + 0.0005
    found = look_up(store, Query("x", mz, adduct), 20.0, cap=5)
    assert len(found) >= 1
    for row in found.table.to_pylist():
        exact = ion.precursor_mz(row["mass"])
        assert row["ppm"] == pytest.approx((exact - mz) / mz * 1e6, abs=1e-6)
        assert abs(row["ppm"]) <= 20
        assert row["adduct"] == adduct
