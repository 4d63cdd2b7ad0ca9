"""The output of a run, a folder or a single file: it gets its name when it is complete.

Work is done in a folder beside it, ``OUT.partial``. It stays if the process is killed, and a run
that is told to goes on from what is there.
"""

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mzseek.annotation.answers import Answer
from mzseek.annotation.features import Feature
from mzseek.annotation.writing.facts import KIND, run_facts, write_facts
from mzseek.annotation.writing.journal import JOURNAL, Journal
from mzseek.annotation.writing.registry import FILES, SUFFIXES, suffix_of
from mzseek.annotation.writing.spool import Rows, Settings, Writer
from mzseek.annotation.writing.tables.set_aside import SetAside
from mzseek.errors import RunError, WriteError
from mzseek.files import read_object, sole_writer
from mzseek.files.fault import naming_output

Make = Callable[[Path, str, Settings], Writer]

RUN, SET_ASIDE, NETWORK, FEATURES = "run.json", "set-aside.tsv", "network.graphml", "features"
_PARTIAL = ".partial"
# What each single file has near its beginning: its columns, its first object, or the tool's name.
_MARKS, _HEAD = (b"feature\trank\tsmiles", b'"named_by": ', b"mzseek"), 1_000_000
_PACKED = re.compile(r"\.(gz|zst)$", re.IGNORECASE)


class Output:
    """Where the answers of a run go; a context manager.

    Parameters
    ----------
    target : Path
        A file, if its name ends in a suffix that a writer is known for, else a folder.
    settings : Settings
    signature : str
        Of the run; a partial output with another one is not gone on with.
    resume : bool
        Go on from what a killed run has left. Without it, that is removed.
    more : mapping of str to callable
        Further writers: by name of file for a folder, by suffix for a single file.

    Attributes
    ----------
    set_aside : SetAside
        Give it as ``rejects``.

    Raises
    ------
    InputError
        The name's suffix is unknown.
    RunError, BusyError, WriteError
        What is there must not be replaced, or was begun otherwise; another process is writing it;
        nothing can be written there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Output(Path(folder, "out"), Settings()) as output:
    ...         output.set_aside("a.mgf: record 3", "has no peaks")
    ...         lines = output.finish()
    ...     sorted(path.name for path in Path(folder, "out").iterdir())
    ['candidates.tsv', 'peaks.tsv', 'run.json', 'set-aside.tsv', 'summary.tsv']
    """

    def __init__(
        self,
        target: Path,
        settings: Settings,
        *,
        signature: str = "",
        resume: bool = False,
        more: Mapping[str, Make] | None = None,
    ) -> None:
        self.target, self.settings = target.resolve(), settings
        self._more = dict(more or {})
        self.is_folder = is_folder(target, tuple(self._more))
        self._signature, self._resume = signature, resume
        self._began = time.monotonic()
        self._held = contextlib.ExitStack()
        self._is_published = False

    def __enter__(self) -> Self:
        """Take hold of the place, and open all files."""
        _ensure_replaceable(self.target, self.is_folder, self._own_names())
        self._held.enter_context(sole_writer(self.target, "annotating"))
        try:
            with naming_output(self.target):
                self._open()
        except BaseException:
            self._held.close()
            raise
        return self

    def _open(self) -> None:
        self.work = self.target.with_name(self.target.name + _PARTIAL)
        if self.work.exists():
            if not (self.work / JOURNAL).is_file():
                raise RunError(
                    f"{self.work}: is in the way, and not of annotate; name another --out"
                )
            if not self._resume:
                shutil.rmtree(self.work)
        try:
            self.work.mkdir(exist_ok=True)
        except OSError as error:
            raise WriteError(self.target, f"cannot be made ({error.strerror})") from error
        self._journal = Journal(self.work, self._whole_signature())
        self._held.callback(self._remove_if_empty)
        self._held.callback(_let_go, self._journal.close)
        self.set_aside = SetAside(self.work / SET_ASIDE)
        self._held.callback(_let_go, self.set_aside.close)
        self._writers: list[Writer] = []
        for name, make in self._makers().items():
            self._writers.append(make(self.work, name, self.settings))
            self._held.callback(_let_go, self._writers[-1].close)

    def _whole_signature(self) -> str:
        """Of the run, and of what is written: a new file would lack what was done before."""
        known = self.settings
        written = [known.network, known.features, known.peaks_of, known.ppm, known.least]
        return "\t".join([self._signature, *sorted(self._makers()), *map(str, written)])

    def _own_names(self) -> set[str]:
        return {RUN, SET_ASIDE, *self._makers()} if self.is_folder else {self.target.name}

    def _makers(self) -> dict[str, Make]:
        """What makes each file."""
        if not self.is_folder:
            suffix = suffix_of(self.target.name, tuple(self._more))
            return {self.target.name: self._more.get(suffix) or SUFFIXES[suffix]}
        made: dict[str, Make] = {name: FILES[name] for name in FILES}
        if self.settings.network is not None:
            made[NETWORK] = SUFFIXES[".graphml"]
        if self.settings.features is not None:
            plain = _PACKED.sub("", self.settings.features.name)
            made[FEATURES + (Path(plain).suffix or ".csv")] = SUFFIXES[".csv"]
        return made | {name: make for name, make in self._more.items() if name[0] != "."}

    @property
    def resumed(self) -> int:
        """Features that are finished, those of earlier processes included."""
        return self._journal.features

    def was_done(self, feature: Feature) -> bool:
        """Whether an earlier process has finished a feature; ask once for each."""
        return self._journal.was_done(feature)

    def write(self, answer: Answer, ready: Mapping[str, str] | None = None) -> None:
        """Add an answer to all files.

        Parameters
        ----------
        answer : Answer
        ready : mapping of str to str, optional
            Rows that another process has made already, by name of file: ``peaks.tsv`` takes the
            most time, and `Peaks.text` makes them.
        """
        with naming_output(self.target):
            for writer in self._writers:
                if ready and writer.name in ready and isinstance(writer, Rows):
                    writer.put(ready[writer.name])
                else:
                    writer.write(answer)
            places = {
                name: spool.place()
                for writer in self._writers
                for name, spool in writer.spools.items()
            }
            self._journal.note(answer.feature, places)

    def counts(self, records: int | None = None) -> dict[str, int]:
        """Records in, answered and set aside, and features.

        Parameters
        ----------
        records : int, optional
            That were read; by default what is accounted for.
        """
        answered, aside = self._journal.spectra, self.set_aside.count
        given = answered + aside if records is None else records
        return {
            "records": given,
            "answered": answered,
            "set_aside": aside,
            "unaccounted": given - answered - aside,
            "features": self._journal.features,
        }

    def finish(
        self,
        *,
        records: int | None = None,
        options: Mapping[str, Any] | None = None,
        inputs: Iterable[Path] = (),
        bundle: Mapping[str, Any] | None = None,
        database: Mapping[str, Any] | None = None,
        prior: Mapping[str, Any] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Complete all files and give the output its name.

        Parameters are those of `run_facts`, and ``records`` of `counts`.

        Returns
        -------
        list of str
            What the user should read: features that no row of a table has, and the like.
        """
        with naming_output(self.target):
            self.set_aside.flush()  # which writers may read
            said = [line for writer in self._writers for line in writer.finish()]
            self.set_aside.close()
            self._journal.close()
            if self.is_folder:
                facts = run_facts(
                    options=options or self.settings.options,
                    inputs=inputs,
                    bundle=bundle or {},
                    database=database or {},
                    counts=self.counts(records),
                    seconds=time.monotonic() - self._began,
                    files=self._own_names(),
                    prior=prior,
                    more=more,
                )
                write_facts(self.work / RUN, facts)
            self._publish()
        return said

    def _remove_if_empty(self) -> None:
        if not self._is_published and not self._journal.features:
            shutil.rmtree(self.work, ignore_errors=True)

    def _publish(self) -> None:
        if not self.is_folder:
            (self.work / self.target.name).replace(self.target)
            shutil.rmtree(self.work)
        else:
            for path in self.work.iterdir():
                if path.name not in self._own_names():
                    path.unlink()
            _swap(self.work, self.target)
        self._is_published = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go; what is not complete stays under its partial name, if there is anything in it."""
        self._held.close()


def _let_go(close: Callable[[], None]) -> None:
    """Close a file; a full disk, which is told elsewhere, does not keep it open."""
    with contextlib.suppress(OSError):
        close()


def is_folder(target: Path, more: tuple[str, ...] = ()) -> bool:
    """Whether an output is a folder: it is one already, or its name has no suffix.

    Raises
    ------
    InputError
        Its suffix is none that a writer is known for.
    """
    if target.is_dir() or not target.suffix:
        return True
    suffix_of(target.name, tuple(each for each in more if each.startswith(".")))
    return False


def is_own_file(path: Path) -> bool:
    """Whether a file is empty, or begins as one that annotate has written."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return not head or any(mark in head for mark in _MARKS)


def _ensure_replaceable(target: Path, folder: bool, own: set[str]) -> None:
    """Refuse to replace what is no output of this kind."""
    if not target.exists():
        return
    if not folder:
        if not is_own_file(target):
            raise RunError(f"{target}: exists and is no output of annotate; name another --out")
        return
    if not target.is_dir():
        raise RunError(f"{target}: is a file, expected a folder to make")
    present = {path.name for path in target.iterdir()}
    if not present:
        return
    facts = read_object(target / RUN, RunError) if RUN in present else {}
    if facts.get("kind") != KIND:
        raise RunError(f"{target}: exists and is no output of annotate; name another --out")
    files = facts.get("files")
    foreign = sorted(present - own - {RUN} - set(files if isinstance(files, list) else ()))
    if foreign:
        raise RunError(f"{target}: holds {foreign[0]}, which is not its own; name another --out")


def _swap(made: Path, target: Path) -> None:
    """Put a folder in the place of another, which is there until the new one is."""
    old = target.with_name(f".{target.name}{_PARTIAL}-{os.getpid()}-old")
    if target.exists():
        target.rename(old)
    try:
        made.rename(target)
    except BaseException:
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
