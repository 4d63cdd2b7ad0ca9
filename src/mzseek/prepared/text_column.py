"""A column of strings that can be memory-mapped: one run of bytes, and where each string ends."""

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import overload

import numpy as np
import numpy.typing as npt

from mzseek.errors import CacheError
from mzseek.files.arrays import check_pointers, load_array, save_array

_AT_A_TIME = 4_096


class _Texts(Sequence[str]):
    """Texts by place, from the end too, and slices of them; heirs say what stands at a place."""

    @abstractmethod
    def _at(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        """A text, or a list of some."""
        if isinstance(place, slice):
            return [self._at(number) for number in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        return self._at(place % len(self))


class TextColumn(_Texts):
    """Read-only strings on disk, decoded one at a time.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> TextColumn.write(folder, "names", ["caffeine", "", "quercétine"])
    >>> column = TextColumn.open(folder, "names")
    >>> len(column), column[0], column[2]
    (3, 'caffeine', 'quercétine')
    """

    def __init__(
        self, ends: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], where: object = "strings"
    ) -> None:
        pointers = np.concatenate([[0], ends])
        check_pointers(pointers, len(data), f"{where}.ends.npy", CacheError)
        self._ends = ends
        self._data = data
        self._where = where

    @staticmethod
    def write(folder: Path, name: str, values: Iterable[str]) -> None:
        """Write the column's two files."""
        encoded = [value.encode() for value in values]
        ends = np.cumsum([len(value) for value in encoded], dtype=np.int64)
        save_array(folder / f"{name}.ends.npy", ends)
        save_array(folder / f"{name}.data.npy", np.frombuffer(b"".join(encoded), dtype=np.uint8))

    @classmethod
    def open(cls, folder: Path, name: str) -> "TextColumn":
        """Open a column without reading it."""
        return cls(
            load_array(folder / f"{name}.ends.npy", np.int64, [None], CacheError),
            load_array(folder / f"{name}.data.npy", np.uint8, [None], CacheError),
            folder / name,
        )

    def __len__(self) -> int:
        return len(self._ends)

    def _at(self, place: int) -> str:
        start = int(self._ends[place - 1]) if place else 0
        return self._decoded(bytes(self._data[start : int(self._ends[place])]), place)

    def __iter__(self) -> Iterator[str]:
        # Some thousands at a time: a memory-mapped array is slow to be asked for one number.
        for first in range(0, len(self), _AT_A_TIME):
            ends = self._ends[first : first + _AT_A_TIME].tolist()
            start = int(self._ends[first - 1]) if first else 0
            data = self._data[start : ends[-1]].tobytes()
            for place, (begin, end) in enumerate(pairwise([start, *ends]), first):
                yield self._decoded(data[begin - start : end - start], place)

    def _decoded(self, data: bytes, place: int) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise CacheError(f"{self._where}.data.npy: entry {place:,} is no text") from error


class JoinedColumns(_Texts):
    """Several columns as one, numbered through.

    Examples
    --------
    >>> both = JoinedColumns([["caffeine"], [], ["aspirin", "quercetin"]])
    >>> len(both), both[1], both[-1], list(both)
    (3, 'aspirin', 'quercetin', ['caffeine', 'aspirin', 'quercetin'])
    """

    def __init__(self, columns: Sequence[Sequence[str]]) -> None:
        self._columns = columns
        self._begins = list(accumulate(map(len, columns), initial=0))

    def __len__(self) -> int:
        return self._begins[-1]

    def _at(self, place: int) -> str:
        column = bisect_right(self._begins, place) - 1
        return self._columns[column][place - self._begins[column]]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._columns)
