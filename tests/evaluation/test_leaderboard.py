import csv
from pathlib import Path

import numpy as np
import pytest

from mzseek.core.errors import RunError
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.leaderboard import COLUMNS, leaderboard_row, write_leaderboard
from mzseek.evaluation.scored import Scoring
from mzseek.metrics import bootstrap

# The header of results/retrieval.csv and of results/retrieval_bonus.csv in pluskal-lab/MassSpecGym.
HEADER = (
    "Method,Hit rate @ 1,Hit rate @ 1 CI Low,Hit rate @ 1 CI High,Hit rate @ 5,Hit rate @ 5 CI Low,"
    "Hit rate @ 5 CI High,Hit rate @ 20,Hit rate @ 20 CI Low,Hit rate @ 20 CI High,MCES @ 1,"
    "MCES @ 1 CI Low,MCES @ 1 CI High,Paper,DOI,Comment,Publication date"
)
PUBLISHED = (
    "Random,0.37,0.24,0.54,2.01,1.68,2.39,8.22,7.53,8.89,30.81,30.40,31.21,A benchmark,"
    "https://doi.org/10.48550/arXiv.2410.23326,,2025-01-14"
)


def rows_of(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="") as file:
        return {row["Method"]: row for row in csv.DictReader(file)}


def test_columns_are_the_leaderboard_s() -> None:
    assert ",".join(COLUMNS) == HEADER


@pytest.mark.parametrize("loss", ["bce", "emb-cos"])
def test_both_challenges_have_a_row(loss: str, trained, tmp_path: Path) -> None:
    run = trained(loss)
    written = write_leaderboard(run, tmp_path / "retrieval.csv")
    assert [path.name for path in written] == ["retrieval.csv", "retrieval_bonus.csv"]
    for path, setting in zip(written, ("mass", "formula"), strict=True):
        assert path.read_text().splitlines()[0] == HEADER
        row = rows_of(path)[run.folder.name]
        found = evaluate(run, Scoring("test", setting, identity="inchikey"))
        for k in (1, 5, 20):
            values = found.values[f"hit_rate@{k}"]
            wanted = bootstrap(values)  # over spectra, as the leaderboard's own
            low, high = (float(row[f"Hit rate @ {k} CI {end}"]) for end in ("Low", "High"))
            assert float(row[f"Hit rate @ {k}"]) == pytest.approx(100 * values.mean(), abs=0.005)
            assert (low, high) == pytest.approx((100 * wanted.low, 100 * wanted.high), abs=0.005)
        assert row["MCES @ 1"] == row["Paper"] == ""
        assert f"{loss} trained on mass candidates" in row["Comment"]


def test_distances_have_their_columns_where_they_were_measured(trained) -> None:
    run = trained("bce")
    row = leaderboard_row(run, evaluate(run), np.array([1.0, 3.0, 5.0]))
    assert row["MCES @ 1"] == "3.00"
    assert 1 <= float(row["MCES @ 1 CI Low"]) < 3 < float(row["MCES @ 1 CI High"]) <= 5
    assert row["Comment"].endswith("MCES @ 1 of 3 molecules")


def test_other_rows_stay_and_one_s_own_is_replaced(trained, tmp_path: Path) -> None:
    table = tmp_path / "retrieval.csv"
    table.write_text(f"{HEADER}\n{PUBLISHED}\n")
    run = trained("bce")
    write_leaderboard(run, table)
    once = table.read_text()
    assert once.splitlines()[1] == PUBLISHED
    write_leaderboard(run, table)
    assert table.read_text() == once
    assert list(rows_of(table)) == ["Random", run.folder.name]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name,value\na,1\n", "has other columns than the leaderboard"),
        (f"{HEADER}\nmine,1\n", "has a row with other columns than its header"),
        (f'{HEADER}\n"mine,1\n', "cannot be read"),
    ],
)
def test_another_table_is_left_alone(text: str, why: str, trained, tmp_path: Path) -> None:
    table = tmp_path / "retrieval.csv"
    table.write_text(text)
    with pytest.raises(RunError, match=why):
        write_leaderboard(trained("bce"), table)
    assert table.read_text() == text
    assert not (tmp_path / "retrieval_bonus.csv").exists()


def test_data_without_such_lists_are_told(copied, tmp_path: Path, monkeypatch) -> None:
    run = copied("bce")
    monkeypatch.setattr("mzseek.datasets.prepared.Prepared.measured_settings", ["hard"])
    with pytest.raises(RunError, match="its data have no mass or formula lists"):
        write_leaderboard(run, tmp_path / "retrieval.csv")
