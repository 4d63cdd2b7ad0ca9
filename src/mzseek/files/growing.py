"""Arrays that are written a part at a time, for what does not fit into memory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


class GrowingArray:
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
def growing_arrays(
    folder: Path, forms: Sequence[tuple[str, npt.DTypeLike, Sequence[int]]]
) -> Iterator[list[GrowingArray]]:
    """Several of them, named in a folder, closed at the end.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as made:
    ...     with growing_arrays(Path(made), [("a.npy", np.int32, ())]) as (array,):
    ...         array.append(np.array([1, 2]))
    ...         array.append(np.array([3]))
    ...     np.load(Path(made, "a.npy")).tolist()
    [1, 2, 3]
    """
    made = [GrowingArray(folder / name, dtype, row) for name, dtype, row in forms]
    try:
        yield made
    finally:
        for array in made:
            array.close()
