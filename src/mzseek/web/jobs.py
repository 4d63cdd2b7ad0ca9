"""Jobs: accepted, given to workers, followed, cancelled, expired."""

import asyncio
import contextlib
import logging
import os
import re
import secrets
import shlex
import shutil
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, BinaryIO

from mzseek.web.errors import ApiError
from mzseek.web.frames import Message
from mzseek.web.job_files import (
    CANDIDATES,
    DRAWINGS,
    FEATURES,
    FORMATS,
    JSON,
    NETWORK,
    ROWS,
    SPECTRA,
    Format,
    JobFolder,
    Lines,
    safe_name,
)
from mzseek.web.pool import Pool
from mzseek.web.settings import ServerSettings
from mzseek.web.store import (
    CANCELLED,
    DONE,
    FAILED,
    OPEN,
    QUEUED,
    RUNNING,
    Job,
    JobStore,
    time_text,
)

LOG = logging.getLogger("mzseek.web")
_ID_BYTES = 24
_ID = re.compile(r"[A-Za-z0-9_-]{32}")
_LOOK = 0.05  # seconds between looks whether a job has stopped
_OPEN_JOBS = 4  # of a worker
_SMALL_JOB, _SMALL_JOBS = 1_000_000, 32  # bytes: so small ones need not wait for a large one
_MAX_ATTEMPTS = 3
_TICK = 5.0  # seconds between looks at run times and expiry
_STORE_EVERY = 2.0  # seconds between updates of the progress in the store
_STOPPING = 10.0  # seconds that a worker may take to stop a job
_HEARTBEAT = 15.0  # seconds without an event after which a comment is sent
_COPY = 1 << 20
_CANCELLED, _TIMEOUT = "cancelled", "timeout"


@dataclass(frozen=True)
class Upload:
    """A file that a client has sent.

    Attributes
    ----------
    kind : str
        spectra, candidates, features or network.
    name : str
        As the client calls it; its letters are replaced where they are not safe.
    file : binary file
    """

    kind: str
    name: str
    file: BinaryIO


@dataclass(frozen=True)
class Download:
    """A file of results for a client.

    Attributes
    ----------
    path : Path
    name : str
    media_type : str
    is_temporary : bool
        Whether the file is to be removed afterwards.
    """

    path: Path
    name: str
    media_type: str
    is_temporary: bool = False


class Jobs:
    """All jobs of a server.

    Parameters
    ----------
    settings : ServerSettings
    command : callable
        Returns the command line for names of files, options and a name of candidates or None.
    """

    def __init__(
        self,
        settings: ServerSettings,
        command: Callable[[Sequence[str], Mapping[str, Any], str | None], str],
    ) -> None:
        self.settings, self._command = settings, command
        self._folder = settings.data_dir / "jobs"
        self._folder.mkdir(parents=True, exist_ok=True)
        self.store = JobStore(settings.data_dir / "jobs.sqlite")
        self.pool: Pool | None = None
        self._lines = Lines()
        self._watchers: dict[str, set[asyncio.Event]] = defaultdict(set)
        self._progress: dict[str, tuple[int, int | None]] = {}
        self._stored: dict[str, float] = {}
        self._stopping: dict[str, tuple[str, float]] = {}  # why, and until when to wait
        self._ticker: asyncio.Task[None] | None = None

    async def start(self, pool: Pool) -> None:
        """Take up the jobs of a server that has ended."""
        self.pool = pool
        for job in self.store.of_state(RUNNING):
            self.store.update(job.id, state=QUEUED)
        ids = self.store.ids()
        for path in self._folder.iterdir():  # uploads of requests that were cut off
            if _ID.fullmatch(path.name) and path.name not in ids and _holds_uploads_alone(path):
                shutil.rmtree(path, ignore_errors=True)
        self._ticker = asyncio.create_task(self._tick())

    async def stop(self) -> None:
        """Store what is known, and close the store."""
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.gather(self._ticker, return_exceptions=True)
        for id, (done, total) in self._progress.items():
            self.store.update(id, done=done, total=total)
        self.store.close()

    # What clients ask for.

    async def create(
        self, uploads: Sequence[Upload], options: Mapping[str, Any], owner: str | None = None
    ) -> Job:
        """Accept a job.

        Raises
        ------
        ApiError
            There are too many, or there is no room, or no file of spectra.
        """
        if not any(upload.kind == SPECTRA for upload in uploads):
            raise ApiError("invalid", "expected at least one file of spectra", "files")
        self._check_room(0)
        id, now = secrets.token_urlsafe(_ID_BYTES), time.time()
        names = await asyncio.to_thread(self._save, self._folder / id, uploads)
        size = self.folder(id).size()
        try:
            self._check_room(size)  # others may have come meanwhile
        except ApiError:
            shutil.rmtree(self._folder / id, ignore_errors=True)
            raise
        candidates = next((name for kind, name in names if kind == CANDIDATES), None)
        spectra = [name for kind, name in names if kind == SPECTRA]
        command = self._command(spectra, options, candidates)
        for kind, name in names:
            if kind in (FEATURES, NETWORK):
                command += f" --{kind} {shlex.quote(name)}"
        job = Job(
            id=id, owner=owner, state=QUEUED, created=now, started=None,
            expires=now + self.settings.retention, options=options,
            files=[name for _, name in names], command=command,
            bytes=size, done=0, total=None, attempts=0, error=None,
            summary=None,
        )  # fmt: skip
        self.store.add(job)
        self.assign()
        return job

    def _check_room(self, size: int) -> None:
        """Refuse a job whose uploads have so many bytes if there is no room for it."""
        most = self.settings.limits.jobs
        if len(self.store.of_state(*OPEN)) >= most:
            raise ApiError("too_many_jobs", f"{most:,} jobs wait or run already: try later")
        if self.store.bytes() + size >= self.settings.quota:
            raise ApiError("quota_exceeded", "there is no room for more jobs: delete some first")

    def get(self, id: str) -> Job:
        """Return a job with its present progress; raise `ApiError` if there is none."""
        job = self.store.get(id)
        if job is None:
            raise ApiError("no_such_job", "there is no job with this id, or not any more")
        if job.is_open and id in self._progress:
            done, total = self._progress[id]
            return replace(job, done=done, total=total)
        return job

    def describe(self, job: Job) -> dict[str, Any]:
        """Return what clients are told of a job."""
        return {
            "id": job.id,
            "state": job.state,
            "progress": {"done": job.done, "total": job.total},
            "error": job.error,
            "created": time_text(job.created),
            "expires": time_text(job.expires),
            "options": job.options,
            "files": list(job.files),
            "command": job.command,
            "summary": job.summary,
            "formats": self.folder(job.id).formats() if job.state == DONE else [],
        }

    def owned(self, owner: str | None) -> list[Job]:
        """Return the jobs of a browser session, the newest first."""
        jobs = [] if owner is None else self.store.of_owner(owner, self.settings.limits.rows)
        return [self.get(job.id) for job in jobs]

    def cancel(self, id: str) -> Job:
        """Stop a job; what it has annotated can still be looked at."""
        job = self.get(id)
        if not job.is_open:
            raise ApiError("already_ended", f"the job is {job.state}")
        if not self.store.move(id, [QUEUED], CANCELLED, expires=self._expiry()):
            self._stop(id, _CANCELLED)
        self._notify(id)
        return self.get(id)

    async def delete(self, id: str) -> None:
        """Remove a job with all its files; one that runs is stopped first."""
        job = self.get(id)
        self.store.delete(id)
        if job.state == RUNNING and self.pool is not None:
            self.pool.cancel_job(id)
            until = time.monotonic() + _STOPPING
            while self.pool.has_job(id) and time.monotonic() < until:
                await asyncio.sleep(_LOOK)
            self.pool.drop_job(id)
        self._forget(id)
        self._notify(id)
        await asyncio.to_thread(shutil.rmtree, self._folder / id, ignore_errors=True)

    def rows(self, id: str, offset: int, limit: int) -> tuple[list[Any], int]:
        """Return rows of finished features, and how many there are so far."""
        return self._read(id, ROWS, offset, limit)

    def drawing(self, id: str, number: int) -> dict[str, Any]:
        """Return what the drawings of a feature, from 0, are made from."""
        return self._feature(id, DRAWINGS, number)

    def feature(self, id: str, number: int) -> dict[str, Any]:
        """Return the record of a feature, from 0, as the JSON export has it."""
        return self._feature(id, JSON, number)

    def result(self, id: str, format_: str) -> Download:
        """Return a file of results; a zip archive is made and must be removed."""
        job = self.get(id)
        if format_ not in FORMATS:
            raise ApiError("no_such_format", f"expected one of {', '.join(FORMATS)}")
        if job.state != DONE:
            raise ApiError("not_finished", f"the job is {job.state}")
        folder, known = self.folder(id), FORMATS[format_]
        if format_ == "zip":
            with NamedTemporaryFile(
                dir=self.settings.data_dir, prefix=".download-", suffix=".zip", delete=False
            ) as file:
                path = Path(file.name)
            folder.write_zip(path)
            return Download(path, known.file, known.media_type, is_temporary=True)
        path_of_file = folder.file(format_)
        if path_of_file is None:
            raise ApiError("no_such_format", f"this job has no {format_}: {_needed(format_)}")
        return Download(path_of_file, path_of_file.name, Format(path_of_file.name).media_type)

    async def events(self, id: str, seen: int = 0) -> AsyncIterator[tuple[str, int, Any]]:
        """Yield what happens to a job: name, rows so far, and data of each event.

        ``progress``, ``result`` with the row of each feature from number `seen`, and ``end``.
        ``ping`` comes now and then when nothing else does.
        """
        self.get(id)
        event, told = asyncio.Event(), None
        self._watchers[id].add(event)
        try:
            while True:
                event.clear()
                job = self.store.get(id)
                rows, _ = ([], 0) if job is None else self._read(id, ROWS, seen, 1_000)
                for row in rows:
                    seen += 1
                    yield "result", seen, row
                if job is None or (not job.is_open and not rows):
                    state = "deleted" if job is None else job.state
                    yield "end", seen, {"state": state, "error": job.error if job else None}
                    return
                done, total = self._progress.get(id, (job.done, job.total))
                if (job.state, done, total) != told:
                    told = job.state, done, total
                    yield "progress", seen, {"state": job.state, "done": done, "total": total}
                if rows:
                    continue
                try:
                    await asyncio.wait_for(event.wait(), _HEARTBEAT)
                except TimeoutError:
                    yield "ping", seen, None
        finally:
            self._watchers[id].discard(event)
            if not self._watchers[id]:
                self._watchers.pop(id, None)

    # What happens between the store and the workers.

    def assign(self) -> None:
        """Give jobs that wait to workers with room for them, the oldest first."""
        if self.pool is None:
            return
        for job in self.store.of_state(QUEUED):
            is_large = job.bytes >= _SMALL_JOB
            most = _OPEN_JOBS if is_large else _SMALL_JOBS
            folder = str(self.folder(job.id).path)
            if self.pool.open_job(job.id, folder, job.options, most, is_large=is_large):
                self.store.update(job.id, state=RUNNING, started=job.started or time.time())
                self._notify(job.id)

    def message(self, message: Message) -> None:
        """Note what a worker says about a job."""
        id, state = message["job"], message["state"]
        if state == RUNNING:
            self._progress[id] = message["done"], message["total"]
            now = time.monotonic()
            if now - self._stored.get(id, 0.0) > _STORE_EVERY:
                self._stored[id] = now
                self.store.update(id, done=message["done"], total=message["total"])
        else:
            self._end(id, state, message.get("error"), message.get("summary"))
        self._notify(id)

    def lost(self, ids: Sequence[str], why: str) -> None:
        """Give back the jobs of a worker that has ended; one that ends workers is given up."""
        for id in ids:
            job = self.store.get(id)
            if job is None or job.state != RUNNING:
                continue
            if id in self._stopping:
                self._end(id, CANCELLED, None, None)
            elif job.attempts + 1 >= _MAX_ATTEMPTS:
                message = (
                    f"{_MAX_ATTEMPTS} worker processes ended while they annotated this job (is "
                    "there enough memory?)"
                )
                error = {"code": "worker_lost", "message": message, "field": None}
                self._end(id, FAILED, error, None)
            else:
                # What the server has killed for another reason is not its fault.
                attempts = job.attempts + (not why)
                self.store.update(id, state=QUEUED, attempts=attempts)
            self._notify(id)
        self.assign()

    def _end(
        self, id: str, state: str, error: Mapping[str, Any] | None,
        summary: Mapping[str, Any] | None,
    ) -> None:  # fmt: skip
        why, _ = self._stopping.pop(id, ("", 0.0))
        if state == CANCELLED and why == _TIMEOUT:
            seconds = self.settings.limits.job_seconds
            message = f"the job took longer than {seconds:g} s, which is the limit of this server"
            state, error = FAILED, {"code": "timeout", "message": message, "field": None}
        done, total = self._progress.pop(id, (None, None))
        values: dict[str, Any] = {} if done is None else {"done": done, "total": total}
        if state == DONE and summary is not None:
            features = summary["counts"]["features"]
            values = {"done": features, "total": features}
        self.store.move(
            id, [RUNNING], state, error=error, summary=summary, expires=self._expiry(),
            bytes=self.folder(id).size(), **values,
        )  # fmt: skip
        self._forget(id)

    def _stop(self, id: str, why: str) -> None:
        self._stopping[id] = why, time.monotonic() + _STOPPING
        if self.pool is not None:
            self.pool.cancel_job(id)

    async def _tick(self) -> None:
        """Stop jobs that take too long, remove those whose time is over."""
        while True:
            try:
                await self.look_after()
            except Exception as error:  # a full disk, say, must not end this
                LOG.error("jobs could not be looked after (%s)", type(error).__name__)
            await asyncio.sleep(_TICK)

    async def look_after(self) -> None:
        """Stop jobs that take too long, remove those whose time is over, give work to workers."""
        now = time.time()
        for job in self.store.of_state(RUNNING):
            is_over = now - (job.started or now) > self.settings.limits.job_seconds
            if is_over and job.id not in self._stopping:
                self._stop(job.id, _TIMEOUT)
        for id, (_, until) in list(self._stopping.items()):
            if time.monotonic() > until and self.pool is not None:
                self.pool.drop_job(id)
                self._end(id, CANCELLED, None, None)
                self._notify(id)
        for job in self.store.expired(now):
            await self.delete(job.id)
        self.assign()

    def _expiry(self) -> float:
        return time.time() + self.settings.retention

    def _notify(self, id: str) -> None:
        for event in self._watchers.get(id, ()):
            event.set()

    def _forget(self, id: str) -> None:
        self._progress.pop(id, None)
        self._stored.pop(id, None)
        self._stopping.pop(id, None)
        self._lines.forget(id)

    def folder(self, id: str) -> JobFolder:
        """Return the folder of a job that is in the store."""
        return JobFolder(self._folder / id)

    def _read(self, id: str, name: str, offset: int, limit: int) -> tuple[list[Any], int]:
        self.get(id)
        path = self.folder(id).result(name)
        if path is None:
            return [], 0
        with contextlib.suppress(FileNotFoundError):  # the folder gets its final name just now
            return self._lines.read(id, path, offset, limit)
        path = self.folder(id).result(name)
        return ([], 0) if path is None else self._lines.read(id, path, offset, limit)

    def _feature(self, id: str, name: str, number: int) -> dict[str, Any]:
        values, total = self._read(id, name, number, 1)
        if not values:
            raise ApiError("no_such_feature", f"the job has {total:,} features so far")
        feature: dict[str, Any] = values[0]
        return feature

    def _save(self, folder: Path, uploads: Sequence[Upload]) -> list[tuple[str, str]]:
        """Write uploads into the folder of a job; return kind and name of each."""
        taken: set[tuple[str, str]] = set()
        names = []
        try:
            for upload in uploads:
                target = folder / "inputs" / upload.kind
                target.mkdir(parents=True, exist_ok=True)
                name = _unused(safe_name(upload.name, upload.kind), upload.kind, taken)
                with (target / name).open("xb") as file:
                    shutil.copyfileobj(upload.file, file, _COPY)
                    file.flush()
                    os.fsync(file.fileno())
                names.append((upload.kind, name))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return names


def _holds_uploads_alone(folder: Path) -> bool:
    return folder.is_dir() and {path.name for path in folder.iterdir()} <= {"inputs"}


def _unused(name: str, kind: str, taken: set[tuple[str, str]]) -> str:
    """Return a name that no other file of the kind has; number it if need be."""
    stem, dot, suffix = name.partition(".")
    number = 1
    while (kind, name.casefold()) in taken:
        number += 1
        name = f"{stem}-{number}{dot}{suffix}"
    taken.add((kind, name.casefold()))
    return name


def _needed(format_: str) -> str:
    return {
        "features": "upload a feature table with it",
        "graphml": "upload a network with it",
    }.get(format_, "it was not written")
