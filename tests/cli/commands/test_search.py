import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from ..conftest import CAFFEINE

HEADER = ["smiles", "formula", "mass", "key", "sources", "identifiers", "names"]
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
    [(["drugs"], "CCOC"), (["hmdb"], "CC(C)O"), (["mine", "hmdb"], "CCCO")],
)
def test_a_capped_list_follows_the_priorities_and_says_so(search, priorities, first: str) -> None:
    wanted = [text for name in priorities for text in ("--priority", name)]
    rows, err = search("--formula", "C3H8O", "--cap", 1, *wanted)
    assert [row["smiles"] for row in rows] == [first]
    assert err == "mzseek: 1 of 3 shown (--cap)\n"
    rows, err = search("--formula", "C3H8O", "--cap", 3, *wanted)
    assert (len(rows), err) == (3, "")


def test_an_unknown_priority_lists_the_sources_there_are(assert_refused, store: Path) -> None:
    for arguments in (("--mass", 46.0419), ("--formula", "C3H8O")):
        assert_refused(
            "it has drugs, hmdb, mine", "database", "search", store, *arguments, "--cap", 1,
            "--priority", "drugs", "--priority", "HMDB",
        )  # fmt: skip


@pytest.mark.parametrize("formula", ["C3H8O", "c3h8o", "OH8C3", "CH3CHOHCH3", "C₃H₈O"])
def test_a_formula_in_any_order_and_case_is_one(search, formula: str) -> None:
    rows, err = search("--formula", formula)
    assert sorted(row["smiles"] for row in rows) == ["CC(C)O", "CCCO", "CCOC"]
    assert err == ""


def test_a_formula_that_nothing_has_is_told_as_it_was_read(search) -> None:
    rows, err = search("--formula", "c9h9o9")
    assert (rows, err) == ([], "mzseek: no molecule has the formula C9H9O9\n")


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
    assert err == "mzseek: 1 of 3 queries found nothing\n"
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


def test_a_capped_list_keeps_the_nearest_by_mass(mzseek, tmp_path: Path) -> None:
    (tmp_path / "a.smi").write_text("CCCC=O\nCCCCC\nCC(=O)CC\nCCC(C)C\nCCN=C=O\nOCC=CC\n")
    assert (
        mzseek("database", "build", tmp_path / "a.smi", "--out", tmp_path / "s", "--jobs", 1)[0]
        == 0
    )
    both = ["C4H8O"] * 3, ["C5H12"] * 2  # 72.0575 and 72.0939
    asked = {
        72.0940: [both[1][:1], both[1], ["C4H8O", *both[1]]],
        72.0570: [both[0][:1], both[0][:2]],
    }
    for mass, expected in asked.items():
        for cap, formulas in enumerate(expected, 1):
            status, out, err = mzseek(
                "database", "search", tmp_path / "s", "--mass", mass, "--ppm", 2000, "--cap", cap
            )
            rows = list(csv.DictReader(io.StringIO(out), delimiter="\t"))
            assert (status, [row["formula"] for row in rows]) == (0, formulas)
            assert err == f"mzseek: {cap} of 5 shown (--cap)\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing was asked for, expected one of --mass"),
        (
            ("--mass", "1", "--formula", "C"),
            "--mass and --formula was asked for, expected one of",
        ),
        (("--mass", "-1"), "mass -1: expected a positive number"),
        (("--mass", "0"), "mass 0: expected a positive number"),
        (("--mass", "nan"), "mass nan: expected a positive number"),
        (("--mass", "1" * 5000), "mass inf: expected a positive number"),
        (("--mass", "46.04", "--mass", "-1"), "mass -1: expected a positive"),
        (("--mass", "1", "--ppm", "nan"), "nan ppm: expected 0 or more"),
        (("--mass", "1", "--ppm", "inf"), "inf ppm: expected 0 or more"),
        (("--mass", "1", "--ppm", "-1"), "-1 ppm: expected 0 or more"),
        (("--mass", "1", "--ppm", "1" * 5000), "inf ppm: expected 0 or more"),
        (("--precursor", "1" * 5000), "m/z inf is not a positive number"),
        (("--mass", "1", "--cap", "1" * 5000), "--cap"),
        (("--mass", "1", "--adduct", "[M+H]+"), "--adduct is for --precursor"),
        (
            ("--mass", "46", "--priority", "pubchem"),
            "priority 'pubchem' is no source of ",
        ),
        (("--masses", "absent.txt"), "absent.txt: no such file"),
        (("--masses", "prose.txt"), "prose.txt: holds nothing to look up"),
        (("--formula", "C2H6Xx"), "has the unknown element 'Xx'"),
        (("--formula", "co"), "can be read as CO or Co"),
        (("--formula", "C" + "1" * 5000), "has 5,001 characters"),
        (("--precursor", "100", "--adduct", "[M+Xx]+"), "unknown part 'Xx'"),
        (("--precursor", "1", "--adduct", "[M+Na]+"), "too small"),
        (("--formula", " "), "the formula is empty"),
        (("--inchikey", "caffeine"), "'caffeine' is no InChIKey"),
        (("--like", "C1CC"), "'C1CC': not valid SMILES"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_a_bad_question_is_one_line_and_status_2(
    assert_refused, store: Path, arguments: tuple[str, ...], message: str, monkeypatch
) -> None:
    monkeypatch.chdir(store.parent)
    (store.parent / "prose.txt").write_text("It was a dark and stormy night.\n")
    assert_refused(message, "database", "search", "store", *arguments)
