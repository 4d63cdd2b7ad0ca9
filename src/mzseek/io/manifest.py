"""Manifests and checksums of folders that mzseek writes; overwrite protection."""

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
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import DatasetError, InputError, WriteError
from mzseek.io.sources import content_hash, files_below
from mzseek.io.writing import atomic_file

# Far more than any manifest; a file of gigabytes in its place must not fill the memory.
MOST_BYTES = 256 * 1024 * 1024
_WORDS = {
    str: "a text",
    int: "a whole number of 0 or more",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    type(None): "nothing",
}


def read_object(path: Path, error: type[Exception], remedy: str = "") -> dict[str, Any]:
    """The JSON object in a file.

    Parameters
    ----------
    path : Path
    error : type of exception
        What is raised, in the words of the room that the file belongs to.
    remedy : str
        What to do about it, such as "build it again".

    Raises
    ------
    error
        It is missing, damaged, nested beyond reason, or holds something else than an object.
    """
    hint = f"; {remedy}" if remedy else ""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise error(f"{path}: has {size:,} bytes, expected at most {MOST_BYTES:,}{hint}")
        data = path.read_bytes()
    except FileNotFoundError as missing:
        raise error(f"{path}: is missing{hint}") from missing
    except OSError as unreadable:
        raise error(f"{path}: cannot be read ({unreadable.strerror}){hint}") from unreadable
    return parse_object(data, path, error, remedy)


def parse_object(
    data: bytes | str, where: object, error: type[Exception], remedy: str = ""
) -> dict[str, Any]:
    """The JSON object in a text; ``where`` names it in messages. As `read_object`."""
    hint = f"; {remedy}" if remedy else ""
    try:
        value = json.loads(data.decode("utf-8") if isinstance(data, bytes) else data)
    except (ValueError, RecursionError) as damage:  # also numbers of thousands of digits
        reason = "nested too deeply" if isinstance(damage, RecursionError) else str(damage)
        raise error(f"{where}: is damaged ({reason[:100]}){hint}") from damage
    if not isinstance(value, dict):
        raise error(f"{where}: holds a {type(value).__name__}, expected a JSON object{hint}")
    return value


def check_fields(
    value: Any, expected: Any, where: object, error: type[Exception], remedy: str = ""
) -> None:
    """Make sure that what was read has the fields that will be used, each of its type.

    Parameters
    ----------
    value : any
        What the JSON held.
    expected : type, union of types, dict or list
        A dict names the fields, ``...`` standing for any name, and a name that ends in ``?`` need
        not be there; a list has one element, what all elements must be. Whole numbers must not be
        negative.
    where, error, remedy
        As in `read_object`.

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
    fault = _fault(value, expected, "")
    if fault:
        raise error(f"{where}: {fault}{f'; {remedy}' if remedy else ''}")


def check_finite(value: Any, where: object, error: type[Exception], remedy: str = "") -> None:
    """Refuse what JSON has no word for, and Python reads all the same: NaN, Infinity, 1e999.

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
        hint = f"; {remedy}" if remedy else ""
        raise error(f"{where}: holds {value}, expected finite numbers{hint}")


def _fault(value: Any, expected: Any, name: str) -> str | None:
    """The first field that is not as expected, in words."""
    if isinstance(expected, dict) and isinstance(value, dict):
        pairs = list(expected.items())
        if ... in expected:
            pairs = [(key, expected[...]) for key in value]
            odd = next((key for key in value if not key.isprintable()), None)
            if odd is not None:  # a damaged byte makes a line break of `.npy`
                return f"has a field {odd[:40]!r}, expected a name that can be shown"
        for key, inner in pairs:
            field = str(key).removesuffix("?")
            if field not in value:
                if not str(key).endswith("?"):
                    return f"lacks {f'{name}.{field}'.lstrip('.')!r}"
            elif fault := _fault(value[field], inner, f"{name}.{field}".lstrip(".")):
                return fault
        return None
    if isinstance(expected, list) and isinstance(value, list):
        faults = (_fault(item, expected[0], f"{name}[{n}]") for n, item in enumerate(value))
        return next((fault for fault in faults if fault), None)
    kinds = get_args(expected) if get_origin(expected) in (Union, UnionType) else (expected,)
    if any(_is(value, kind) for kind in kinds):
        return None
    words = [_WORDS[kind if isinstance(kind, type) else type(kind)] for kind in kinds]
    return f"{name[:60]} is {repr(value)[:40]}, expected {' or '.join(words)}"


def _is(value: Any, kind: Any) -> bool:
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    if kind is float:
        return isinstance(value, float) or (
            isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
        )
    return isinstance(kind, type) and isinstance(value, kind)


_SETTLED = 2.0  # seconds after which a change shows in a file's time
_MOST = 1_000  # files that are listed: the last ones
_State = list[int | str]  # size, mtime and ctime in ns, SHA-256
_known: dict[str, _State] = {}  # by device and inode
_read: set[Path] = set()  # lists that this process has read
_lock = threading.Lock()


def changed_file(files: Mapping[Path, str], *, anew: bool = False) -> Path | None:
    """Return the first of some files whose content has not the SHA-256 it should have.

    Parameters
    ----------
    files : mapping of Path to str
        SHA-256 by path.
    anew : bool
        Read every file, also those that were found as written before.

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
    with _lock:
        _read_list()
        known = {} if anew else dict(_known)
    states = {path: _state(path, sha256) for path, sha256 in files.items()}
    left = [path for path, (key, state) in states.items() if known.get(key) != state]
    if not left:
        return None
    with ThreadPoolExecutor() as pool:  # hashing lets go of Python's lock
        same = dict(zip(left, pool.map(content_hash, left), strict=True))
    found = {path: states[path] for path in left if same[path] == files[path]}
    # A file that was just written may change once more without a change of its times.
    oldest = (time.time() - _SETTLED) * 1e9
    settled = {key: state for key, state in found.values() if int(state[2]) < oldest}
    if settled:
        with _lock:
            _known.update(settled)
            _write_list(settled)
    return next((path for path in left if path not in found), None)


def _state(path: Path, sha256: str) -> tuple[str, _State]:
    facts = path.stat()
    state: _State = [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, sha256]
    return f"{facts.st_dev}:{facts.st_ino}", state


def _list() -> Path | None:
    """Where the list is kept; None without a home."""
    named = Path(os.environ.get("XDG_CACHE_HOME") or ".")
    if named.is_absolute():
        return named / "mzseek" / "verified.json"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return home / ".cache" / "mzseek" / "verified.json" if home.is_dir() else None


def _read_list() -> None:
    """Take in what other processes have found, once."""
    path = _list()
    if path is not None and path not in _read:
        _read.add(path)
        _known.update(_listed(path))


def _listed(path: Path) -> dict[str, _State]:
    try:
        found: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _write_list(more: Mapping[str, _State]) -> None:
    """Add files to the list; of two processes at once, one may have to read its files again."""
    path = _list()
    if path is None:
        return
    before = {key: state for key, state in _listed(path).items() if key not in more}
    kept = list((before | dict(more)).items())[-_MOST:]
    with contextlib.suppress(OSError, WriteError), atomic_file(path) as partial:
        partial.write_text(json.dumps(dict(kept), separators=(",", ":")), encoding="utf-8")


MANIFEST = "manifest.json"
RUN = "run.json"
_FILE_FACTS = {...: {"bytes": int, "sha256": str}}

# What can be done with each kind, for whoever has named it in the place of another, and what makes
# it. Written out here: who meets a folder of another kind has not loaded the room that it is of.
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
    """What the manifest of one kind of folder holds.

    Attributes
    ----------
    kind : str
        What such a folder is called: "prepared folder".
    error : type of exception
        What is raised, in the words of the room that the folder belongs to.
    again : str
        What to do about a damaged one, such as "build it again".
    fields : dict
        What is read of it, as `mzseek.io.manifest.check_fields` takes it.
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
        """What a folder's manifest says, checked for its kind, its version and its fields.

        Raises
        ------
        error
            There is none, it is damaged, of another kind or version, or lacks a field.
        """
        path = folder / self.name
        if not path.is_file():
            raise self.error(f"{folder}: {why_not(folder, self.kind)}")
        facts = read_object(path, self.error, self.again)
        if facts.get("kind") != self.kind:
            raise self.error(f"{folder}: {why_not(folder, self.kind)}")
        version = facts.get("format_version")
        if self.versions and version not in self.versions:
            expected = " or ".join(map(str, self.versions))
            raise self.error(
                f"{folder}: written in format {repr(version)[:40]}, expected {expected}{self._hint}"
            )
        fields = {**self.fields, "files": _FILE_FACTS} if self.has_files else self.fields
        check_fields(facts, fields, path, self.error, self.again)
        return facts

    def write(self, folder: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Sign a folder that is being made: what it is, the facts, and the files that it holds.

        Parameters
        ----------
        folder : Path
        facts : mapping
            All but the kind and the files; the version is the last of `versions` unless it is
            among them.

        Returns
        -------
        dict
            What was written.
        """
        signed = self._signed(facts)
        if self.has_files:
            names = sorted(path.name for path in folder.iterdir() if path.name != self.name)
            signed["files"] = _measured(folder, names)
        (folder / self.name).write_text(_text(signed), encoding="utf-8")
        return signed

    def replace(self, folder: Path, facts: Mapping[str, Any]) -> None:
        """Write the manifest of a folder in use anew, whole or not at all."""
        with atomic_file(folder / self.name) as partial:
            partial.write_text(_text(self._signed(facts)), encoding="utf-8")

    def check_files(
        self,
        folder: Path,
        facts: Mapping[str, Any],
        *,
        checksums: bool = False,
        names: Iterable[str] | None = None,
        anew: bool = False,
    ) -> None:
        """Make sure that a folder's files are those of its manifest: there, as long, or as written.

        Parameters
        ----------
        folder : Path
        facts : mapping
            What `read` returned.
        checksums : bool
            Compare the content of every file, too; once, as long as its size, its inode and its
            times stay what they were (`mzseek.io.manifest`).
        names : iterable of str, optional
            Files to look at; all by default.
        anew : bool
            Read every file, also those that were found as written before.
        """
        files: Mapping[str, Mapping[str, Any]] = facts["files"]
        if names is not None:
            files = {name: files[name] for name in names}
        for name, listed in files.items():
            path = folder / name
            if name in ("", ".", "..") or path.name != name or not name.isprintable():
                raise self.error(f"{folder}: {name[:60]!r} is no name of a file{self._hint}")
            if not path.is_file():
                raise self.error(f"{folder}: {name} is missing{self._hint}")
            size = path.stat().st_size
            if size != listed["bytes"]:
                raise self.error(
                    f"{folder}: {name} has {size:,} bytes, expected {listed['bytes']:,}{self._hint}"
                )
        if not checksums:
            return
        sums = {folder / name: listed["sha256"] for name, listed in files.items()}
        if changed := changed_file(sums, anew=anew):
            raise self.error(f"{folder}: {changed.name} has changed{self._hint}")

    @property
    def _hint(self) -> str:
        return f"; {self.again}" if self.again else ""

    def _signed(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        version = {"format_version": self.versions[-1]} if self.versions else {}
        if "format_version" in facts:
            version = {}
        return {"kind": self.kind, **version, **facts}


def kind_of(folder: Path) -> str | None:
    """What a folder of mzseek's says it is, or None."""
    for name in (MANIFEST, RUN):
        kind = _read_manifest(folder, name).get("kind")
        if isinstance(kind, str):
            return kind[:60] if kind.isprintable() else repr(kind[:60])
    return None


def why_not(folder: Path, expected: str) -> str:
    """In words, why a folder is not of the kind expected, and what takes or makes which.

    Parameters
    ----------
    folder : Path
    expected : str
        A kind, such as "prepared folder".
    """
    if not folder.exists():
        return f"is no {expected} (there is no such folder)"
    if not folder.is_dir():
        return f"is a file, expected a {expected} (a folder that {_MAKERS[expected]} makes)"
    kind = kind_of(folder)
    if kind is not None and kind != expected:
        use = f"; {_USES[kind]}" if kind in _USES else ""
        return f"is a {kind}, expected a {expected}{use}"
    own = RUN if expected == "run folder" else MANIFEST
    state = "does not say what it is" if (folder / own).exists() else "is missing"
    return f"is no {expected} ({own} {state}); {_MAKERS[expected]} makes one"


def measured(path: Path) -> dict[str, Any]:
    """Size and SHA-256 of a file, as a manifest lists them."""
    return {"bytes": path.stat().st_size, "sha256": content_hash(path)}


def _measured(folder: Path, names: list[str]) -> dict[str, Any]:
    with ThreadPoolExecutor() as pool:
        facts = pool.map(lambda name: measured(folder / name), names)
        return dict(zip(names, facts, strict=True))


def _text(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, indent=1) + "\n"


def _read_manifest(folder: Path, name: str) -> dict[str, Any]:
    try:
        return read_object(folder / name, DatasetError)
    except DatasetError:
        return {}


BLOCK = 64  # rows
Sums = npt.NDArray[np.uint32]
Read = Callable[[int, int], Iterable[npt.NDArray[np.generic]]]


class BlockSums:
    """Checksums (CRC-32) of blocks of rows, each compared when a row of it is first read.

    Parameters
    ----------
    read : callable of (int, int)
        Returns the arrays of rows from one to another, the latter not included.
    rows : int
        How many there are.
    sums : uint32 array, shape (blocks,)
        As `block_sums` has made them.

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
            if _sum(self._read, self._rows, block) != self._sums[block]:
                return False
            self._seen[block] = True
        return True


def block_sums(read: Read, rows: int) -> Sums:
    """Checksums of all blocks; parameters are those of `BlockSums`."""
    return np.array([_sum(read, rows, block) for block in range(-(-rows // BLOCK))], np.uint32)


def _sum(read: Read, rows: int, block: int) -> int:
    value = 0
    for array in read(block * BLOCK, min((block + 1) * BLOCK, rows)):
        value = zlib.crc32(np.ascontiguousarray(array).data, value)
    return value


_Stamp = tuple[tuple[str, int, int, int, int], ...]


class SourceGuard:
    """Files and folders, with the hashes that they had when work on them began.

    Parameters
    ----------
    paths : iterable of Path

    Attributes
    ----------
    hashes : dict of Path to str
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._stamps = {path: _stamp(path) for path in paths}  # before their content is read
        self.hashes = {path: _hash(path) for path in self._stamps}

    def ensure_unchanged(self) -> None:
        """Refuse what was made of sources that have changed since: it would be of neither.

        Content is read once more only where size, time or place of a file say that it may differ.

        Raises
        ------
        InputError
            One has changed, or is gone.
        """
        for path, stamp in self._stamps.items():
            if _stamp(path) != stamp and _hash(path) != self.hashes[path]:
                raise InputError(path, "has changed while it was read; run the command again")


def _stamp(path: Path) -> _Stamp:
    try:
        return tuple(
            (str(file), facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
            for file in (files_below(path) if path.is_dir() else [path])
            for facts in [file.stat()]
        )
    except FileNotFoundError as error:
        raise InputError(path, "no such file") from error
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror})") from error


def _hash(path: Path) -> str:
    try:
        return content_hash(path)
    except FileNotFoundError as error:
        raise InputError(path, "no such file") from error
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror})") from error


def overlap(out: Path, sources: Iterable[Path]) -> str | None:
    """Describe how an output overlaps with what is read, or return None.

    Parameters
    ----------
    out : Path
        File or folder to be written; it need not exist.
    sources : iterable of Path
        Files and folders that are read.

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
    """Refuse to replace anything that is not a folder of this kind, made by mzseek, untouched.

    Parameters
    ----------
    out : Path
    kind : str
    sources : iterable of Path
    is_leftover : callable of str
        Whether a file that the manifest does not list is what a killed process has left.

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
    own = {MANIFEST, *(files if isinstance(files, dict) else ())}
    foreign = [
        name
        for name in sorted(present - own)
        if not name.startswith(f".{MANIFEST}.") and not is_leftover(name)
    ]
    if foreign:
        raise DatasetError(f"{out}: holds {foreign[0]}, which is not its own; name another --out")
