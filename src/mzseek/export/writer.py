"""Writers of annotations: files that only grow, so that a killed run can be resumed."""

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TextIO

from mzseek.annotation.annotation import Annotation
from mzseek.core.errors import RunError

RANKING_COLUMNS = ("id", "smiles")
IN_FULL = 5  # candidates of a feature that a report shows with their fragments


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
    ranking_columns : pair of str
        Names of the columns of a ``.csv`` file.
    run : mapping of str to any
        Fields of ``run.json`` about the spectra; complete when all are annotated.
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
    ranking_columns: tuple[str, str] = RANKING_COLUMNS
    run: Mapping[str, Any] = field(default_factory=dict)


def parse_ranking_columns(text: str) -> tuple[str, str]:
    """Read the names of the two columns of a ``.csv`` file.

    Examples
    --------
    >>> parse_ranking_columns("molecule_id, smiles")
    ('molecule_id', 'smiles')
    """
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise RunError(f"--ranking-columns {text[:40]!r}: expected two names, such as id,smiles")
    return names[0], names[1]


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

    To add an output format, write one module with a subclass, and one line in
    `mzseek.export.SUFFIXES`. All state is in the spool: a writer that is made for a spool with
    content goes on where it ends.

    Attributes
    ----------
    signature : re.Pattern
        Matches the beginning of every complete file of this writer, and as little else as possible:
        an existing file that does not match is replaced only with --force.
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


def plain_data(value: Any, text: Callable[[str], str] = str) -> Any:
    """Return nested data as JSON takes it.

    Numbers that are not finite become None, paths and the like texts; `text` is applied to all
    texts and keys.

    Examples
    --------
    >>> plain_data({"a": (1, float("nan")), "b": Path("c")})
    {'a': [1, None], 'b': 'c'}
    """
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        return {text(str(key)): plain_data(item, text) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_data(item, text) for item in value]
    if hasattr(value, "item"):  # a number of numpy's
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int) else text(str(value))
