import contextlib
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mzseek.core.errors import CacheError
from mzseek.io.arrays import (
    AppendableArray,
    appendable_arrays,
    check_pointers,
    check_range,
    load_array,
    release_pages,
    save_array,
)

ARRAYS = [
    np.arange(7),
    np.zeros((0,), np.float32),
    np.ones((3, 4), np.float16),
    np.array([b"ab", b"c"], "S14"),
    np.arange(12).reshape(3, 4)[:, ::2],
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_what_was_saved_is_read_and_is_numpys_own_file(array, tmp_path: Path) -> None:
    save_array(tmp_path / "a.npy", array)
    expected = io.BytesIO()
    np.save(expected, array)
    assert (tmp_path / "a.npy").read_bytes() == expected.getvalue()
    found = load_array(tmp_path / "a.npy", array.dtype, array.shape, CacheError)
    assert found.tolist() == array.tolist()


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [(np.int32, (5,)), (np.float64, (5,)), (np.int64, (6,)), (np.int64, (5, 1)), (">i8", (5,))],
)
def test_another_type_or_length_is_refused_in_one_line(dtype, shape, tmp_path: Path) -> None:
    save_array(tmp_path / "a.npy", np.arange(5))
    with pytest.raises(CacheError) as caught:
        load_array(tmp_path / "a.npy", dtype, shape, CacheError, "make it again", "the array")
    assert str(caught.value).startswith("the array: holds int64 of length 5, expected ")
    assert str(caught.value).endswith("; make it again")
    load_array(tmp_path / "a.npy", np.int64, [None], CacheError)


def header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(80)


BAD = {
    "empty": b"",
    "text": b"hello",
    "an archive": b"PK\x03\x04" + bytes(100),
    "a pickle": header("{'descr': '|O', 'fortran_order': False, 'shape': (10,), }"),
    "huge": header("{'descr': '<i8', 'fortran_order': False, 'shape': (10000000000000,), }"),
    "overflowing": header(f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({10**40},), }}"),
    "negative": header("{'descr': '<i8', 'fortran_order': False, 'shape': (-1,), }"),
    "no tuple": header("{'descr': '<i8', 'fortran_order': False, 'shape': 10, }"),
    "unclosed": header("{'descr': '<i8', 'fortran_order': False, 'shape': (10"),
    "nested": header("(" * 9_000),
    "column by column": header("{'descr': '<i8', 'fortran_order': True, 'shape': (2, 5), }"),
}


@pytest.mark.parametrize("case", BAD)
def test_whatever_stands_in_its_place_is_one_line(case: str, tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(BAD[case])
    with pytest.raises(CacheError) as caught:
        load_array(path, np.int64, [None, None] if "column" in case else [10], CacheError)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@settings(max_examples=100, deadline=None)
@given(place=st.integers(0, 167), byte=st.integers(0, 255))
def test_any_changed_byte_is_refused_or_leaves_the_form(
    place: int, byte: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("a") / "a.npy"
    save_array(path, np.arange(5))
    data = bytearray(path.read_bytes())
    data[place] = byte
    path.write_bytes(data)
    with contextlib.suppress(CacheError):
        found = load_array(path, np.int64, [5], CacheError)
        assert (found.dtype, found.shape) == (np.dtype(np.int64), (5,))


@pytest.mark.parametrize("pointers", [[], [1, 2], [0, 3, 2, 5], [0, 4], [0, -1, 5], [0, 6]])
def test_pointers_that_do_not_rise_to_the_end_are_refused(pointers: list[int]) -> None:
    with pytest.raises(CacheError, match=r"a: is damaged \(row pointers that do not rise"):
        check_pointers(np.array(pointers, np.int64), 5, "a", CacheError)
    check_pointers(np.array([0, 0, 3, 3, 5]), 5, "a", CacheError)
    check_pointers(np.array([0]), 0, "a", CacheError)


@pytest.mark.parametrize(("values", "wrong"), [([0, -2], -2), ([3, 0], 3), ([-2, 9], -2)])
def test_numbers_out_of_range_are_named(values: list[int], wrong: int) -> None:
    with pytest.raises(CacheError, match=f"a: is damaged .it holds {wrong}, expected -1 to 2"):
        check_range(np.array(values), -1, 3, "a", CacheError)
    check_range(np.array([-1, 2]), -1, 3, "a", CacheError)
    check_range(np.array([], np.int32), 0, 0, "a", CacheError)


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="is Linux's own count")
def test_pages_that_were_read_are_let_go(tmp_path: Path) -> None:
    def of_files() -> int:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssFile"))

    save_array(tmp_path / "a.npy", np.ones(4_000_000))
    array = load_array(tmp_path / "a.npy", np.float64, [None], CacheError)
    before = of_files()
    assert array.sum() == 4_000_000
    assert of_files() > before + 20_000  # kB, of 31,250
    release_pages(array[10:20])
    assert of_files() < before + 10_000
    assert array.sum() == 4_000_000
    release_pages(np.ones(3))  # not of a file: nothing to do


def test_rows_are_those_that_were_added(tmp_path: Path) -> None:
    forms = [("flat.npy", np.uint16, ()), ("wide.npy", np.float64, (3,))]
    with appendable_arrays(tmp_path, forms) as (flat, wide):
        for start in range(0, 10_000, 2_500):
            flat.append(np.arange(start, start + 2_500))
        wide.append(np.ones((2, 3)))
        wide.append(np.zeros((0, 3)))
    AppendableArray(tmp_path / "none.npy", np.int8, (4,)).close()
    assert np.array_equal(np.load(tmp_path / "flat.npy"), np.arange(10_000))
    assert np.load(tmp_path / "flat.npy").dtype == np.uint16
    assert np.load(tmp_path / "wide.npy").shape == (2, 3)
    assert np.load(tmp_path / "none.npy").shape == (0, 4)


@pytest.mark.parametrize(
    "rows", [np.array([70_000]), np.array([-1]), np.array([0.5]), np.ones((2, 2), int)]
)
def test_what_does_not_fit_is_refused(tmp_path: Path, rows: np.ndarray) -> None:
    array = AppendableArray(tmp_path / "narrow.npy", np.uint16)
    with pytest.raises(ValueError, match="do not fit"):
        array.append(rows)
    array.close()
    assert np.load(tmp_path / "narrow.npy").shape == (0,)
