from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mzseek.core.errors import CacheError
from mzseek.datasets.layout import JoinedColumns, TextColumn


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text()))
def test_strings_come_back(tmp_path: Path, values: list[str]) -> None:
    TextColumn.write(tmp_path, "column", values)
    column = TextColumn.open(tmp_path, "column")
    assert len(column) == len(values)
    assert list(column) == values
    if values:
        assert column[-1] == values[-1]
    with pytest.raises(IndexError):
        column[len(values)]


@given(st.lists(st.lists(st.text(), max_size=4), max_size=4))
def test_joined_columns_are_one(columns: list[list[str]]) -> None:
    joined, expected = JoinedColumns(columns), [text for each in columns for text in each]
    assert len(joined) == len(expected)
    assert list(joined) == expected == [joined[n] for n in range(len(joined))] == joined[:]
    for place in (len(expected), -len(expected) - 1):
        with pytest.raises(IndexError):
            joined[place]


@pytest.mark.parametrize("read", [list, lambda column: column[2]])
def test_what_is_no_text_is_told_with_its_place(read, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("mzseek.datasets.layout._AT_A_TIME", 2)
    TextColumn.write(tmp_path, "names", ["a", "b", "c", "d"])
    path = tmp_path / "names.data.npy"
    data = np.load(path)
    data[2] = 0xFF
    np.save(path, data)
    with pytest.raises(CacheError, match=r"names\.data\.npy: entry 2 is no text"):
        read(TextColumn.open(tmp_path, "names"))
