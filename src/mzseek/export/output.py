"""The output of a run: a folder or a single file, published when complete."""

import contextlib
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mzseek.annotation.annotation import Annotation
from mzseek.annotation.features import Feature
from mzseek.core.errors import InputError, RunError, WriteError
from mzseek.core.registry import LazyRegistry
from mzseek.export.feature_tables import COLUMNS
from mzseek.export.graphml import SIGNATURE as GRAPH
from mzseek.export.run_record import KIND, run_facts, write_facts
from mzseek.export.tables import CHANNEL, FIRST, LAST, SkippedTable
from mzseek.export.writer import JOURNAL, Journal, Rows, Settings, Writer, is_journal
from mzseek.io import StrPath, content_hash, read_object, sole_writer
from mzseek.io.manifest import measured, overlap
from mzseek.io.writing import discard, disk_error_reason, disk_errors, publish, remove_leftovers

# Files of an output folder.
FILES: "LazyRegistry[type[Writer]]" = LazyRegistry(
    {
        "summary.tsv": "mzseek.export.tables:Summary",
        "candidates.tsv": "mzseek.export.tables:Candidates",
        "peaks.tsv": "mzseek.export.tables:Peaks",
    }
)
# Single files, by how their names end.
SUFFIXES: "LazyRegistry[type[Writer]]" = LazyRegistry(
    {
        ".tsv": "mzseek.export.tables:Candidates",
        ".json": "mzseek.export.json_array:JsonArray",
        ".mztab": "mzseek.export.mztab:MzTab",
        ".graphml": "mzseek.export.graphml:GraphMl",
        ".csv": "mzseek.export.feature_tables:Joined",
        ".txt": "mzseek.export.feature_tables:Joined",
    }
)


def suffix_of(name: str, more: tuple[str, ...] = ()) -> str:
    """The suffix that a single file's writer is chosen by, in small letters.

    Parameters
    ----------
    name : str
        Of the file.
    more : tuple of str
        Suffixes that the caller has writers for.

    Raises
    ------
    InputError
        It is none of the known ones.

    Examples
    --------
    >>> suffix_of("results/A.mzTab")
    '.mztab'
    """
    known = [*SUFFIXES, *more]
    found = next((suffix for suffix in known if name.lower().endswith(suffix)), None)
    if found is None:
        raise InputError(name, f"its name ends in none of: {', '.join(known)}")
    return found


_HEAD = 1 << 20
_HTML = ".html"
_TEXT = rb'"(?:[^"\\]|\\.)*"'
_HEADERS = [mark + mark.join(COLUMNS) for mark in (",", ";", "\t")]
_JOINED = re.compile(
    rb"\A(?:[^\n]*\n){0,9}[^\n]*(?:" + "|".join(map(re.escape, _HEADERS)).encode() + rb")\r?\n"
)
_SIGNATURES = {
    ".tsv": re.compile(
        rb"\A"
        + re.escape("\t".join(FIRST).encode())
        + rf"(?:\t{CHANNEL}[^\t\n]+)*\t".encode()
        + re.escape("\t".join(LAST).encode())
        + rb"\n"
    ),
    ".json": re.compile(
        rb'\A(?:\[\]\n\Z|\[\n\{"feature": ' + _TEXT + rb', "named_by": ' + _TEXT + rb', "file": '
        + _TEXT + rb', "spectra": \[)'
    ),
    ".mztab": re.compile(
        rb"\AMTD\tmzTab-version\t[^\n]+\nMTD\tmzTab-ID\t[^\n]+\n(?:MTD\ttitle\t[^\n]+\n)?"
        rb"MTD\tdescription\t[^\n]+\nMTD\tsoftware\[1\]\t\[[^\n]*, mzseek [^\n]*\]\n"
        rb"(?:MTD\tsoftware\[1\]-setting\[\d+\]\t[^\n]+\n)*MTD\tquantification_method\t"
    ),
    ".graphml": re.compile(re.escape(GRAPH.encode())),
    ".csv": _JOINED,
    ".txt": _JOINED,
    _HTML: re.compile(
        rb'\A<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        rb'<meta name="generator" content="mzseek annotate">\n'
    ),
}  # fmt: skip


def is_own_file(path: Path) -> bool:
    """Whether a file is empty, or has the signature of annotate for its suffix.

    Parameters
    ----------
    path : Path
        Of an existing file, with a suffix that a writer is known for.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    signature = _SIGNATURES.get(suffix_of(path.name, (_HTML,)))
    return not head or (signature is not None and signature.match(head) is not None)


Make = Callable[[Path, str, Settings], Writer]

RUN, SET_ASIDE, NETWORK, FEATURES = "run.json", "set-aside.tsv", "network.graphml", "features"
_PARTIAL = ".partial"
_REMEDY = "name another --out, or replace it with --force"
_PACKED = re.compile(r"\.(gz|zst)$", re.IGNORECASE)


class Output:
    """Where the annotations of a run go; a context manager.

    Parameters
    ----------
    target : Path
        A file, if its name ends in a suffix that a writer is known for, else a folder.
    settings : Settings
    signature : mapping of str to str
        Checksums of all that annotations depend on, by name; a partial output for which one of them
        was another is not gone on with.
    resume : bool
        Go on from what a killed run has left. Without it, that is removed.
    more : mapping of str to callable
        Further writers: by name of file for a folder, by suffix for a single file.
    force : bool
        Also replace a file that annotate has not written, and a folder whose files were changed.
        Files that annotate does not write are never removed from a folder.

    Attributes
    ----------
    notes : list of str
        What the user should know about how it began.
    set_aside : SkippedTable
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
        signature: Mapping[str, str] | None = None,
        resume: bool = False,
        more: Mapping[str, Make] | None = None,
        force: bool = False,
    ) -> None:
        self.target, self.settings = target.resolve(), settings
        self.work = self.target.with_name(self.target.name + _PARTIAL)
        self.notes: list[str] = []
        self._force = force
        self._more = dict(more or {})
        self.is_folder = is_folder(target, tuple(self._more))
        self._signature, self._resume = dict(signature or {}), resume
        self._began = time.monotonic()
        self._held = contextlib.ExitStack()
        self._is_published = False

    def __enter__(self) -> Self:
        """Take hold of the place, and open all files."""
        ensure_not_read(self.target, self.settings.read)
        self._held.enter_context(sole_writer(self.target, "annotating"))
        try:
            with disk_errors(self.target):
                remove_leftovers(self.target)
                self._ensure_replaceable()
                self._open()
        except BaseException:
            self._held.close()
            raise
        return self

    def _open(self) -> None:
        self._begin_work()
        try:
            self.work.mkdir(exist_ok=True)
        except OSError as error:
            raise WriteError(self.target, f"cannot be made ({error.strerror})") from error
        self._journal = Journal(self.work, self._whole_signature())
        self._held.callback(self._remove_if_empty)
        self._held.callback(_let_go, self._journal.close)
        self.set_aside = SkippedTable(self.work / SET_ASIDE)
        self._held.callback(_let_go, self.set_aside.close)
        self._writers: list[Writer] = []
        for name, make in self._makers().items():
            self._writers.append(make(self.work, name, self.settings))
            self._held.callback(_let_go, self._writers[-1].close)

    def _begin_work(self) -> None:
        """Keep what a killed run has left if it can be resumed, else remove it.

        Its lock is ours: no other process is writing there.
        """
        can_resume = is_journal(self.work / JOURNAL)
        if self._resume and not can_resume:
            why = "has no journal of finished features" if self.work.exists() else "does not exist"
            self.notes.append(f"Starting from the beginning: {self.work} {why}.")
        if not self.work.exists():
            return
        foreign = self._foreign_work()
        if foreign is not None:
            raise RunError(
                f"{self.work}: is in the way ({foreign} is not of annotate); move it, or name "
                "another --out"
            )
        if not (self._resume and can_resume):
            discard(self.work, self.target)

    def _foreign_work(self) -> str | None:
        """Return a name in the working folder that no run of annotate makes there, or None."""
        if not self.work.is_dir():
            return "a file"
        own = (RUN, SET_ASIDE, NETWORK, FEATURES, *FILES, *self._more, self.target.name)
        beginnings = tuple(f"{name}." for name in own)
        for path in sorted(self.work.iterdir()):
            known = path.name in (*own, JOURNAL) or path.name.startswith(beginnings)
            if not known or not path.is_file():
                return path.name
        return None

    def _ensure_replaceable(self) -> None:
        _ensure_replaceable(self.target, self.is_folder, self._own_names(), self._force)

    def _whole_signature(self) -> dict[str, str]:
        """Of the run, and of what is written: a new file would lack what was done before."""
        known = self.settings
        return {
            **self._signature,
            "--network": _joined(known.network),
            "--features": _joined(known.features),
            "the explained peaks": str(known.peaks_of),
            "the files of --out": "\t".join(sorted(self._makers())),
        }

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

    def write(self, annotation: Annotation, ready: Mapping[str, str] | None = None) -> None:
        """Add an annotation to all files.

        Parameters
        ----------
        annotation : Annotation
        ready : mapping of str to str, optional
            Rows that another process has made already, by name of file: ``peaks.tsv`` takes the
            most time, and `Peaks.text` makes them.
        """
        with disk_errors(self.target):
            for writer in self._writers:
                if ready and writer.name in ready and isinstance(writer, Rows):
                    writer.put(ready[writer.name])
                else:
                    writer.write(annotation)
            places = {
                name: spool.place()
                for writer in self._writers
                for name, spool in writer.spools.items()
            }
            self._journal.note(annotation.feature, places, bool(annotation.candidates))

    def counts(self, records: int | None = None) -> dict[str, int]:
        """Count records in, answered and set aside; features, and those with candidates.

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
            "with_candidates": self._journal.with_candidates,
        }

    def finish(
        self,
        *,
        records: int | None = None,
        options: Mapping[str, Any] | None = None,
        inputs: Iterable[Path] | Mapping[Path, str] = (),
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
        with disk_errors(self.target):
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
                names = sorted(self._own_names() - {RUN})
                facts["written"] = {name: measured(self.work / name) for name in names}
                write_facts(self.work / RUN, facts)
            self._ensure_replaceable()  # it may have been changed meanwhile
            self._publish()
        return said

    def _remove_if_empty(self) -> None:
        if not self._is_published and not self._journal.features:
            shutil.rmtree(self.work, ignore_errors=True)

    def _publish(self) -> None:
        if not self.is_folder:
            publish(self.work / self.target.name, self.target)
            discard(self.work, self.target)
        else:
            for path in self.work.iterdir():
                if path.name not in self._own_names():
                    path.unlink()
            publish(self.work, self.target)
        self._is_published = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go; what is not complete stays under its partial name, if there is anything in it.

        Raises
        ------
        WriteError
            The disk is full: also where a reader was reporting skipped records at the time.
        """
        self._held.close()
        reason = disk_error_reason(error) if isinstance(error, Exception) else None
        if reason is not None and not isinstance(error, WriteError):
            raise WriteError(self.target, f"cannot be written ({reason})") from error


def _joined(path: Path | None) -> str:
    """Path and SHA-256 of a file that annotations are joined to."""
    try:
        return "" if path is None else f"{path.resolve()} {content_hash(path)}"
    except OSError:
        return str(path)  # which its writer refuses


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


def ensure_not_read(out: Path, read: Iterable[StrPath]) -> None:
    """Refuse an output that is read, lies in a folder that is read, or holds what is read.

    Raises
    ------
    RunError
    """
    paths = [Path(path) for path in read]
    work = out.resolve().with_name(out.resolve().name + _PARTIAL)
    for place in (out, work):
        if reason := overlap(place, paths):
            raise RunError(f"{place}: {reason}; name another --out")


def _ensure_replaceable(target: Path, folder: bool, own: set[str], force: bool) -> None:
    """Refuse to replace what annotate has not written, or what was changed since."""
    if not target.exists():
        return
    if not folder:
        if not force and not is_own_file(target):
            raise RunError(f"{target}: exists and is no output of annotate; {_REMEDY}")
        return
    if not target.is_dir():
        raise RunError(f"{target}: is a file, expected a folder to make")
    if target.is_mount():
        raise RunError(f"{target}: is a mount point and cannot be replaced; name a folder in it")
    present = {path.name for path in target.iterdir()}
    if not present:
        return
    try:
        facts = read_object(target / RUN, RunError) if RUN in present else {}
    except RunError:
        if not force:
            raise
        facts = {}
    files, is_own = facts.get("files"), facts.get("kind") == KIND
    listed = set(files) if is_own and isinstance(files, list) else set()
    foreign = sorted(present - own - {RUN} - listed)
    if not is_own and (foreign or not force):
        remedy = "name another --out" if foreign else _REMEDY
        raise RunError(f"{target}: exists and is no output of annotate; {remedy}")
    if foreign:
        raise RunError(
            f"{target}: holds {foreign[0]}, which is not its own; move it, or name another --out"
        )
    written = facts.get("written")
    if force or not isinstance(written, dict):
        return
    for name in sorted(present & written.keys()):
        if measured(target / name) != written[name]:
            raise RunError(f"{target}: {name} was changed since annotate wrote it; {_REMEDY}")
