from pathlib import Path

import numpy as np
import pytest

from mzseek.chem import fingerprints
from mzseek.core.errors import InputError, MoleculeError
from mzseek.datasets.scored_table import read_scored_table
from mzseek.decision import posterior


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize("mark", ["\t", ";", ","])
@pytest.mark.parametrize("head", ["smiles", "SMILES", "Canonical SMILES", "isomeric_smiles"])
def test_molecules_by_the_names_that_the_database_knows(
    tmp_path: Path, mark: str, head: str
) -> None:
    rows = [("Title", head, "Score"), ("ethanol", "CCO", "2"), ("ether", "COC", "1")]
    path = write(tmp_path / "a.csv", "".join(mark.join(row) + "\n" for row in rows))
    table = read_scored_table(path, "maccs", 0.5)
    assert table.names == ["ethanol", "ether"]
    assert (table.rows != fingerprints(["CCO", "COC"], "maccs")).nnz == 0
    assert table.probabilities == pytest.approx(posterior([2.0, 1.0], [2], 0.5))
    assert (table.read, table.unread) == (("smiles", "score"), ())


def test_fingerprints_and_probabilities_come_before_smiles_and_scores(tmp_path: Path) -> None:
    text = "id,smiles,score,probability,fingerprint\na,CCO,9,0.25,101\nb,CCN,1,0.75,110\n"
    table = read_scored_table(write(tmp_path / "a.csv", text))
    assert np.array_equal(table.rows, [[1, 0, 1], [1, 1, 0]])
    assert table.probabilities.tolist() == [0.25, 0.75]
    assert (table.read, table.unread) == (("fingerprint", "probability"), ("smiles", "score"))
    assert table.names == ["a", "b"]


def test_without_names_molecules_are_called_by_their_smiles(tmp_path: Path) -> None:
    table = read_scored_table(write(tmp_path / "a.csv", "score,fingerprint,smiles\n1,10,CCO\n"))
    assert table.names == ["CCO"]
    table = read_scored_table(write(tmp_path / "a.csv", "score,fingerprint\n1,10\n"))
    assert table.names == ["10"]


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("smiles,score,score", "columns 2 .* and 3 .* have one name"),
        ("smiles,probability,Probability", "columns 2 .* and 3 "),
        ("smiles,Smiles,score", "columns 1 .* and 2 "),
        ("fingerprint,smiles,smiles,score", "columns 2 .* and 3 "),
        ("fingerprint,fingerprint,score", "columns 1 .* and 2 "),
    ],
)
def test_a_header_that_can_be_read_in_two_ways_is_refused(
    tmp_path: Path, head: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_scored_table(write(tmp_path / "a.csv", f"{head}\n1,1,1,1\n"))


def test_columns_that_are_not_read_may_repeat(tmp_path: Path) -> None:
    text = "note,smiles,score,note\na,CCO,1,b\n"
    assert read_scored_table(write(tmp_path / "a.csv", text)).names == ["CCO"]


def test_a_row_that_cannot_be_used_is_refused_not_left_out(tmp_path: Path) -> None:
    text = "smiles;probability\nCCO;0.5\nnonsense;0.5\n"
    with pytest.raises(MoleculeError, match=r"line 3: SMILES 'nonsense'.*change the probabilities"):
        read_scored_table(write(tmp_path / "a.csv", text))


@pytest.mark.filterwarnings("error")
def test_scores_of_any_size_become_probabilities(tmp_path: Path) -> None:
    text = "fingerprint,score\n10,1e308\n01,-1e308\n11,1e308\n"
    table = read_scored_table(write(tmp_path / "a.csv", text))
    assert table.probabilities.tolist() == [0.5, 0.0, 0.5]
