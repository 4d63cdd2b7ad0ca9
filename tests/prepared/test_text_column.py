from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mzseek.prepared.text_column import TextColumn


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
