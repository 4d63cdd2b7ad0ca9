"""Arrays in .npy files: write, append, memory-map and check."""

import mmap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


class _Sink:
    """A file without a descriptor to show: numpy would write past it, and lose why that failed."""

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
    """A memory-mapped array that has the form it was written with.

    Parameters
    ----------
    path : Path
    dtype : numpy type
    shape : sequence of int or None
        Lengths along its axes; None where any will do.
    error : type of exception
        What is raised, in the words of the room that the file belongs to.
    remedy : str
        What to do about it, such as "build it again".
    where : object, optional
        What messages call it; its path by default.

    Raises
    ------
    error
        It is missing, damaged, or of another type or length.
    """
    hint, where = f"; {remedy}" if remedy else "", where or path
    try:
        with warnings.catch_warnings():  # of Python's, about what stands in a damaged header
            warnings.simplefilter("ignore")
            # Not numpy.load, which opens archives and pickles, too.
            array: npt.NDArray[Any] = np.lib.format.open_memmap(str(path), mode="r")
    except Exception as damage:  # a damaged header makes numpy's parser raise nearly anything
        reason = " ".join(str(damage).split())[:100]
        raise error(f"{where}: cannot be read ({reason}){hint}") from damage
    expected = tuple(shape)
    fits = array.ndim == len(expected) and all(
        wanted is None or length == wanted
        for length, wanted in zip(array.shape, expected, strict=True)
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
    """Let go of the pages of a memory-mapped array that were read.

    They stay where the system keeps what it has read of files, and no longer count as this
    process's. Where the system has no word for it, nothing is done.
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
    """Make sure that row pointers begin at 0, never fall, and end where their data end."""
    good = len(pointers) > 0 and pointers[0] == 0 and pointers[-1] == length
    if not good or bool((pointers[1:] < pointers[:-1]).any()):
        hint = f"; {remedy}" if remedy else ""
        raise error(
            f"{where}: is damaged (row pointers that do not rise from 0 to {length:,}){hint}"
        )


def check_range(
    values: npt.NDArray[Any], low: int, end: int, where: object, error: type[Exception],
    remedy: str = "",
) -> None:  # fmt: skip
    """Make sure that numbers lie between ``low`` and ``end``, the latter not included."""
    if not len(values):
        return
    least, most = values.min(), values.max()
    if least < low or most >= end:
        wrong = least if least < low else most
        hint = f"; {remedy}" if remedy else ""
        raise error(f"{where}: is damaged (it holds {wrong}, expected {low} to {end - 1}){hint}")


class AppendableArray:
    """An ``.npy`` file that rows are appended to; `close` says how many there are.

    Parameters
    ----------
    path : Path
    dtype : numpy type
    row : sequence of int
        Shape of a row; none where rows are single values.
    """

    def __init__(self, path: Path, dtype: npt.DTypeLike, row: Sequence[int] = ()) -> None:
        self._dtype, self._row, self.length = np.dtype(dtype), tuple(row), 0
        self._file = path.open("wb")
        self._write_header()

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Add rows, which must hold nothing that the type of the file cannot."""
        narrow = rows.astype(self._dtype)
        if narrow.shape[1:] != self._row or not np.array_equal(narrow, rows):
            raise ValueError(f"rows of {rows.dtype} and shape {rows.shape} do not fit the file")
        self._file.write(narrow.tobytes())
        self.length += len(rows)

    def close(self) -> None:
        """Write down the length, and end."""
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def _write_header(self) -> None:
        # numpy leaves room for the first axis to grow: both headers are equally long.
        shape = (self.length, *self._row)
        descr = np.lib.format.dtype_to_descr(self._dtype)
        header = {"descr": descr, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)


@contextmanager
def appendable_arrays(
    folder: Path, forms: Sequence[tuple[str, npt.DTypeLike, Sequence[int]]]
) -> Iterator[list[AppendableArray]]:
    """Several of them, named in a folder, closed at the end.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as made:
    ...     with appendable_arrays(Path(made), [("a.npy", np.int32, ())]) as (array,):
    ...         array.append(np.array([1, 2]))
    ...         array.append(np.array([3]))
    ...     np.load(Path(made, "a.npy")).tolist()
    [1, 2, 3]
    """
    made = [AppendableArray(folder / name, dtype, row) for name, dtype, row in forms]
    try:
        yield made
    finally:
        for array in made:
            array.close()
