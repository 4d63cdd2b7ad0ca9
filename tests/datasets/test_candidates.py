import json
from pathlib import Path

import pytest

from mzseek.core.errors import DatasetError
from mzseek.datasets.files import read_candidates


def read(path: Path, text: str) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    path.write_text(text)
    rejects: list[tuple[str, str]] = []
    found = dict(read_candidates(path, lambda w, r: rejects.append((w, r))))
    return found, [(where.removeprefix(f"{path}: "), reason) for where, reason in rejects]


def test_lists_in_their_order(tmp_path: Path) -> None:
    lists = {"CCO": ["CCO", "COC"], "CCN": ["CCN"]}
    assert read(tmp_path / "a.json", json.dumps(lists)) == (lists, [])


def test_a_truth_that_is_listed_twice_keeps_its_first_list_and_says_so(tmp_path: Path) -> None:
    text = '{"CCO": ["CCO", "COC"], "C": ["C"], "CCO": ["CCO", "CCN"], "CCO": ["CCO", "COC"]}'
    found, rejects = read(tmp_path / "a.json", text)
    assert found == {"CCO": ["CCO", "COC"], "C": ["C"]}
    said = "is listed a second time, with {} candidates; the first list is used"
    assert rejects == [
        ("entry 3 (CCO)", said.format("other")),
        ("entry 4 (CCO)", said.format("the same")),
    ]


def test_bad_entries_leave_the_good_ones(tmp_path: Path) -> None:
    digits = "1" * 5000
    text = f'{{"a": "C", "b": [], "c": [1], "d": {digits}, "e": [nonsense], "CCO": ["CCO"]}}'
    found, rejects = read(tmp_path / "a.json", text)
    assert found == {"CCO": ["CCO"]}
    assert [where.split()[1] for where, _ in rejects] == ["1", "2", "3", "4", "5"]
    assert all("\n" not in reason and len(reason) < 150 for _, reason in rejects)


def test_an_array_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="holds an array, expected SMILES"):
        read(tmp_path / "a.json", '["CCO"]')
