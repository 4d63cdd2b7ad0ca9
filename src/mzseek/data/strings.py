"""A column of strings that can be memory-mapped: one run of bytes, and where each string ends."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt


class StringColumn:
    """Read-only strings on disk, decoded one at a time.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> StringColumn.write(folder, "names", ["caffeine", "", "quercétine"])
    >>> column = StringColumn.open(folder, "names")
    >>> len(column), column[0], column[2]
    (3, 'caffeine', 'quercétine')
    """

    def __init__(self, ends: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> None:
        self._ends = ends
        self._data = data

    @staticmethod
    def write(folder: Path, name: str, values: Iterable[str]) -> None:
        """Write the column's two files."""
        encoded = [value.encode() for value in values]
        ends = np.cumsum([len(value) for value in encoded], dtype=np.int64)
        np.save(folder / f"{name}.ends.npy", ends)
        np.save(folder / f"{name}.data.npy", np.frombuffer(b"".join(encoded), dtype=np.uint8))

    @classmethod
    def open(cls, folder: Path, name: str) -> "StringColumn":
        """Open a column without reading it."""
        return cls(
            np.load(folder / f"{name}.ends.npy", mmap_mode="r"),
            np.load(folder / f"{name}.data.npy", mmap_mode="r"),
        )

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, place: int) -> str:
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        place %= len(self)
        start = int(self._ends[place - 1]) if place else 0
        return bytes(self._data[start : int(self._ends[place])]).decode()

    def __iter__(self) -> Iterator[str]:
        return (self[place] for place in range(len(self)))
