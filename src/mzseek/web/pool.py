"""Worker processes: started, given work, watched, and started anew when one has ended."""

import asyncio
import contextlib
import logging
import os
import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from mzseek.web.errors import ApiError
from mzseek.web.frames import Message, packed, read_async
from mzseek.web.settings import ServerSettings

LOG = logging.getLogger("mzseek.web")
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_LONGEST_PAUSE = 30.0  # seconds before a worker that ends again and again is started anew
_MAX_STARTS = 5  # in a row, without the worker having become ready
_BATCH = 8  # small requests that a worker does together, in half the time
_SMALL = 20_000  # characters of the spectra of a request that others may wait for
_CHARACTERS = 20  # of a peak
JobMessage = Callable[[Message], None]
JobsLost = Callable[[list[str], str], None]


@dataclass(eq=False)
class _Task:
    """A single request that waits for its result."""

    id: int
    name: str
    request: Mapping[str, Any]
    result: "asyncio.Future[bytes]"
    is_repeated: bool = False

    def joins(self, other: "_Task") -> bool:
        """Return whether a worker can do both together."""
        return (
            self._is_small
            and other._is_small
            and all(self.request[name] == other.request[name] for name in ("options", "instrument"))
        )

    @property
    def _is_small(self) -> bool:
        """Whether it is one of many annotations of one spectrum or a few, and no suspect."""
        request = self.request
        if self.name != "annotate" or self.is_repeated or request["candidates"] is not None:
            return False
        return len(request["text"] or "") + _CHARACTERS * len(request["peaks"] or ()) < _SMALL


@dataclass(eq=False)
class _Worker:
    """A worker process and what it is at."""

    number: int
    process: asyncio.subprocess.Process | None = None
    is_ready: bool = False
    tasks: dict[int, _Task] = field(default_factory=dict)
    jobs: set[str] = field(default_factory=set)
    timer: asyncio.TimerHandle | None = None
    why_killed: str = ""

    def send(self, message: Message) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.write(packed(message))


class Pool:
    """The workers of a server.

    Single requests go to the first worker that is free; where there are several workers, the first
    has no jobs, so that a request waits for no feature of a job. Where more small requests of
    equal options wait than there are workers, a worker gets several of them together. With a
    cluster, the first worker does all but large jobs, which the others have one each of.

    Parameters
    ----------
    settings : ServerSettings
    job_message : callable
        Gets each message about a job.
    jobs_lost : callable
        Gets the jobs of a worker that has ended, and why.
    room : callable
        Called when a worker becomes ready, or a job has ended.

    Attributes
    ----------
    reason : str
        Why the workers cannot be used; empty if they can.
    restarts : int
        Workers that were started anew.
    """

    def __init__(
        self, settings: ServerSettings, job_message: JobMessage, jobs_lost: JobsLost,
        room: Callable[[], None],
    ) -> None:  # fmt: skip
        self.settings, self.reason, self.restarts = settings, "", 0
        self._job_message, self._jobs_lost, self._room = job_message, jobs_lost, room
        self._workers = [_Worker(number) for number in range(settings.workers)]
        self._waiting: deque[_Task] = deque()
        self._ids = count(1)
        self._loops: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start all workers; they become ready later."""
        self._loops = [asyncio.create_task(self._keep(worker)) for worker in self._workers]

    async def stop(self) -> None:
        """End all workers at once. Their jobs are resumed when the server starts again."""
        for loop in self._loops:
            loop.cancel()
        for worker in self._workers:
            self._kill(worker, "the server was stopped")
        await asyncio.gather(*self._loops, return_exceptions=True)

    @property
    def is_ready(self) -> bool:
        """Whether a worker has opened the model."""
        return any(worker.is_ready for worker in self._workers)

    @property
    def ready(self) -> int:
        """Workers that have opened the model."""
        return sum(worker.is_ready for worker in self._workers)

    @property
    def waiting(self) -> int:
        """Single requests that wait for a worker."""
        return len(self._waiting)

    async def call(self, name: str, request: Mapping[str, Any]) -> bytes:
        """Return the result of a task of `mzseek.web.tasks`, as JSON.

        Raises
        ------
        ApiError
            The task has failed, takes too long, or too many others wait.
        """
        if self.reason:
            raise ApiError("unavailable", self.reason)
        if len(self._waiting) >= self.settings.limits.waiting:
            raise ApiError("busy", f"{len(self._waiting):,} requests wait for a worker: try later")
        task = _Task(next(self._ids), name, request, asyncio.get_running_loop().create_future())
        self._waiting.append(task)
        self._dispatch()
        try:
            return await task.result
        finally:
            with contextlib.suppress(ValueError):  # the client may be gone before its turn
                self._waiting.remove(task)

    def open_job(
        self, id: str, folder: str, options: Mapping[str, Any], most: int, *, is_large: bool
    ) -> bool:
        """Give a job to the worker with the fewest; return False if all have so many."""
        cluster = self.settings.cluster if is_large else None
        for_jobs = self._workers[1:] or self._workers
        if cluster is not None:
            most = 1
        elif self.settings.cluster is not None:
            for_jobs = self._workers[:1]
        ready = [worker for worker in for_jobs if worker.is_ready and len(worker.jobs) < most]
        if not ready:
            return False
        worker = min(ready, key=lambda worker: len(worker.jobs))
        worker.jobs.add(id)
        worker.send(
            {"do": "job", "id": id, "folder": folder, "options": dict(options), "cluster": cluster}
        )
        return True

    def cancel_job(self, id: str) -> None:
        """Ask the worker of a job to stop it."""
        for worker in self._workers:
            if id in worker.jobs:
                worker.send({"do": "cancel", "id": id})

    def has_job(self, id: str) -> bool:
        """Return whether a worker is at a job."""
        return any(id in worker.jobs for worker in self._workers)

    def drop_job(self, id: str) -> None:
        """Kill the worker of a job that does not stop."""
        for worker in self._workers:
            if id in worker.jobs:
                worker.jobs.discard(id)
                self._kill(worker, "a job did not stop")

    def _dispatch(self) -> None:
        for worker in self._for_requests:
            if worker.is_ready and not worker.tasks and (tasks := self._next_tasks()):
                worker.tasks = {task.id: task for task in tasks}
                worker.timer = asyncio.get_running_loop().call_later(
                    self.settings.limits.seconds, self._kill, worker, "timeout"
                )
                requests = {task.id: dict(task.request) for task in tasks}
                worker.send({"do": "tasks", "name": tasks[0].name, "requests": requests})

    @property
    def _for_requests(self) -> list[_Worker]:
        return self._workers if self.settings.cluster is None else self._workers[:1]

    def _next_tasks(self) -> list[_Task]:
        """Take the request that has waited longest, and those after it that join it."""
        ready = sum(worker.is_ready for worker in self._for_requests)
        waiting, tasks = self._waiting, list[_Task]()
        most = min(_BATCH, -(-len(waiting) // max(ready, 1)))
        while waiting and len(tasks) < most:
            if waiting[0].result.done():
                waiting.popleft()
            elif not tasks or tasks[0].joins(waiting[0]):
                tasks.append(waiting.popleft())
            else:
                break
        return tasks

    def _kill(self, worker: _Worker, why: str) -> None:
        worker.is_ready, worker.why_killed = False, why
        if worker.process is not None and worker.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                worker.process.kill()

    async def _keep(self, worker: _Worker) -> None:
        """Run a worker, and start it anew whenever it ends."""
        starts = 0
        while True:
            try:
                was_ready = await self._run(worker)
            except OSError as error:
                LOG.error("a worker cannot be started (%s)", error.strerror)
                was_ready = False
            self._lost(worker)
            if self.reason and not self.is_ready:
                self._refuse_all()
                return
            starts = 0 if was_ready else starts + 1
            if starts >= _MAX_STARTS:
                self.reason = "the worker processes end before they are ready (is there memory?)"
                self._refuse_all()
                return
            self.restarts += 1
            await asyncio.sleep(min(2.0**starts - 1, _LONGEST_PAUSE))

    async def _run(self, worker: _Worker) -> bool:
        """Run a worker until it ends; return whether it has been ready."""
        settings = self.settings
        threads = str(max((os.cpu_count() or 1) // settings.workers, 1))
        env = os.environ | {name: os.environ.get(name, threads) for name in _THREADS}
        # What libraries print may name samples.
        errors = None if os.environ.get("MZSEEK_TRACEBACK") else asyncio.subprocess.DEVNULL
        worker.process = process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "mzseek.web.worker", env=env, limit=1 << 24,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=errors,
            start_new_session=os.name != "nt",  # Ctrl-C is for the server
        )  # fmt: skip
        worker.send(settings.for_worker())
        worker.why_killed, was_ready = "", False
        try:
            while process.stdout is not None:
                message, body = await read_async(process.stdout)
                was_ready |= "ready" in message
                self._receive(worker, message, body)
        except (asyncio.IncompleteReadError, EOFError, ConnectionError):
            pass
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            worker.is_ready = False
        await process.wait()
        return was_ready

    def _receive(self, worker: _Worker, message: Message, body: bytes) -> None:
        if "ready" in message:
            worker.is_ready = True
            self._dispatch()
            self._room()
        elif "unusable" in message:
            self.reason = message["unusable"]
            LOG.error("annotations cannot be made: %s", self.reason)
        elif "task" in message:
            self._finish_task(worker, message, body)
        elif message["job"] in worker.jobs:
            if message["state"] != "running":
                worker.jobs.discard(message["job"])
            self._job_message(message)
            self._room()

    def _finish_task(self, worker: _Worker, message: Message, body: bytes) -> None:
        task = worker.tasks.pop(message["task"], None)
        if worker.timer is not None and not worker.tasks:
            worker.timer.cancel()
        if task is not None and not task.result.done():
            if error := message.get("error"):
                task.result.set_exception(_as_exception(error))
            else:
                task.result.set_result(body)
        self._dispatch()

    def _lost(self, worker: _Worker) -> None:
        """Repeat the requests of a worker that has ended, once and one by one; give back jobs."""
        tasks, jobs, why = list(worker.tasks.values()), sorted(worker.jobs), worker.why_killed
        worker.tasks, worker.jobs = {}, set()
        if worker.timer is not None:
            worker.timer.cancel()
        for task in reversed(tasks):
            if task.result.done():
                continue
            if why == "timeout" and len(tasks) == 1:
                seconds = self.settings.limits.seconds
                error = ApiError("timeout", f"it took longer than {seconds:g} s; submit a job")
                task.result.set_exception(error)
            elif task.is_repeated:
                error = ApiError("worker_lost", "the worker process has ended, and so did another")
                task.result.set_exception(error)
            else:
                task.is_repeated = True
                self._waiting.appendleft(task)
        self._dispatch()
        if jobs:
            self._jobs_lost(jobs, why)

    def _refuse_all(self) -> None:
        while self._waiting:
            task = self._waiting.popleft()
            if not task.result.done():
                task.result.set_exception(ApiError("unavailable", self.reason))


def _as_exception(error: Mapping[str, Any]) -> Exception:
    if error["code"] == "internal":
        return RuntimeError(error["message"])
    return ApiError(error["code"], error["message"], error["field"])
