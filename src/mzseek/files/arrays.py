"""Arrays in ``.npy`` files: written with the disk's own words, read with their form checked."""

import mmap
import warnings
from collections.abc import Sequence
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


def let_go(array: npt.NDArray[Any]) -> None:
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
