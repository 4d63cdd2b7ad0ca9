"""Manifests and checksums of folders that mzseek writes; overwrite protection.

Fields are checked by `check_fields`, not by pydantic, which would slow down the start of commands.
"""

import contextlib
import json
import math
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import DatasetError, InputError, WriteError
from mzseek.io.sources import content_hash, files_below
from mzseek.io.writing import atomic_file

T = TypeVar("T")

# Far more than any manifest has; a file of gigabytes in its place must not fill the memory.
MAX_MANIFEST = 256 * 1024 * 1024
_TYPE_NAMES = {
    str: "a text",
    int: "a whole number of 0 or more",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    type(None): "nothing",
}


def read_object(path: Path, error: type[Exception], remedy: str = "") -> dict[str, Any]:
    """Read the JSON object in a file; messages end with the ``remedy`` ("build it again").

    Raises
    ------
    error
        It is missing, damaged, nested beyond reason, or holds something else than an object.
    """
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= MAX_MANIFEST else b""
    except OSError as unreadable:
        reason = f"cannot be read ({unreadable.strerror})"
        reason = "is missing" if isinstance(unreadable, FileNotFoundError) else reason
        raise error(f"{path}: {reason}{_hint(remedy)}") from unreadable
    if size > MAX_MANIFEST:
        reason = f"has {size:,} bytes, expected at most {MAX_MANIFEST:,}"
        raise error(f"{path}: {reason}{_hint(remedy)}")
    return parse_object(data, path, error, remedy)


def _hint(remedy: str) -> str:
    return f"; {remedy}" if remedy else ""


def parse_object(
    data: bytes | str, where: object, error: type[Exception], remedy: str = ""
) -> dict[str, Any]:
    """Parse the JSON object in a text that messages call ``where``. As `read_object`."""
    try:
        value = json.loads(data.decode("utf-8") if isinstance(data, bytes) else data)
    except (ValueError, RecursionError) as damage:  # also numbers of thousands of digits
        reason = "nested too deeply" if isinstance(damage, RecursionError) else str(damage)
        raise error(f"{where}: is damaged ({reason[:100]}){_hint(remedy)}") from damage
    if not isinstance(value, dict):
        reason = f"holds a {type(value).__name__}, expected a JSON object"
        raise error(f"{where}: {reason}{_hint(remedy)}")
    return value


def check_fields(
    value: Any, expected: Any, where: object, error: type[Exception], remedy: str = ""
) -> None:
    """Check that parsed JSON has the fields that will be used, each of its type.

    ``expected`` is a type, a union of types, a dict or a list. A dict names the fields, ``...``
    standing for any name, and a name that ends in ``?`` need not be there; a list has one element,
    what all elements must be. Whole numbers must not be negative.

    Raises
    ------
    error
        A field is missing or of another type.

    Examples
    --------
    >>> check_fields({"counts": {"a": 1}}, {"counts": {...: int}}, "x.json", ValueError)
    >>> check_fields({"counts": {"a": "1"}}, {"counts": {...: int}}, "x.json", ValueError)
    Traceback (most recent call last):
    ValueError: x.json: counts.a is '1', expected a whole number of 0 or more
    """
    if mismatch := _mismatch(value, expected, ""):
        raise error(f"{where}: {mismatch}{_hint(remedy)}")


def check_finite(value: Any, where: object, error: type[Exception], remedy: str = "") -> None:
    """Refuse NaN, Infinity and 1e999, which are no JSON, but which Python reads.

    Examples
    --------
    >>> check_finite({"a": [1.0, float("nan")]}, "x.json", ValueError)
    Traceback (most recent call last):
    ValueError: x.json: holds nan, expected finite numbers
    """
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner:
        check_finite(item, where, error, remedy)
    if isinstance(value, float) and not math.isfinite(value):
        raise error(f"{where}: holds {value}, expected finite numbers{_hint(remedy)}")


def _mismatch(value: Any, expected: Any, name: str) -> str | None:
    """Describe the first field that is not as expected."""
    if isinstance(expected, dict) and isinstance(value, dict):
        pairs = list(expected.items())
        if ... in expected:
            pairs = [(key, expected[...]) for key in value]
            odd = next((key for key in value if not key.isprintable()), None)
            if odd is not None:  # a damaged byte makes a line break of `.npy`
                return f"has a field {odd[:40]!r}, expected a printable name"
        for key, inner in pairs:
            label = str(key).removesuffix("?")
            path = f"{name}.{label}".lstrip(".")
            if label not in value:
                if not str(key).endswith("?"):
                    return f"lacks {path!r}"
            elif mismatch := _mismatch(value[label], inner, path):
                return mismatch
        return None
    if isinstance(expected, list) and isinstance(value, list):
        mismatches = (_mismatch(item, expected[0], f"{name}[{n}]") for n, item in enumerate(value))
        return next(filter(None, mismatches), None)
    kinds = get_args(expected) if get_origin(expected) in (Union, UnionType) else (expected,)
    if any(_is(value, kind) for kind in kinds):
        return None
    words = [_TYPE_NAMES[kind if isinstance(kind, type) else type(kind)] for kind in kinds]
    return f"{name[:60]} is {repr(value)[:40]}, expected {' or '.join(words)}"


def _is(value: Any, kind: Any) -> bool:
    is_int = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    if kind is int:
        return is_int and value >= 0
    if kind is float:
        return is_int or isinstance(value, float)
    return isinstance(kind, type) and isinstance(value, kind)


_SETTLED = 2.0  # seconds after which a change shows in a file's time
_MAX_VERIFIED = 1_000  # files in the list of verified ones: the last
_State = list[int | str]  # size, mtime and ctime in ns, SHA-256
_lock = threading.Lock()


def changed_file(files: Mapping[Path, str], *, anew: bool = False) -> Path | None:
    """Return the first file whose content does not have the SHA-256 given for it.

    A file that was verified before, also by another process, is not read again while its inode,
    size and times are the same, unless ``anew``.

    Examples
    --------
    >>> import tempfile
    >>> from hashlib import sha256
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a")
    ...     _ = path.write_text("abc")
    ...     changed_file({path: sha256(b"abc").hexdigest()}) is None
    True
    """
    listed = _verified_list()
    with _lock:
        verified = {} if anew else dict(_verified(listed))
    states: dict[Path, tuple[str, _State]] = {}
    for path, sha256 in files.items():
        stat = path.stat()
        state: _State = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, sha256]
        states[path] = f"{stat.st_dev}:{stat.st_ino}", state
    unread = [path for path, (key, state) in states.items() if verified.get(key) != state]
    if not unread:
        return None
    with ThreadPoolExecutor() as pool:  # hashing releases the GIL
        hashes = dict(zip(unread, pool.map(content_hash, unread), strict=True))
    # A file that was just written may change once more without a change of its times.
    oldest = (time.time() - _SETTLED) * 1e9
    settled = {
        key: state
        for path, (key, state) in states.items()
        if hashes.get(path) == files[path] and int(state[2]) < oldest
    }
    if settled:
        with _lock:
            _verified(listed).update(settled)
            if listed is not None:  # of two processes at once, one may have to hash files again
                before = {k: v for k, v in _read_verified(listed).items() if k not in settled}
                last = list((before | settled).items())[-_MAX_VERIFIED:]
                with contextlib.suppress(OSError, WriteError), atomic_file(listed) as partial:
                    partial.write_text(json.dumps(dict(last), separators=(",", ":")), "utf-8")
    return next((path for path in unread if hashes[path] != files[path]), None)


@lru_cache
def _verified(listed: Path | None) -> dict[str, _State]:
    """Return what this process knows of verified files, by device and inode."""
    return _read_verified(listed) if listed is not None else {}


def _verified_list() -> Path | None:
    """Return the path of the list of verified files; None without a home."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or ".")
    if not cache.is_absolute():
        try:
            home = Path.home()
        except RuntimeError:
            return None
        if not home.is_dir():
            return None
        cache = home / ".cache"
    return cache / "mzseek" / "verified.json"


def _read_verified(path: Path) -> dict[str, _State]:
    try:
        listed: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return listed if isinstance(listed, dict) else {}


MANIFEST = "manifest.json"
RUN = "run.json"
_FILE_FIELDS = {...: {"bytes": int, "sha256": str}}

# What each kind of folder is used for, and what makes it, for messages about a wrong kind. Written
# out here, since the packages of other kinds are not loaded then.
_USES = {
    "prepared folder": "`mzseek train`, `bands`, `advise` and `negatives` take it",
    "molecule database": "`mzseek database` and `mzseek negatives --database` take it",
    "spectral library": "`mzseek library` takes it",
    "run folder": "`mzseek evaluate` and `mzseek report` take it",
    "model bundle": "`mzseek model info` shows what it is",
    "index of molecules": "`mzseek annotate` takes it beside its database",
    "data set": "`mzseek data check` takes it, and `mzseek prepare` makes a prepared folder of it",
}
_MAKERS = {
    "prepared folder": "`mzseek prepare`",
    "molecule database": "`mzseek database build`",
    "spectral library": "`mzseek library build`",
    "run folder": "`mzseek train`",
    "data set": "`mzseek data build`",
    "predictions": "`mzseek evaluate`",
    "fitted evidence": "`mzseek fit`",
    "model bundle": "`mzseek model build` or `mzseek model export`",
    "index of molecules": "`mzseek database index`",
}


@dataclass(frozen=True)
class Manifest:
    """Format of the manifest of one kind of folder.

    Attributes
    ----------
    kind : str
        What such a folder is called: "prepared folder".
    error : type of exception
        What is raised.
    again : str
        What to do about a damaged one, such as "build it again".
    fields : dict
        Fields that are read, as `check_fields` takes them.
    versions : tuple of int
        Versions of the format that can be read, the one that is written last; none where the kind
        has none.
    name : str
        Name of the file.
    has_files : bool
        Whether it lists the folder's files.
    """

    kind: str
    error: type[Exception]
    again: str = ""
    fields: Mapping[Any, Any] = field(default_factory=dict)
    versions: tuple[int, ...] = ()
    name: str = MANIFEST
    has_files: bool = True

    def read(self, folder: Path) -> dict[str, Any]:
        """Read a folder's manifest, checked for its kind, its version and its fields.

        Raises
        ------
        error
            There is none, it is damaged, of another kind or version, or lacks a field.
        """
        path = folder / self.name
        if not path.is_file():
            raise self.error(f"{folder}: {why_not(folder, self.kind)}")
        manifest = read_object(path, self.error, self.again)
        if manifest.get("kind") != self.kind:
            raise self.error(f"{folder}: {why_not(folder, self.kind)}")
        version = manifest.get("format_version")
        if self.versions and version not in self.versions:
            expected = " or ".join(map(str, self.versions))
            reason = f"written in format {repr(version)[:40]}, expected {expected}"
            raise self._refusal(folder, reason)
        fields = {**self.fields, "files": _FILE_FIELDS} if self.has_files else self.fields
        check_fields(manifest, fields, path, self.error, self.again)
        return manifest

    def write(self, folder: Path, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Write the manifest of a folder that is being made, and return it.

        The kind, the files with their checksums and (unless among the metadata) the last of
        `versions` are added.
        """
        manifest = self._complete(metadata)
        if self.has_files:
            names = sorted(path.name for path in folder.iterdir() if path.name != self.name)
            with ThreadPoolExecutor() as pool:
                sums = pool.map(lambda name: measured(folder / name), names)
                manifest["files"] = dict(zip(names, sums, strict=True))
        (folder / self.name).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        return manifest

    def replace(self, folder: Path, metadata: Mapping[str, Any]) -> None:
        """Replace the manifest of a folder in use atomically."""
        text = json.dumps(self._complete(metadata), indent=1) + "\n"
        with atomic_file(folder / self.name) as partial:
            partial.write_text(text, encoding="utf-8")

    def check_files(
        self,
        folder: Path,
        manifest: Mapping[str, Any],
        *,
        checksums: bool = False,
        names: Iterable[str] | None = None,
        anew: bool = False,
    ) -> None:
        """Check that a folder's files (those of ``names``, or all) are those of its manifest.

        They must be there and of the same size, and with ``checksums`` of the same content, see
        `changed_file`.
        """
        files: Mapping[str, Mapping[str, Any]] = manifest["files"]
        if names is not None:
            files = {name: files[name] for name in names}
        for name, listed in files.items():
            path = folder / name
            if name in ("", ".", "..") or path.name != name or not name.isprintable():
                raise self._refusal(folder, f"{name[:60]!r} is no name of a file")
            if not path.is_file():
                raise self._refusal(folder, f"{name} is missing")
            size = path.stat().st_size
            if size != listed["bytes"]:
                reason = f"{name} has {size:,} bytes, expected {listed['bytes']:,}"
                raise self._refusal(folder, reason)
        if checksums:
            sums = {folder / name: listed["sha256"] for name, listed in files.items()}
            if changed := changed_file(sums, anew=anew):
                raise self._refusal(folder, f"{changed.name} has changed")

    def _refusal(self, folder: Path, reason: str) -> Exception:
        return self.error(f"{folder}: {reason}{_hint(self.again)}")

    def _complete(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        needs_version = self.versions and "format_version" not in metadata
        version = {"format_version": self.versions[-1]} if needs_version else {}
        return {"kind": self.kind, **version, **metadata}


def kind_of(folder: Path) -> str | None:
    """Return the kind that a folder's manifest states, or None."""
    for name in (MANIFEST, RUN):
        with contextlib.suppress(DatasetError):
            kind = read_object(folder / name, DatasetError).get("kind")
            if isinstance(kind, str):
                return kind[:60] if kind.isprintable() else repr(kind[:60])
    return None


def why_not(folder: Path, expected: str) -> str:
    """Say why a folder is not of the kind expected, and what takes or makes which."""
    if not folder.exists():
        return f"is no {expected} (there is no such folder)"
    if not folder.is_dir():
        return f"is a file, expected a {expected} (a folder that {_MAKERS[expected]} makes)"
    kind = kind_of(folder)
    if kind is not None and kind != expected:
        use = f"; {_USES[kind]}" if kind in _USES else ""
        return f"is a {kind}, expected a {expected}{use}"
    name = RUN if expected == "run folder" else MANIFEST
    state = "does not say what it is" if (folder / name).exists() else "is missing"
    return f"is no {expected} ({name} {state}); {_MAKERS[expected]} makes one"


def measured(path: Path) -> dict[str, Any]:
    """Return size and SHA-256 of a file, as a manifest lists them."""
    return {"bytes": path.stat().st_size, "sha256": content_hash(path)}


BLOCK = 64  # rows
Sums = npt.NDArray[np.uint32]
Read = Callable[[int, int], Iterable[npt.NDArray[np.generic]]]


class BlockSums:
    """Checksums (CRC-32) of blocks of rows, each compared when a row of it is first read.

    ``read(first, end)`` returns the arrays of rows ``first`` to ``end``, the latter not included;
    ``rows`` is their number, and ``sums`` (uint32, one a block) are those of `block_sums`.

    Examples
    --------
    >>> values = np.arange(100.0)
    >>> def read(first, end):
    ...     return [values[first:end]]
    >>> sums = block_sums(read, 100)
    >>> values[70] = 0.5
    >>> checked = BlockSums(read, 100, sums)
    >>> checked.verify_rows(np.array([3, 60])), checked.verify_rows(np.array([3, 64]))
    (True, False)
    """

    def __init__(self, read: Read, rows: int, sums: Sums) -> None:
        self._read, self._rows, self._sums = read, rows, sums
        self._seen = np.zeros(len(sums), np.bool_)

    def verify_rows(self, rows: npt.NDArray[np.integer]) -> bool:
        """Whether the blocks of these rows are as they were written."""
        blocks = np.unique(np.asarray(rows, np.int64) // BLOCK)
        for block in blocks[~self._seen[blocks]].tolist():
            if _block_sum(self._read, self._rows, block) != self._sums[block]:
                return False
            self._seen[block] = True
        return True


def block_sums(read: Read, rows: int) -> Sums:
    """Return the checksums of all blocks; parameters are those of `BlockSums`."""
    blocks = range(-(-rows // BLOCK))
    return np.array([_block_sum(read, rows, block) for block in blocks], np.uint32)


def _block_sum(read: Read, rows: int, block: int) -> int:
    value = 0
    for array in read(block * BLOCK, min((block + 1) * BLOCK, rows)):
        value = zlib.crc32(np.ascontiguousarray(array).data, value)
    return value


class SourceGuard:
    """Files and folders with the ``hashes`` that they had when work on them began."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._states = {path: _stat(path) for path in paths}  # before their content is read
        self.hashes = {path: _read_source(content_hash, path) for path in self._states}

    def ensure_unchanged(self) -> None:
        """Raise an `InputError` if a source has changed since, or is gone.

        Content is read once more only where size, time or inode of a file differ.
        """
        for path, state in self._states.items():
            if _stat(path) != state and _read_source(content_hash, path) != self.hashes[path]:
                raise InputError(path, "has changed while it was read; run the command again")


def _stat(path: Path) -> list[tuple[str, int, int, int, int]]:
    def stat(path: Path) -> list[tuple[str, int, int, int, int]]:
        stats = [(str(f), f.stat()) for f in (files_below(path) if path.is_dir() else [path])]
        return [(name, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for name, s in stats]

    return _read_source(stat, path)


def _read_source(read: Callable[[Path], T], path: Path) -> T:
    try:
        return read(path)
    except FileNotFoundError as error:
        raise InputError(path, "no such file") from error
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror})") from error


def overlap(out: Path, sources: Iterable[Path]) -> str | None:
    """Say how an output, which need not exist, overlaps with files and folders that are read.

    Examples
    --------
    >>> overlap(Path("data/out"), [Path("data")])
    'lies in the source data'
    >>> overlap(Path("out"), [Path("data")])
    """
    target = out.resolve()
    for source in sources:
        read = source.resolve()
        if read == target or (out.exists() and source.exists() and out.samefile(source)):
            return "is read as well, and would be written over"
        if read.is_relative_to(target):
            return f"holds the source {source.name}"
        if target.is_relative_to(read):
            return f"lies in the source {source}"
    return None


def ensure_replaceable(
    out: Path,
    kind: str,
    sources: Iterable[Path],
    is_leftover: Callable[[str], bool] = lambda name: False,
) -> None:
    """Refuse to replace anything but an untouched folder of this kind that mzseek has made.

    ``is_leftover`` tells whether a file that the manifest does not list is what a killed process
    has left.

    Raises
    ------
    DatasetError
        ``out`` is a file, holds what mzseek did not write, holds one of the sources, or lies in
        one of them.
    """
    if not out.exists():
        return
    if not out.is_dir():
        raise DatasetError(f"{out}: is a file, expected a folder to make")
    if reason := overlap(out, sources):
        raise DatasetError(f"{out}: {reason}; name another --out")
    if out.is_mount():
        raise DatasetError(f"{out}: is a mount point and cannot be replaced; name a folder in it")
    present = {path.name for path in out.iterdir()}
    if not present:
        return
    try:
        manifest = read_object(out / MANIFEST, DatasetError) if MANIFEST in present else {}
    except DatasetError as error:
        raise DatasetError(
            f"{out}: exists and is no {kind} ({error}); name another --out"
        ) from None
    if manifest.get("kind") != kind:
        other = kind_of(out)
        hint = f" (it is a {other})" if other else ""
        raise DatasetError(f"{out}: exists and is no {kind}{hint}; name another --out")
    files = manifest.get("files")
    listed = {MANIFEST, *(files if isinstance(files, dict) else ())}
    for name in sorted(present - listed):
        if not name.startswith(f".{MANIFEST}.") and not is_leftover(name):
            raise DatasetError(f"{out}: holds {name}, which is not its own; name another --out")
