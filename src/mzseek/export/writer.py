"""Writers of annotations: files that only grow, so that a killed run can be resumed."""

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TextIO

from mzseek.annotation.annotation import Annotation
from mzseek.annotation.features import Feature
from mzseek.core.errors import RunError


@dataclass(frozen=True)
class Settings:
    """What writers need to know besides annotations.

    Attributes
    ----------
    title : str
        Of the output, where a format has one.
    inputs : tuple of str
        Files of spectra, as features call them.
    database, database_version : str
        Name of what candidates were taken from, and its version or checksum.
    options : mapping of str to any
        Of the run, for formats that list them.
    searched : mapping of str to any
        Model, database, libraries and prior, as `mzseek.annotation.Annotator.metadata` has them.
    network, features : Path or None
        A molecular network, and a table of features, that annotations are joined to.
    read : tuple of Path
        Files and folders that the run reads: they are never written over.
    """

    title: str = ""
    inputs: tuple[str, ...] = ()
    database: str = ""
    database_version: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    searched: Mapping[str, Any] = field(default_factory=dict)
    network: Path | None = None
    features: Path | None = None
    read: tuple[Path, ...] = ()


class Spool:
    """A file of text lines that grows; one that is there already is appended to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab")

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written yet."""
        return self._file.tell() == 0

    def write(self, text: str) -> None:
        """Append whole lines."""
        self._file.write(text.encode("utf-8", "replace"))

    def flush(self) -> int:
        """Hand all lines to the operating system; returns the size in bytes."""
        self._file.flush()
        return self._file.tell()

    def lines(self) -> Iterator[str]:
        """Yield all lines so far."""
        if not self._file.closed:
            self._file.flush()
        with self.path.open("r", encoding="utf-8", newline="\n") as file:
            yield from file

    def close(self) -> None:
        """Close the file; it can be closed twice."""
        self._file.close()


class Writer(ABC):
    """Write annotations, one at a time, to a file that grows.

    All state is in the spool: a writer that is made for a spool with content goes on where it ends.

    Attributes
    ----------
    signature : re.Pattern
        What the beginning of a complete file matches. Other files are replaced only with --force.
    spool_suffix : str
        Added to the name of the file while it grows.

    Parameters
    ----------
    folder : Path
        Where the work is done.
    name : str
        Of the file to make in it.
    settings : Settings
    """

    signature: ClassVar[re.Pattern[bytes]]
    spool_suffix: ClassVar[str] = ""

    def __init__(self, folder: Path, name: str, settings: Settings) -> None:
        self.folder, self.name, self.settings = folder, name, settings
        self.spool = Spool(folder / f"{name}{self.spool_suffix}")

    @abstractmethod
    def write(self, annotation: Annotation) -> None:
        """Add an annotation."""

    def finish(self) -> list[str]:
        """Complete the file; returns lines that the user should read."""
        self.close()
        return []

    def close(self) -> None:
        """Close the spool, whether the file is complete or not."""
        self.spool.close()


class RecordWriter(Writer):
    """Write what depends on all annotations: a record of each is kept until the file is made."""

    spool_suffix = ".records"

    @abstractmethod
    def record(self, annotation: Annotation) -> Any:
        """Return what to keep of an annotation, as JSON takes it."""

    @abstractmethod
    def assemble(self, file: TextIO) -> list[str]:
        """Write the file from `records`; returns lines that the user should read."""

    def write(self, annotation: Annotation) -> None:
        """Keep the record of an annotation."""
        self.spool.write(json.dumps(self.record(annotation)) + "\n")

    def records(self) -> Iterator[Any]:
        """Yield what was kept, in the order of writing; one is in memory at a time."""
        return map(json.loads, self.spool.lines())

    def finish(self) -> list[str]:
        """Make the file; the spool stays, so that a run that stops here can be resumed."""
        self.close()
        with (self.folder / self.name).open("w", encoding="utf-8", newline="\n") as file:
            return self.assemble(file)


JOURNAL = "journal.jsonl"
_MAX_NAMED = 5  # changed inputs that a message names


class Journal:
    """Notes of finished features, in the folder where the work is done.

    Parameters
    ----------
    folder : Path
    signature : mapping of str to str
        Checksums of all that annotations depend on, by name.

    Attributes
    ----------
    features, spectra, with_candidates : int
        Finished so far, and features among them that have candidates.

    Raises
    ------
    RunError
        The notes are of a run with another signature.
    """

    def __init__(self, folder: Path, signature: Mapping[str, str]) -> None:
        self.folder, self.path = folder, folder / JOURNAL
        self.features = self.spectra = self.with_candidates = 0
        self._done: Counter[str] = Counter()
        end = self._read(signature) if self.path.exists() else 0
        self._file = self.path.open("ab")
        self._file.truncate(end)
        if end == 0:
            self._append({"signature": dict(signature)})

    def was_done(self, feature: Feature) -> bool:
        """Return whether an earlier process has finished a feature; each note counts for one."""
        key = _key(feature)
        if self._done[key] == 0:
            return False
        self._done[key] -= 1
        return True

    def add(self, feature: Feature, sizes: Mapping[str, int], has_candidates: bool) -> None:
        """Note that a feature is finished, the size of each file, and if it has candidates."""
        self._count(feature.records, has_candidates)
        self._append([_key(feature), feature.records, dict(sizes), has_candidates])

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _count(self, spectra: int, has_candidates: bool) -> None:
        self.features += 1
        self.spectra += spectra
        self.with_candidates += has_candidates

    def _append(self, note: Any) -> None:
        self._file.write(json.dumps(note).encode() + b"\n")
        self._file.flush()

    def _read(self, signature: Mapping[str, str]) -> int:
        """Take in all complete notes, and cut files to the last of them; returns where it ends."""
        sizes: dict[str, int] = {}
        end = 0
        with self.path.open("rb") as file:
            for line in file:
                note = _parse(line)
                if end == 0 and isinstance(note, dict):
                    self._check(note.get("signature"), signature)
                elif end and _is_note(note) and self._has(note[2]):
                    key, spectra, sizes, has_candidates = note
                    self._done[key] += 1
                    self._count(spectra, has_candidates)
                else:  # cut short, or files are shorter than noted: after a power cut they may be
                    break
                end += len(line)
        files = [path.name for path in self.folder.iterdir() if path.is_file()]
        for name in sizes or (set(files) - {JOURNAL}):
            with (self.folder / name).open("ab") as spool:
                spool.truncate(sizes.get(name, 0))
        return end

    def _check(self, before: Any, signature: Mapping[str, str]) -> None:
        """Refuse to resume what was begun with other inputs or options, and name these."""
        if before == signature:
            return
        changed = ["the versions"]
        if isinstance(before, dict):
            names = dict.fromkeys([*signature, *before])
            changed = [name for name in names if before.get(name) != signature.get(name)]
        more = len(changed) - _MAX_NAMED
        raise RunError(
            f"{self.folder}: was begun with other values or contents of "
            f"{', '.join(changed[:_MAX_NAMED])}{f' and {more:,} more' if more > 0 else ''}; "
            "give the same ones, or run the command without --resume"
        )

    def _has(self, sizes: Mapping[str, int]) -> bool:
        paths = {self.folder / name: size for name, size in sizes.items()}
        return all(path.is_file() and path.stat().st_size >= n for path, n in paths.items())


def is_journal(path: Path) -> bool:
    """Return whether a file is a journal that can be read at least from its beginning."""
    try:
        with path.open("rb") as file:
            return isinstance(_parse(file.readline()), dict)
    except OSError:
        return False


def _is_note(note: Any) -> bool:
    return isinstance(note, list) and [type(value) for value in note] == [str, int, dict, bool]


def _parse(line: bytes) -> Any:
    """Return the content of a note; None for one that was cut short."""
    try:
        return json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None


def _key(feature: Feature) -> str:
    return f"{feature.where}\t{feature.name}"
