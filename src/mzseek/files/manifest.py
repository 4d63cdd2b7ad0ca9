"""What folders that mzseek makes say of themselves: one form, one reader and one writer.

Every such folder holds a JSON file with its kind, the version of its format, what made it, and the
size and SHA-256 of each of its files. A room says with a `Manifest` what its own kind holds.
"""

import json
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mzseek.errors import DatasetError
from mzseek.files.atomic import atomic_file
from mzseek.files.json_file import check_fields, read_object
from mzseek.files.source import content_hash

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
# Files that were read and found as written, by all that the system says of them.
_verified: set[tuple[str, int, int, int, int, str]] = set()
_SETTLED = 2.0  # seconds after which a change shows in a file's time


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
        What is read of it, as `mzseek.files.json_file.check_fields` takes it.
    versions : tuple of int
        Versions of the format that can be read, the one that is written last; none where the kind
        has none.
    name : str
        Name of the file.
    has_files : bool
        Whether it lists the folder's files.
    may_be_unsigned : bool
        Whether one without a kind is taken for one: the first folders did not say.
    """

    kind: str
    error: type[Exception]
    again: str = ""
    fields: Mapping[Any, Any] = field(default_factory=dict)
    versions: tuple[int, ...] = ()
    name: str = MANIFEST
    has_files: bool = True
    may_be_unsigned: bool = False

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
        if facts.get("kind", self.kind if self.may_be_unsigned else None) != self.kind:
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

    def write(
        self,
        folder: Path,
        facts: Mapping[str, Any],
        *,
        known: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Sign a folder that is being made: what it is, the facts, and the files that it holds.

        Parameters
        ----------
        folder : Path
        facts : mapping
            All but the kind and the files; the version is the last of `versions` unless it is
            among them.
        known : mapping of str to mapping, optional
            What is known of files already: these are not read.

        Returns
        -------
        dict
            What was written.
        """
        signed = self._signed(facts)
        if self.has_files:
            names = sorted(path.name for path in folder.iterdir() if path.name != self.name)
            signed["files"] = _measured(folder, names, known or {})
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
    ) -> None:
        """Make sure that a folder's files are those of its manifest: there, as long, or as written.

        Parameters
        ----------
        folder : Path
        facts : mapping
            What `read` returned.
        checksums : bool
            Read every file, too; once a process, as long as its size and time stay what they were.
        names : iterable of str, optional
            Files to look at; all by default.
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
        with ThreadPoolExecutor() as pool:  # hashing lets go of Python's lock
            paths = [folder / name for name in files]
            wanted = [listed["sha256"] for listed in files.values()]
            for path, same in zip(paths, pool.map(_as_written, paths, wanted), strict=True):
                if not same:
                    raise self.error(f"{folder}: {path.name} has changed{self._hint}")

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


def measured(path: Path) -> dict[str, Any]:
    """Size and SHA-256 of a file, as a manifest lists them."""
    return {"bytes": path.stat().st_size, "sha256": content_hash(path)}


def _measured(
    folder: Path, names: list[str], known: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    with ThreadPoolExecutor() as pool:
        anew = [name for name in names if name not in known]
        by_name = dict(zip(anew, pool.map(lambda name: measured(folder / name), anew), strict=True))
    return {name: by_name.get(name) or dict(known[name]) for name in names}


def _text(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, indent=1) + "\n"


def _as_written(path: Path, sha256: str) -> bool:
    facts = path.stat()
    state = (
        str(path.resolve()), facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns,
        sha256,
    )  # fmt: skip
    if state in _verified:
        return True
    same = content_hash(path) == sha256
    if same and time.time() - facts.st_ctime > _SETTLED:
        _verified.add(state)
    return same


def _read(folder: Path, name: str) -> dict[str, Any]:
    try:
        return read_object(folder / name, DatasetError)
    except DatasetError:
        return {}
