"""A column of strings that can be memory-mapped: one run of bytes, and where each string ends."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mzseek.errors import CacheError
from mzseek.files.arrays import check_pointers, load_array, save_array


class TextColumn:
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

    def __getitem__(self, place: int) -> str:
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        place %= len(self)
        start = int(self._ends[place - 1]) if place else 0
        try:
            return bytes(self._data[start : int(self._ends[place])]).decode()
        except UnicodeDecodeError as error:
            raise CacheError(f"{self._where}.data.npy: entry {place:,} is no text") from error

    def __iter__(self) -> Iterator[str]:
        return (self[place] for place in range(len(self)))
