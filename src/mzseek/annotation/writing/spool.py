"""Writers of answers: what they write to only grows, and can be cut back to any place it had."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from mzseek.annotation.answers import Answer, Candidate
from mzseek.fragments.match import LEAST, PPM


@dataclass(frozen=True)
class Settings:
    """What writers need to know besides answers.

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
    ppm, least : float
        Tolerance of peaks: the larger of `ppm` of the m/z and `least`.
    network, features : Path or None
        A molecular network, and a table of features, that answers are joined to.
    """

    title: str = ""
    inputs: tuple[str, ...] = ()
    database: str = ""
    database_version: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    peaks_of: int = 1
    ppm: float = PPM
    least: float = LEAST
    network: Path | None = None
    features: Path | None = None


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
    """Writes answers, one at a time, into a folder of its own.

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
    def write(self, answer: Answer) -> None:
        """Add an answer."""

    def finish(self) -> list[str]:
        """Complete the file, all answers being written; returns lines that the user should read."""
        self.close()
        return []

    def close(self) -> None:
        """Let go of all files, whether they are complete or not."""
        with contextlib.ExitStack() as all_of_them:
            for spool in self.spools.values():
                all_of_them.callback(spool.close)


class Rows(Writer):
    """Writes a table whose rows depend on one answer alone."""

    columns: ClassVar[Sequence[str]]

    @staticmethod
    @abstractmethod
    def text(answer: Answer, settings: Settings) -> str:
        """Rows of an answer; other processes may make them, and give them to `put`."""

    def write(self, answer: Answer) -> None:
        """Add the rows of an answer."""
        self.put(self.text(answer, self.settings))

    def put(self, text: str) -> None:
        """Add rows."""
        [spool] = self.spools.values()
        if spool.is_empty:
            spool.write("\t".join(self.columns) + "\n")
        spool.write(text)

    def finish(self) -> list[str]:
        """Complete the file: without answers it is a header."""
        self.put("")
        return super().finish()


def ranked(answer: Answer) -> list[Candidate]:
    """Candidates as they are ranked: what is decided for, then the others by probability.

    For the objective "hit" that is the order of probability alone.
    """
    best = answer.best
    if best is None:
        return []
    return [best, *(each for each in answer.candidates if each is not best)]
