"""Folders that mzseek makes, and may therefore replace."""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mzseek.errors import DatasetError
from mzseek.files.json_file import read_object
from mzseek.files.source import content_hash

MANIFEST = "manifest.json"
RUN = "run.json"
# Of a manifest's files: what every folder's own check of its fields begins with.
FILE_FACTS = {...: {"bytes": int, "sha256": str}}

# What can be done with each kind, for whoever has named it in the place of another.
_USES = {
    "prepared folder": "`mzseek train`, `bands`, `advise` and `negatives` take it",
    "molecule database": "`mzseek database` and `mzseek negatives --database` take it",
    "run folder": "`mzseek evaluate` takes it",
    "data set": "`mzseek data check` takes it, and `mzseek prepare` makes a prepared folder of it",
}
_MAKERS = {
    "prepared folder": "`mzseek prepare`",
    "molecule database": "`mzseek database build`",
    "run folder": "`mzseek train`",
    "data set": "`mzseek data build`",
}
# Files that were read and found as written, by all that the system says of them.
_verified: set[tuple[str, int, int, int, int, str]] = set()
_SETTLED = 2.0  # seconds after which a change shows in a file's time


def kind_of(folder: Path) -> str | None:
    """What a folder of mzseek's says it is, or None."""
    for name in (MANIFEST, RUN):
        kind = _read(folder, name).get("kind")
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


def ensure_replaceable(out: Path, kind: str, sources: Iterable[Path]) -> None:
    """Refuse to replace anything that is not a folder of this kind, made by mzseek, untouched.

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
    for source in sources:
        if source.resolve().is_relative_to(out.resolve()):
            raise DatasetError(f"{out}: holds the source {source.name}; name another --out")
        if out.resolve().is_relative_to(source.resolve()):
            raise DatasetError(f"{out}: lies in the source {source}; name another --out")
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
        known = f" (it is a {other})" if other else ""
        raise DatasetError(f"{out}: exists and is no {kind}{known}; name another --out")
    files = manifest.get("files")
    foreign = sorted(present - set(files if isinstance(files, dict) else ()) - {MANIFEST})
    if foreign:
        raise DatasetError(f"{out}: holds {foreign[0]}, which is not its own; name another --out")


def check_files(
    folder: Path, files: Mapping[str, Mapping[str, Any]], error: type[Exception], remedy: str,
    *, checksums: bool = False,
) -> None:  # fmt: skip
    """Make sure that a folder's files are those of its manifest: there, as long, or as written.

    Parameters
    ----------
    folder : Path
    files : mapping of str to mapping
        Of the manifest: ``bytes`` and ``sha256`` by name.
    error : type of exception
        What is raised, in the words of the room that the folder belongs to.
    remedy : str
        What to do about it, such as "build it again".
    checksums : bool
        Read every file, too; once a process, as long as its size and time stay what they were.
    """
    for name, facts in files.items():
        path = folder / name
        if name in ("", ".", "..") or path.name != name or not name.isprintable():
            raise error(f"{folder}: {name[:60]!r} is no name of a file; {remedy}")
        if not path.is_file():
            raise error(f"{folder}: {name} is missing; {remedy}")
        size = path.stat().st_size
        if size != facts["bytes"]:
            raise error(
                f"{folder}: {name} has {size:,} bytes, expected {facts['bytes']:,}; {remedy}"
            )
    if not checksums:
        return
    with ThreadPoolExecutor() as pool:  # hashing lets go of Python's lock
        paths = [folder / name for name in files]
        wanted = [facts["sha256"] for facts in files.values()]
        for path, same in zip(paths, pool.map(_as_written, paths, wanted), strict=True):
            if not same:
                raise error(f"{folder}: {path.name} has changed; {remedy}")


def _as_written(path: Path, sha256: str) -> bool:
    facts = path.stat()
    known = (
        str(path.resolve()), facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns,
        sha256,
    )  # fmt: skip
    if known in _verified:
        return True
    same = content_hash(path) == sha256
    if same and time.time() - facts.st_ctime > _SETTLED:
        _verified.add(known)
    return same


def _read(folder: Path, name: str) -> dict[str, Any]:
    try:
        return read_object(folder / name, DatasetError)
    except DatasetError:
        return {}
