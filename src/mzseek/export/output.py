"""The output of a run: a folder or a single file, published when complete.

A journal of finished features makes a killed run resumable; ``run.json`` says what made a folder.
"""

import contextlib
import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from mzseek.annotation.annotation import Annotation
from mzseek.annotation.features import Feature
from mzseek.core.errors import InputError, RunError, WriteError
from mzseek.export import FILES, SUFFIXES
from mzseek.export.proposals import PROPOSALS
from mzseek.export.tables import SKIPPED, SkippedTable
from mzseek.export.writer import Settings, Writer, plain_data
from mzseek.io import StrPath, content_hash, read_object, sole_writer
from mzseek.io.manifest import measured, overlap
from mzseek.io.writing import discard, disk_error_reason, disk_errors, publish, remove_leftovers
from mzseek.version import PACKAGES, versions

RUN, NETWORK, FEATURES, JOURNAL = "run.json", "network.graphml", "features", "journal.jsonl"
KIND, VERSION = "mzseek annotation", 1
_PARTIAL = ".partial"
_CSV, _JOINED = ".csv", ".txt"  # a .csv is a ranking, or with --features a table of features
_REMEDY = "name another --out, or replace it with --force"
_PACKED = re.compile(r"\.(gz|zst)$", re.IGNORECASE)
_HEAD = 1 << 20  # bytes that a signature is looked for in
_MAX_NAMED = 5  # changed inputs that a message names


def suffix_of(name: str) -> str:
    """Return the suffix that a single file's writer is chosen by, in small letters.

    Raises
    ------
    InputError
        It is none of the known ones.

    Examples
    --------
    >>> suffix_of("results/A.mzTab")
    '.mztab'
    """
    suffix = next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), None)
    if suffix is None:
        raise InputError(name, f"its name ends in none of: {', '.join(SUFFIXES)}")
    return suffix


def is_folder(target: Path) -> bool:
    """Return whether an output is a folder: it is one already, or its name has no suffix.

    Raises
    ------
    InputError
        Its suffix is none that a writer is known for.
    """
    if target.is_dir() or not target.suffix:
        return True
    suffix_of(target.name)
    return False


class Output:
    """Where the annotations of a run go; a context manager.

    Parameters
    ----------
    target : Path
        A file, if its name ends in a suffix that a writer is known for, else a folder.
    settings : Settings
    signature : mapping of str to str
        Checksums of all that annotations depend on, by name; a partial output with another
        signature is not resumed.
    resume : bool
        Go on from what a killed run has left. Without it, that is removed.
    force : bool
        Also replace a file that annotate has not written, and a folder whose files were changed.
        Files that annotate does not write are never removed from a folder.
    more : mapping of str to Writer class, optional
        Further files of a folder, by name.

    Attributes
    ----------
    notes : list of str
        What the user should know about how it began.
    skipped : SkippedTable
        Call it with where and why a record was skipped.

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
    ...         output.skipped("a.mgf: record 3", "has no peaks")
    ...         lines = output.finish()
    ...     sorted(path.name for path in Path(folder, "out").iterdir())
    ['candidates.tsv', 'peaks.tsv', 'report.html', 'run.json', 'skipped.tsv', 'summary.tsv']
    """

    def __init__(
        self,
        target: Path,
        settings: Settings,
        *,
        signature: Mapping[str, str] | None = None,
        resume: bool = False,
        force: bool = False,
        more: Mapping[str, type[Writer]] | None = None,
    ) -> None:
        self.target, self.settings = target.resolve(), settings
        self.work = self.target.with_name(self.target.name + _PARTIAL)
        self.notes: list[str] = []
        self.is_folder = is_folder(target)
        self._signature, self._resume, self._force = dict(signature or {}), resume, force
        self._more = dict(more or {})
        self._kinds = self._writer_kinds()
        self._names = {RUN, SKIPPED, *self._kinds} if self.is_folder else {self.target.name}
        self._began = time.monotonic()
        self._open_files = contextlib.ExitStack()
        self._is_published = False

    def _writer_kinds(self) -> dict[str, type[Writer]]:
        """Return the writer of each file."""
        if not self.is_folder:
            suffix = suffix_of(self.target.name)
            joins = suffix == _CSV and self.settings.features is not None
            return {self.target.name: SUFFIXES[_JOINED if joins else suffix]}
        is_proposing = bool(self.settings.options.get("propose"))
        kinds = {name: FILES[name] for name in FILES if name != PROPOSALS or is_proposing}
        kinds |= self._more
        if self.settings.network is not None:
            kinds[NETWORK] = SUFFIXES[".graphml"]
        if self.settings.features is not None:
            plain = _PACKED.sub("", self.settings.features.name)
            kinds[FEATURES + (Path(plain).suffix or _CSV)] = SUFFIXES[_JOINED]
        return kinds

    def __enter__(self) -> Self:
        """Lock the target, and open all files."""
        ensure_not_read(self.target, self.settings.read)
        self._open_files.enter_context(sole_writer(self.target, "annotating"))
        try:
            with disk_errors(self.target):
                remove_leftovers(self.target)
                self._ensure_replaceable()
                self._prepare_work()
                self._open()
        except BaseException:
            self._open_files.close()
            raise
        return self

    def _prepare_work(self) -> None:
        """Keep what a killed run has left if it can be resumed, else remove it.

        The lock is held: no other process is writing there.
        """
        can_resume, exists = is_journal(self.work / JOURNAL), self.work.exists()
        if self._resume and not can_resume:
            why = "has no journal of finished features" if exists else "does not exist"
            self.notes.append(f"Starting from the beginning: {self.work} {why}.")
        if exists:
            if (foreign := self._foreign_work()) is not None:
                raise RunError(
                    f"{self.work}: is in the way ({foreign} is not of annotate); move it, or name "
                    "another --out"
                )
            if not (self._resume and can_resume):
                discard(self.work, self.target)
        try:
            self.work.mkdir(exist_ok=True)
        except OSError as error:
            raise WriteError(self.target, f"cannot be made ({error.strerror})") from error

    def _foreign_work(self) -> str | None:
        """Return a name in the working folder that no run of annotate makes there, or None."""
        if not self.work.is_dir():
            return "a file"
        known = (RUN, SKIPPED, NETWORK, FEATURES, *FILES, *self._more, self.target.name)
        beginnings = tuple(f"{name}." for name in known)
        for path in sorted(self.work.iterdir()):
            is_known = path.name in (*known, JOURNAL) or path.name.startswith(beginnings)
            if not is_known or not path.is_file():
                return path.name
        return None

    def _open(self) -> None:
        settings = self.settings
        signature = {
            **self._signature,
            "--network": _content(settings.network),
            "--features": _content(settings.features),
            "--ranking-columns": ",".join(settings.ranking_columns),
            "the files of --out": "\t".join(sorted(self._kinds)),  # a new one would lack features
        }
        self._journal = Journal(self.work, signature)
        self._open_files.callback(self._remove_if_empty)
        self._open_files.callback(_close, self._journal.close)
        self.skipped = SkippedTable(self.work)
        self._open_files.callback(_close, self.skipped.spool.close)
        self._writers: list[Writer] = []
        for name, kind in self._kinds.items():
            self._writers.append(kind(self.work, name, settings))
            self._open_files.callback(_close, self._writers[-1].close)

    def _remove_if_empty(self) -> None:
        if not self._is_published and not self._journal.features:
            shutil.rmtree(self.work, ignore_errors=True)

    @property
    def resumed(self) -> int:
        """Features that are finished, those of earlier processes included."""
        return self._journal.features

    def was_done(self, feature: Feature) -> bool:
        """Return whether an earlier process has finished a feature; ask once for each."""
        return self._journal.was_done(feature)

    def write(self, annotation: Annotation) -> None:
        """Add an annotation to all files."""
        with disk_errors(self.target):
            for writer in self._writers:
                writer.write(annotation)
            sizes = {writer.spool.path.name: writer.spool.flush() for writer in self._writers}
            self._journal.add(annotation.feature, sizes, bool(annotation.candidates))

    def counts(self, records: int | None = None) -> dict[str, int]:
        """Count records read, annotated and skipped; features, and those with candidates.

        Parameters
        ----------
        records : int, optional
            That were read; by default what is accounted for.
        """
        annotated, skipped = self._journal.spectra, self.skipped.count
        total = annotated + skipped if records is None else records
        return {
            "records": total,
            "answered": annotated,
            "set_aside": skipped,
            "unaccounted": total - annotated - skipped,
            "features": self._journal.features,
            "with_candidates": self._journal.with_candidates,
        }

    def finish(
        self,
        *,
        records: int | None = None,
        inputs: Mapping[Path, str | None] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Complete all files and give the output its name.

        Parameters
        ----------
        records : int, optional
            As in `counts`.
        inputs : mapping of Path to str or None, optional
            SHA-256 of files of spectra when they were read; None to compute it now.
        more : mapping, optional
            Further entries of ``run.json``.

        Returns
        -------
        list of str
            What the user should read: features that no row of a table has, and the like.
        """
        with disk_errors(self.target):
            self.skipped.spool.close()  # writers may read it
            lines = []
            for writer in self._writers:
                writer.settings = replace(writer.settings, run=more or {})
                lines += writer.finish()
            self._journal.close()
            if self.is_folder:
                record = plain_data(self._record(self.counts(records), inputs or {}, more or {}))
                text = json.dumps(record, indent=2, allow_nan=False) + "\n"
                (self.work / RUN).write_text(text, "utf-8")
            self._ensure_replaceable()  # it may have been changed meanwhile
            self._publish()
        return lines

    def _record(
        self, counts: Mapping[str, int], inputs: Mapping[Path, str | None], more: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return all that ``run.json`` holds."""
        searched = self.settings.searched
        return {
            "kind": KIND,
            "version": VERSION,
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - self._began, 3),
            "counts": counts,
            "files": sorted(self._names),
            "options": self.settings.options,
            "inputs": [_checksum(path, sha256) for path, sha256 in inputs.items()],
            "bundle": searched.get("model", {}),
            "database": searched.get("database", {}),
            "prior": searched.get("prior"),
            "versions": versions(*PACKAGES),
            **more,
            "written": {name: measured(self.work / name) for name in sorted(self._names - {RUN})},
        }

    def _publish(self) -> None:
        if self.is_folder:
            for path in self.work.iterdir():
                if path.name not in self._names:
                    path.unlink()
            publish(self.work, self.target)
        else:
            publish(self.work / self.target.name, self.target)
            discard(self.work, self.target)
        self._is_published = True

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close all files; what is not complete stays under its partial name, if not empty.

        Raises
        ------
        WriteError
            The disk is full: also where a reader was reporting skipped records at the time.
        """
        self._open_files.close()
        reason = disk_error_reason(error) if isinstance(error, Exception) else None
        if reason is not None and not isinstance(error, WriteError):
            raise WriteError(self.target, f"cannot be written ({reason})") from error

    def _ensure_replaceable(self) -> None:
        """Refuse to replace what annotate has not written, or what was changed since."""
        target = self.target
        if not target.exists():
            return
        if not self.is_folder:
            if not self._force and not is_own_file(target):
                raise RunError(f"{target}: exists and is no output of annotate; {_REMEDY}")
            return
        if not target.is_dir():
            raise RunError(f"{target}: is a file, expected a folder to make")
        if target.is_mount():
            raise RunError(
                f"{target}: is a mount point and cannot be replaced; name a folder in it"
            )
        present = {path.name for path in target.iterdir()}
        if not present:
            return
        try:
            record = read_object(target / RUN, RunError) if RUN in present else {}
        except RunError:
            if not self._force:
                raise
            record = {}
        files, is_own = record.get("files"), record.get("kind") == KIND
        listed = set(files) if is_own and isinstance(files, list) else set()
        foreign = sorted(present - self._names - {RUN} - listed)
        if not is_own and (foreign or not self._force):
            remedy = "name another --out" if foreign else _REMEDY
            raise RunError(f"{target}: exists and is no output of annotate; {remedy}")
        if foreign:
            raise RunError(
                f"{target}: holds {foreign[0]}, which is not its own; move it, or name another "
                "--out"
            )
        written = record.get("written")
        if self._force or not isinstance(written, dict):
            return
        for name in sorted(present & written.keys()):
            if measured(target / name) != written[name]:
                raise RunError(f"{target}: {name} was changed since annotate wrote it; {_REMEDY}")


def is_own_file(path: Path) -> bool:
    """Return whether a file is empty, or has the signature of the writer for its suffix."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    suffix = suffix_of(path.name)
    suffixes = (suffix, _JOINED) if suffix == _CSV else (suffix,)
    return not head or any(SUFFIXES[suffix].signature.match(head) for suffix in suffixes)


def _content(path: Path | None) -> str:
    """Return path and SHA-256 of a file that annotations are joined to."""
    try:
        return "" if path is None else f"{path.resolve()} {content_hash(path)}"
    except OSError:
        return str(path)  # which its writer refuses


def ensure_not_read(out: Path, read: Iterable[StrPath]) -> None:
    """Refuse an output that is read, lies in a folder that is read, or holds what is read.

    Raises
    ------
    RunError
    """
    paths = [Path(path) for path in read]
    work = out.resolve().with_name(out.resolve().name + _PARTIAL)
    for target in (out, work):
        if reason := overlap(target, paths):
            raise RunError(f"{target}: {reason}; name another --out")


def _close(close: Callable[[], None]) -> None:
    """Close a file at the end, also on a full disk, which is reported elsewhere."""
    with contextlib.suppress(OSError):
        close()


def _checksum(path: Path, sha256: str | None) -> dict[str, Any]:
    """Return path, size and SHA-256 of a file or folder; what cannot be read has none."""
    try:
        size = path.stat().st_size if path.is_file() else None
        return {"path": path, "bytes": size, "sha256": sha256 or content_hash(path)}
    except OSError:
        return {"path": path, "bytes": None, "sha256": None}


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
        self._done[key] -= 1
        return self._done[key] >= 0

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
        """Read all complete notes, and cut files to the last of them; returns where it ends."""
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
