"""Arrays in .npy files: write, append, memory-map and check."""

import mmap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.text import shorten


class _Sink:
    """Hides a file's descriptor, by which numpy would write and lose the reason of a failure."""

    def __init__(self, file: Any) -> None:
        self.write = file.write


def save_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Write an array, byte for byte as `numpy.save` does."""
    with path.open("wb") as file:
        np.lib.format.write_array(_Sink(file), np.asanyarray(array), allow_pickle=False)


def load_array(
    path: Path,
    dtype: npt.DTypeLike,
    shape: Sequence[int | None],
    error: type[Exception],
    remedy: str = "",
    where: object = None,
) -> npt.NDArray[Any]:
    """Memory-map an array and check its type and shape (None: any length along that axis).

    Messages call it ``where`` (its path by default) and end with the ``remedy``, such as "build it
    again".

    Raises
    ------
    error
        It is missing, damaged, or of another type or length.
    """
    hint, where = f"; {remedy}" if remedy else "", where or path
    try:
        with warnings.catch_warnings():  # Python warns about the text of a damaged header
            warnings.simplefilter("ignore")
            # numpy.load would open archives and pickles, too.
            array: npt.NDArray[Any] = np.lib.format.open_memmap(str(path), mode="r")
    except Exception as damage:  # a damaged header makes numpy's parser raise nearly anything
        raise error(f"{where}: cannot be read ({shorten(str(damage), 100)}){hint}") from damage
    expected = tuple(shape)
    fits = array.ndim == len(expected) and all(
        n is None or length == n for length, n in zip(array.shape, expected, strict=True)
    )
    if array.dtype != np.dtype(dtype) or not fits or np.isfortran(array):
        lengths = " × ".join("any" if n is None else f"{n:,}" for n in expected)
        has = " × ".join(f"{n:,}" for n in array.shape)
        raise error(
            f"{where}: holds {array.dtype} of length {has}, expected {np.dtype(dtype)} of length "
            f"{lengths}{hint}"
        )
    return array


def release_pages(array: npt.NDArray[Any]) -> None:
    """Drop the pages of a memory-mapped array from this process, where the system supports it.

    They stay in the system's file cache.
    """
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def check_pointers(
    pointers: npt.NDArray[np.integer], length: int, where: object, error: type[Exception],
    remedy: str = "",
) -> None:  # fmt: skip
    """Check that row pointers begin at 0, never fall, and end at ``length``."""
    is_whole = len(pointers) > 0 and pointers[0] == 0 and pointers[-1] == length
    if not is_whole or bool((pointers[1:] < pointers[:-1]).any()):
        hint = f"; {remedy}" if remedy else ""
        raise error(
            f"{where}: is damaged (row pointers that do not rise from 0 to {length:,}){hint}"
        )


def check_range(
    values: npt.NDArray[Any], low: int, end: int, where: object, error: type[Exception],
    remedy: str = "",
) -> None:  # fmt: skip
    """Check that ``low <= values < end``."""
    outside = values[(values < low) | (values >= end)] if len(values) else values
    if len(outside):
        hint = f"; {remedy}" if remedy else ""
        reason = f"it holds {outside[0]}, expected {low} to {end - 1}"
        raise error(f"{where}: is damaged ({reason}){hint}")


class AppendableArray:
    """An ``.npy`` file that rows of shape ``row`` are appended to; `close` writes their number."""

    def __init__(self, path: Path, dtype: npt.DTypeLike, row: Sequence[int] = ()) -> None:
        self._dtype, self._row, self.length = np.dtype(dtype), tuple(row), 0
        self._file = path.open("wb")
        self._write_header()

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Add rows; values that the file's type cannot hold are refused."""
        narrow = rows.astype(self._dtype)
        if narrow.shape[1:] != self._row or not np.array_equal(narrow, rows):
            raise ValueError(f"rows of {rows.dtype} and shape {rows.shape} do not fit the file")
        self._file.write(narrow.tobytes())
        self.length += len(rows)

    def close(self) -> None:
        """Write the length into the header and close the file."""
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def _write_header(self) -> None:
        # numpy leaves room for the first axis to grow: both headers are equally long.
        descr = np.lib.format.dtype_to_descr(self._dtype)
        header = {"descr": descr, "fortran_order": False, "shape": (self.length, *self._row)}
        np.lib.format.write_array_header_1_0(self._file, header)


@contextmanager
def appendable_arrays(
    folder: Path, forms: Sequence[tuple[str, npt.DTypeLike, Sequence[int]]]
) -> Iterator[list[AppendableArray]]:
    """Open several arrays (name, type, shape of a row) in a folder; close them at the end.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with appendable_arrays(Path(folder), [("a.npy", np.int32, ())]) as (array,):
    ...         array.append(np.array([1, 2]))
    ...         array.append(np.array([3]))
    ...     np.load(Path(folder, "a.npy")).tolist()
    [1, 2, 3]
    """
    arrays = [AppendableArray(folder / name, dtype, row) for name, dtype, row in forms]
    try:
        yield arrays
    finally:
        for array in arrays:
            array.close()
