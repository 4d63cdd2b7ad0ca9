import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import zstandard

from mzseek.chem import fingerprints
from mzseek.decision import (
    BAND_SIMILARITIES,
    UTILITIES,
    bayes_decision,
    expected_utility,
    posterior,
    regret_bounds,
)

TOY = "name,fingerprint,probability\ny1,11000,0.05\ny2,10100,0.25\ny3,10010,0.30\ny4,11001,0.40\n"
ROWS = [[1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 0, 0, 1, 0], [1, 1, 0, 0, 1]]
P = [0.05, 0.25, 0.30, 0.40]
BEST = {"hit": "11001", "bits": "10000", "cosine": "11111", "tanimoto": "11001", "f1": "11001"}


@pytest.fixture
def table(tmp_path: Path):
    """A file with this text."""

    def write(text: str, name: str = "candidates.csv") -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


@pytest.fixture
def decided(mzseek):
    """The JSON object of a table's decisions."""

    def ask(*arguments) -> dict:
        text = mzseek.ok("decide", *arguments, "--json")
        return json.loads(text.splitlines()[-1])

    return ask


def test_the_example_of_the_paper(mzseek, table) -> None:
    text = mzseek.ok("decide", table(TOY), "--within", "all")
    lines = text.splitlines()
    assert lines[0] == "4 candidates; decisions are made for any fingerprint"
    for name, bits in BEST.items():
        label = UTILITIES[name].label
        row = next(line for line in lines[2:] if line.startswith(label))
        assert row.removeprefix(label).split()[0] == bits
        value = 100 * bayes_decision(name, ROWS, P, "all").expected_utility
        assert f"{value:.1f}" in row
    assert "0.0 −40.0" in text  # what the answer for cosine loses of HR@1


@pytest.mark.parametrize("within", ["candidates", "all"])
def test_json_has_every_decision_and_what_it_costs(within: str, decided, table) -> None:
    facts = decided(table(TOY), "--within", within)
    assert facts["within"] == within
    best = {name: bayes_decision(name, ROWS, P, within) for name in UTILITIES}
    assert set(facts["decisions"]) == set(UTILITIES)
    for made, decision in facts["decisions"].items():
        assert decision["bits"] == np.flatnonzero(best[made].bits).tolist()
        assert decision["index"] == best[made].index
        assert decision["name"] == (
            None if decision["index"] is None else f"y{decision['index'] + 1}"
        )
        assert decision["expected_utility"] == pytest.approx(best[made].expected_utility)
        assert decision["upper_bound"] >= decision["expected_utility"]
        for judged in UTILITIES:
            value = expected_utility(judged, best[made].bits, ROWS, P)
            assert facts["expected"][judged][made] == pytest.approx(value)
            lost = best[judged].expected_utility - value
            assert facts["regret"][judged][made] == pytest.approx(lost, abs=1e-12)
    if within == "all":
        assert not {"bounds", "tanimoto_bounds"} & set(facts)  # they do not hold there
    else:
        assert set(facts["bounds"]) == set(BAND_SIMILARITIES)
        for name, bounds in facts["bounds"].items():
            assert bounds == pytest.approx(vars(regret_bounds(name, ROWS, P)))
        assert facts["tanimoto_bounds"] == pytest.approx(vars(regret_bounds("tanimoto", ROWS, P)))


def test_the_bounds_of_every_similarity_are_shown(mzseek, table) -> None:
    text = mzseek.ok("decide", table(TOY))
    for name in BAND_SIMILARITIES:
        wanted = regret_bounds(name, ROWS, P)
        lost = [100 * wanted.hit_under_similarity, 100 * wanted.similarity_under_hit]
        cells = [f"{wanted.low:.3f}", "to", f"{wanted.high:.3f}", *(f"{x:.1f}" for x in lost), "–"]
        label = UTILITIES[name].label.split()
        assert [*label, *cells] in [line.split() for line in text.splitlines()]
    text = mzseek.ok("decide", table("fingerprint,probability\n110,0.97\n011,0.03\n"))
    assert text.count(" surely\n") == len(BAND_SIMILARITIES)
    text = mzseek.ok("decide", table(TOY), "--within", "all")
    assert "two candidates" not in text


def test_tables_may_be_written_in_several_ways(decided, table, tmp_path: Path) -> None:
    plain = decided(table(TOY, "plain.csv"))
    for text in (
        TOY.replace(",", ";").replace("\n", "\r\n\r\n"),
        "\ufeff" + TOY.replace("name,fingerprint,probability", "Name , FINGERPRINT,Probability"),
        TOY.replace("y1", '"y1"').replace(",0.05", ", 0.05 ").rstrip(),
        "# " + TOY.replace("name", "Compound Name"),
    ):
        assert decided(table(text)) == plain
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(TOY.encode()))
    (tmp_path / "t.csv.zst").write_bytes(zstandard.ZstdCompressor().compress(TOY.encode()))
    (tmp_path / "t.txt").write_bytes(TOY.encode("utf-16"))
    for name in ("t.csv.gz", "t.csv.zst", "t.txt"):
        assert decided(tmp_path / name) == plain


def test_smiles_have_the_fingerprint_asked_for(decided, table) -> None:
    smiles, scores = ["CCO", "CCN", "CCCO"], [1.0, 0.5, 0.25]
    path = table(
        "smiles,score\n" + "".join(f"{s},{x}\n" for s, x in zip(smiles, scores, strict=True))
    )
    for kind, temperature in (("morgan2", 1.0), ("maccs", 0.2)):
        facts = decided(path, "--fingerprint", kind, "--temperature", temperature)
        p = posterior(scores, [3], temperature)
        best = bayes_decision("tanimoto", fingerprints(smiles, kind), p)
        got = facts["decisions"]["tanimoto"]
        assert got["name"] == smiles[best.index]
        assert got["expected_utility"] == pytest.approx(best.expected_utility)


def test_names_with_square_brackets_are_shown_whole(mzseek, table) -> None:
    path = table("name,smiles,probability\n[bold]x[/bold] [13C],CCO,0.9\n[M+H]+ [red],CCN,0.1\n")
    text = mzseek.ok("decide", path)
    assert text.count("[bold]x[/bold] [13C]") == len(UTILITIES)


def test_names_do_nothing_to_the_terminal(mzseek, table) -> None:
    for text in ("smiles,score\nCCO\x1b[2J,1\n", "name,smiles,score\nx\x1b[2J\x9b,CCO,1\n"):
        _, out, err = mzseek("decide", table(text))
        assert not any(mark in out + err for mark in "\x1b\x9b")


def test_columns_that_are_not_decided_by_are_told(mzseek, decided, table) -> None:
    path = table("fingerprint,smiles,score,probability\n110,CCO,5,0.2\n011,CCN,1,0.8\n")
    assert decided(path)["columns"] == ["fingerprint", "probability"]
    assert decided(path)["decisions"]["hit"]["name"] == "CCN"
    assert (
        "Decided by the columns fingerprint and probability, not by smiles and score."
        in " ".join(mzseek("decide", path)[1].split())
    )
    out = mzseek.ok("decide", table("fingerprint,score\n110,5\n011,1\n"))
    assert "Decided by" not in out


def test_a_decision_that_is_no_candidate_is_described(mzseek, table) -> None:
    text = mzseek.ok("decide", table("smiles,score\nCCO,1\nCCN,1\nCCC,1\n"), "--within", "all")
    assert "none of the candidates" in " ".join(text.split())


def test_twins_are_told(mzseek, table) -> None:
    text = mzseek.ok("decide", table("fingerprint,score\n110,1\n110,1\n011,1\n"))
    assert text.startswith("3 candidates, 2 distinct fingerprints; decisions are made among them")


def test_one_candidate_is_right_by_every_metric_and_has_no_band(mzseek, decided, table) -> None:
    path = table("smiles,score\nCCO,1\n")
    facts = decided(path)
    for decision in facts["decisions"].values():
        assert decision["expected_utility"] == pytest.approx(1)
    assert {(each["low"], each["high"]) for each in facts["bounds"].values()} == {(None, None)}
    assert mzseek.ok("decide", path).startswith("1 candidate; ")


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        (TOY.replace("0.25", "much"), ", line 3: ", "probability is 'much', expected a number"),
        (TOY.replace("0.25", ""), ", line 3: ", "probability is missing, expected a number"),
        (TOY.replace("0.25", "-0.25"), ", line 3: ", "expected a finite number that is not negat"),
        (TOY.replace("0.25", "1" * 5000), ", line 3: ", "…', expected a finite number"),
        (TOY.replace("0.25", "0.25,x"), ", line 3: ", "has 4 columns, expected 3"),
        (TOY.replace("y2", '"y2'), ", line 3: ", "has a quotation mark that is not closed"),
        (TOY.replace("10100", "1010"), ", line 3: ", "'1010', expected 5 characters"),
        (TOY.replace("10100", "10200"), ", line 3: ", "each 0 or 1"),
        (TOY.replace("y1", '"y\n1"').replace("0.25", "x"), ", line 4: ", "probability is 'x'"),
        ("\n\n" + TOY.replace("0.25", "x"), ", line 5: ", "probability is 'x'"),
        ("smiles,score\nCCO,1\nC(C,1\n", ", line 3: ", "SMILES 'C(C': not valid SMILES; left"),
        ("smiles,score\nCCO,1\nCCN,inf\n", ", line 3: ", "score is 'inf', expected a finite numb"),
        ("smiles,score\nCCO,1\n" + "C" * 2_000_000 + ",1\n", ", line 3: ", "is longer than 1,000"),
        ("PK\x03\x04", ": ", "is not a text file"),
        (TOY.replace("0.40", "0.90"), ": ", "sum to 1.5, expected 1; name the column `score`"),
        (TOY.replace("fingerprint", "bits"), ": ", "has the columns 'name', 'bits', 'probability'"),
        ("name,fingerprint,probability\n", ": ", "has no candidates below its header"),
        ("", ": ", "empty"),
    ],
    ids=lambda value: value[:40],
)  # fmt: skip
def test_a_bad_table_is_one_line_that_says_where(
    text: str, where: str, message: str, mzseek, table
) -> None:
    path = table(text)
    status, out, err = mzseek("decide", path)
    assert (status, out) == (2, "")
    assert err.startswith(f"mzseek: {path}{where}")
    assert err.count("\n") == 1
    assert message in err
