import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mzseek.core.errors import CacheError
from mzseek.datasets.layout import FIELDS, TextColumn, array_forms, is_for_training
from mzseek.datasets.prepared import Prepared
from mzseek.io.manifest import check_fields


def test_every_array_of_a_folder_has_its_form(small: Prepared) -> None:
    forms = array_forms(small.manifest)
    assert {f"{name}.npy" for name in forms} == {path.name for path in small.folder.glob("*.npy")}
    for name, form in forms.items():
        array = np.load(small.folder / f"{name}.npy")
        assert array.dtype == np.dtype(form.dtype)
        assert form.length in (None, len(array))
        if form.within and len(array):
            assert form.within[0] <= array.min() <= array.max() < form.within[1]
        if form.points_into is not None:
            assert array[-1] == form.points_into


def test_names_of_lists_may_hold_dots(small: Prepared) -> None:
    manifest = json.loads(json.dumps(small.manifest))
    manifest["candidates"]["a.b"] = manifest["candidates"]["mass"]
    forms = array_forms(manifest)
    assert "candidates.a.b.list_of" in forms
    assert forms["candidates.a.b.indptr"] == forms["candidates.mass.indptr"]


@pytest.mark.parametrize("negatives", [None, {}, {"by": 3}, "mass"])
def test_what_says_that_lists_are_negatives_is_checked(small: Prepared, negatives) -> None:
    manifest = json.loads(json.dumps(small.manifest))
    manifest["candidates"]["mass"]["negatives"] = negatives
    with pytest.raises(CacheError, match=r"candidates\.mass\.negatives"):
        check_fields(manifest, FIELDS, "manifest.json", CacheError)
    assert is_for_training(manifest["candidates"]["mass"])


def opened(folder: Path, *names: str) -> TextColumn:
    return TextColumn(*(
        (np.load(folder / f"{n}.ends.npy"), np.load(folder / f"{n}.data.npy"), n) for n in names
    ))  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.text(), max_size=4), max_size=4))
def test_strings_of_several_columns_come_back(tmp_path: Path, columns: list[list[str]]) -> None:
    for number, values in enumerate(columns):
        TextColumn.write(tmp_path, str(number), values)
    column = opened(tmp_path, *map(str, range(len(columns))))
    expected = [text for values in columns for text in values]
    assert len(column) == len(expected)
    assert list(column) == expected == [column[n] for n in range(len(column))] == column[:]
    assert [column[n - len(expected)] for n in range(len(expected))] == expected
    for index in (len(expected), -len(expected) - 1):
        with pytest.raises(IndexError):
            column[index]


@pytest.mark.parametrize("read", [list, lambda column: column[2]])
def test_what_is_no_text_is_reported_with_its_index(read, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("mzseek.datasets.layout._DECODED_AT_ONCE", 2)
    TextColumn.write(tmp_path, "names", ["a", "b", "c", "d"])
    path = tmp_path / "names.data.npy"
    data = np.load(path)
    data[2] = 0xFF
    np.save(path, data)
    with pytest.raises(CacheError, match=r"names\.data\.npy: entry 2 is no text"):
        read(opened(tmp_path, "names"))
