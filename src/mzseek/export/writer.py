"""Writers of annotations: files that only grow, can be cut back, and be resumed."""

import contextlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

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
    peaks_of : int
        For how many candidates of a feature peaks are explained.
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
    peaks_of: int = 1
    network: Path | None = None
    features: Path | None = None
    read: tuple[Path, ...] = ()


class Spool:
    """A file of text lines that grows; one that is there already is gone on with."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab")
        self.is_empty = self._file.tell() == 0

    def write(self, text: str) -> None:
        """Put a text, of whole lines, at the end."""
        self._file.write(text.encode("utf-8", "replace"))
        self.is_empty = False

    def place(self) -> int:
        """Bytes so far, all of them handed to the operating system."""
        self._file.flush()
        return self._file.tell()

    def lines(self) -> Iterator[str]:
        """All lines so far."""
        self._file.flush()
        with self.path.open("r", encoding="utf-8", newline="\n") as file:
            yield from file

    def close(self) -> None:
        """Close the file; it can be closed twice."""
        self._file.close()


class Writer(ABC):
    """Writes annotations, one at a time, into a folder of its own.

    What it has written so far stands in its spools alone: a writer that is made for spools with
    content goes on where they end.

    Parameters
    ----------
    folder : Path
        Where the work is done.
    name : str
        Of the file to make in it.
    settings : Settings
    """

    def __init__(self, folder: Path, name: str, settings: Settings) -> None:
        self.folder, self.name, self.settings = folder, name, settings
        self.spools = {each: Spool(folder / each) for each in self.spool_names()}

    def spool_names(self) -> list[str]:
        """Names of the files that grow; by default the output itself."""
        return [self.name]

    @abstractmethod
    def write(self, annotation: Annotation) -> None:
        """Add an annotation."""

    def finish(self) -> list[str]:
        """Complete the file after the last annotation; return lines that the user should read."""
        self.close()
        return []

    def close(self) -> None:
        """Let go of all files, whether they are complete or not."""
        with contextlib.ExitStack() as all_of_them:
            for spool in self.spools.values():
                all_of_them.callback(spool.close)


class Rows(Writer):
    """Writes a table whose rows depend on one annotation alone."""

    columns: ClassVar[Sequence[str]]

    @staticmethod
    @abstractmethod
    def text(annotation: Annotation, settings: Settings) -> str:
        """Rows of an annotation; other processes may make them, and give them to `put`."""

    def write(self, annotation: Annotation) -> None:
        """Add the rows of an annotation."""
        self.put(self.text(annotation, self.settings))

    def put(self, text: str) -> None:
        """Add rows."""
        [spool] = self.spools.values()
        if spool.is_empty:
            spool.write("\t".join(self.columns) + "\n")
        spool.write(text)

    def finish(self) -> list[str]:
        """Complete the file: without annotations it is a header."""
        self.put("")
        return super().finish()


JOURNAL = "journal.jsonl"
_SHOWN = 5  # changes that are named


class Journal:
    """Notes of finished features, in a folder where work is done.

    Parameters
    ----------
    folder : Path
    signature : mapping of str to str
        Checksums of all that annotations depend on, by name. Notes of a run in which one of them
        was another are refused.

    Attributes
    ----------
    features, spectra, with_candidates : int
        Finished so far, and features among them that have candidates.
    """

    def __init__(self, folder: Path, signature: Mapping[str, str]) -> None:
        self.folder, self.path = folder, folder / JOURNAL
        self.features = self.spectra = self.with_candidates = 0
        self._done: Counter[str] = Counter()
        end = self._read(signature) if self.path.exists() else 0
        self._file = self.path.open("ab")
        self._file.truncate(end)
        if end == 0:
            self._note({"signature": dict(signature)})

    def was_done(self, feature: Feature) -> bool:
        """Whether an earlier process has finished a feature; each note counts for one."""
        key = _key(feature)
        if self._done[key] == 0:
            return False
        self._done[key] -= 1
        return True

    def note(self, feature: Feature, places: Mapping[str, int], has_candidates: bool) -> None:
        """Take down that a feature is finished, how long each file is, and if it has candidates."""
        self.features += 1
        self.spectra += feature.records
        self.with_candidates += has_candidates
        self._note([_key(feature), feature.records, dict(places), has_candidates])

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _note(self, note: Any) -> None:
        self._file.write(json.dumps(note).encode() + b"\n")
        self._file.flush()

    def _read(self, signature: Mapping[str, str]) -> int:
        """Take in all notes that hold, and cut files to the last of them; returns where it ends."""
        with self.path.open("rb") as file:
            first = _parsed(file.readline())
            end = 0
            if isinstance(first, dict):  # else it was cut short: nothing holds
                self._check(first.get("signature"), signature)
                end = file.tell()
            places: dict[str, int] = {}
            for line in file if end else ():
                note = _parsed(line)
                if not _is_note(note) or not self._holds(note[2]):
                    break
                key, spectra, places, has_candidates = note
                self._done[key] += 1
                self.features += 1
                self.spectra += spectra
                self.with_candidates += has_candidates
                end += len(line)
        for name in [*places] or [each.name for each in self._others()]:
            with (self.folder / name).open("ab") as grown:
                grown.truncate(places.get(name, 0))
        return end

    def _check(self, before: Any, signature: Mapping[str, str]) -> None:
        """Refuse to go on with what was begun otherwise, and name what differs."""
        known = before if isinstance(before, dict) else {}
        names = [*signature, *(name for name in known if name not in signature)]
        changed = [name for name in names if known.get(name) != signature.get(name)]
        if isinstance(before, dict) and not changed:
            return
        shown = changed[:_SHOWN] if isinstance(before, dict) else ["the versions"]
        more = f" and {len(changed) - _SHOWN:,} more" if len(changed) > len(shown) > 1 else ""
        raise RunError(
            f"{self.folder}: was begun with other values or contents of {', '.join(shown)}{more}; "
            "give the same ones, or run the command without --resume"
        )

    def _holds(self, places: Mapping[str, int]) -> bool:
        """Whether files are as long as a note says: after a power cut they may not be."""
        return all(
            (self.folder / name).is_file() and (self.folder / name).stat().st_size >= place
            for name, place in places.items()
        )

    def _others(self) -> list[Path]:
        return [each for each in self.folder.iterdir() if each.is_file() and each != self.path]


def is_journal(path: Path) -> bool:
    """Whether a file is a journal that can be read at least from its beginning."""
    try:
        with path.open("rb") as file:
            return isinstance(_parsed(file.readline()), dict)
    except OSError:
        return False


def _is_note(note: Any) -> bool:
    kinds = (str, int, dict, bool)
    return isinstance(note, list) and [type(each) for each in note] == [*kinds]


def _parsed(line: bytes) -> Any:
    """What a note says; None for one that was cut short."""
    try:
        return json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None


def _key(feature: Feature) -> str:
    return f"{feature.where}\t{feature.name}"
