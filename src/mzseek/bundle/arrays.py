"""Many arrays in one file, packed without loss.

Not Parquet or safetensors: for the shipped arrays, Parquet (zstd, delta or byte-stream-split) takes
1.5 times the space of this format, and plain zstd 1.3 times.

Whole numbers are stored as differences where that is shorter, in as few bytes as they need, all
first bytes together, then all second bytes; zstandard does the rest. Numbers such as m/z that are
whole in some unit (a hundred-thousandth, say) are stored as whole numbers of it. An array that is
there already is stored once. The same arrays give the same bytes.
"""

import json
import math
from collections.abc import Iterator, Mapping
from copy import copy
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import zstandard

from mzseek.core.errors import BundleError
from mzseek.io import StrPath
from mzseek.io.manifest import check_fields, parse_object

Array = npt.NDArray[Any]
MZ_UNITS, HEIGHT_UNITS = 100_000, 10_000  # parts of one m/z, and of the base peak
_MAGIC = b"mzseek arrays 1\n"
_HEAD = len(_MAGIC) + 8
_LEVEL = 19
_UNITS = (1, HEIGHT_UNITS, MZ_UNITS, 1_000_000)
_TYPES = frozenset("biufS")
_EXACT = 2.0**52
_MAX_BYTES = 1 << 31  # bytes of an array: far more than any that is written
_ENTRY = dict.fromkeys(("start", "bytes", "width", "units"), int) | {
    "dtype": str, "shape": [int], "delta": bool,
}  # fmt: skip


def write_arrays(path: StrPath, arrays: Mapping[str, Array]) -> None:
    """Write arrays by name; numbers and bytes of fixed length only."""
    entries, stored = dict[str, dict[str, Any]](), dict[str, dict[str, Any]]()
    frames: list[bytes] = []
    for name, original in arrays.items():
        array = np.ascontiguousarray(original)
        if array.dtype.kind not in _TYPES:
            raise BundleError(f"{name}: holds {array.dtype}, which is not written")
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        shape = list(np.shape(original))
        content = sha256(f"{array.dtype.str} {shape} ".encode() + array.tobytes()).hexdigest()
        if content not in stored:
            entry, frame = _packed(array)
            start = sum(map(len, frames))
            entry |= {"dtype": array.dtype.str, "shape": shape, "start": start, "bytes": len(frame)}
            frames.append(frame)
            stored[content] = entry
        entries[name] = stored[content]
    header = json.dumps(entries, separators=(",", ":")).encode()
    with Path(path).open("wb") as file:
        file.write(_MAGIC + len(header).to_bytes(8, "little") + header)
        for frame in frames:
            file.write(frame)


class Arrays(Mapping[str, Array]):
    """The arrays of a file that `write_arrays` wrote, each unpacked on first use, and kept.

    Raises
    ------
    BundleError
        It is no such file, or cut short.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._data = memoryview(path.read_bytes())
        except OSError as error:
            raise BundleError(f"{path}: cannot be read ({error.strerror})") from error
        if bytes(self._data[: len(_MAGIC)]) != _MAGIC:
            raise BundleError(f"{path}: is no file of arrays, or of a newer version of mzseek")
        length = int.from_bytes(self._data[len(_MAGIC) : _HEAD], "little")
        self._first = _HEAD + length
        header = parse_object(bytes(self._data[_HEAD : self._first]), path, BundleError)
        check_fields(header, {...: _ENTRY}, path, BundleError)
        self._entries: dict[str, dict[str, Any]] = header
        self._opened: dict[str, Array] = {}
        self._prefix = ""

    def under(self, prefix: str) -> "Arrays":
        """Return the arrays whose names begin with a prefix, by the rest of their names."""
        below = copy(self)
        below._prefix = self._prefix + prefix
        return below

    def __getitem__(self, name: str) -> Array:
        entry = self._entries[self._prefix + name]
        form = json.dumps(entry, sort_keys=True)  # arrays that are stored once are unpacked once
        if form not in self._opened:
            self._opened[form] = self._unpacked(self._prefix + name, entry)
        return self._opened[form]

    def __iter__(self) -> Iterator[str]:
        start = len(self._prefix)
        return (name[start:] for name in self._entries if name.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _unpacked(self, name: str, entry: Mapping[str, Any]) -> Array:
        start = self._first + entry["start"]
        frame = self._data[start : start + entry["bytes"]]
        try:
            dtype = np.dtype(entry["dtype"])
            if dtype.kind not in _TYPES:
                raise ValueError(f"type {dtype}")
            size = math.prod(entry["shape"])
            length = size * (entry["width"] or dtype.itemsize)
            # In memory a whole number takes eight bytes, whatever it takes on disk.
            if size * max(8, dtype.itemsize) > _MAX_BYTES or entry["width"] > 8:
                raise ValueError("it is too large")
            if len(frame) != entry["bytes"] or zstandard.frame_content_size(frame) != length:
                raise ValueError("lengths that do not fit")
            if entry["units"] not in _UNITS:
                raise ValueError(f"units of {entry['units']}, expected one of {_UNITS}")
            plain = zstandard.ZstdDecompressor().decompress(frame, max_output_size=length)
            if len(plain) != length:
                raise ValueError("lengths that do not fit")
            values = _joined(plain, size, entry) if entry["width"] else np.frombuffer(plain, dtype)
            return values.astype(dtype, copy=False).reshape(entry["shape"])
        except (ValueError, TypeError, zstandard.ZstdError) as error:
            reason = " ".join(str(error).split())[:100]
            raise BundleError(f"{self._path}: {name} is damaged ({reason})") from error


def _packed(array: Array) -> tuple[dict[str, Any], bytes]:
    """Return the shortest form of an array, and what is needed to read it."""
    plain = {"width": 0, "delta": False, "units": 1}
    forms = [(plain, array.tobytes())]
    whole = _whole(array.reshape(-1))
    if whole is not None:
        values, units = whole
        for delta in (False, True):
            width, data = _split(np.diff(values, prepend=0) if delta else values)
            forms.append(({"width": width, "delta": delta, "units": units}, data))
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    packed = [(entry, compressor.compress(data)) for entry, data in forms[1:] or forms]
    return min(packed, key=lambda form: len(form[1]))


def _whole(array: Array) -> tuple[npt.NDArray[np.int64], int] | None:
    """An array as whole numbers of a unit, from which it comes back bit by bit; None if none."""
    if array.dtype.kind in "biu":
        if array.dtype.itemsize == 8 and len(array) and np.abs(array).max() >= _EXACT:
            return None
        return array.astype(np.int64), 1
    if array.dtype.kind != "f" or not np.isfinite(array).all():
        return None
    for units in _UNITS:
        with np.errstate(over="ignore"):
            scaled = np.rint(array.astype(np.float64) * units)
        if len(scaled) and np.abs(scaled).max() >= _EXACT:
            continue
        values = scaled.astype(np.int64)
        if (values / units).astype(array.dtype).tobytes() == array.tobytes():  # also signs of 0
            return values, units
    return None


def _split(values: npt.NDArray[np.int64]) -> tuple[int, bytes]:
    """Whole numbers in as few bytes as they need: all lowest bytes first, then the next."""
    signless = ((values << 1) ^ (values >> 63)).astype(np.uint64)  # small ones stay small
    largest = int(signless.max()) if len(signless) else 0
    width = max((largest.bit_length() + 7) // 8, 1)
    planes = signless.view(np.uint8).reshape(-1, 8)[:, :width]
    return width, np.ascontiguousarray(planes.T).tobytes()


def _joined(plain: bytes, size: int, entry: Mapping[str, Any]) -> Array:
    """Join what `_split` has taken apart, in units."""
    planes = np.frombuffer(plain, np.uint8).reshape(entry["width"], size)
    wide = np.zeros((size, 8), np.uint8)
    wide[:, : entry["width"]] = planes.T
    signless = wide.view("<u8").reshape(size)
    values = (signless >> np.uint64(1)).astype(np.int64) ^ -(signless & np.uint64(1)).astype(
        np.int64
    )
    if entry["delta"]:
        values = np.cumsum(values)
    return values / entry["units"] if entry["units"] != 1 else values
