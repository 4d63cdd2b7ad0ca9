"""A worker process: single requests, and jobs feature by feature.

Run by the server as ``python -m mzseek.web.worker``. It reads messages (`mzseek.web.frames`) from
standard input, writes answers to standard output, and ends when its input does. Jobs take turns, a
few features each; a single request waits for these at the most.
"""

import contextlib
import json
import os
import queue
import shutil
import sys
import threading
import time
import traceback
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import chdir
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from mzseek.annotation.annotation import Annotation
from mzseek.annotation.annotator import Annotator
from mzseek.annotation.config import AnnotateConfig
from mzseek.core.errors import BusyError, MzseekError, RunError
from mzseek.export.job import FinishedRun, annotating_files
from mzseek.export.tables import read_skipped
from mzseek.export.writer import Settings, plain_data
from mzseek.parallel import RayEngine
from mzseek.web.errors import ApiError
from mzseek.web.frames import Message, packed, read
from mzseek.web.job_files import CANDIDATES, FEATURES, MORE, NETWORK, ROWS, SPECTRA, JobFolder
from mzseek.web.tasks import TASKS, LimitedFiles, Resources, annotate_together, attempted

_REPORT_EVERY = 0.2  # seconds between messages about the progress of a job
_AT_ONCE = 8  # features of a job: fewer take longer each, more hold up others
_FIRST = 20  # skipped records that a summary lists
_BUSY_WAIT, _BUSY_TRIES = 0.5, 20  # a process that was killed may hold the lock a little longer
# Caffeine: a worker is ready when it has annotated it, and all kernels are compiled.
_WARM_UP: Mapping[str, Any] = {
    "peaks": [[42.0338, 10.0], [69.0447, 25.0], [110.0713, 40.0], [138.0662, 100.0]],
    "precursor_mz": 195.0877,
    "adduct": "[M+H]+",
}


class OpenJob:
    """A job that a worker is at.

    Parameters
    ----------
    id : str
    folder : Path
    options : mapping
    resources : Resources
    send : callable
        Takes a message.
    cluster : str, optional
        Address of a Ray cluster, which annotates its features.
    """

    def __init__(
        self, id: str, folder: Path, options: Mapping[str, Any], resources: Resources,
        send: Callable[..., None], cluster: str | None = None,
    ) -> None:  # fmt: skip
        self._engine = None if cluster is None else RayEngine(address=cluster)
        self.id, self._files, self._options = id, JobFolder(folder), options
        self._resources, self._send = resources, send
        self._reported = 0.0
        self._steps: Generator[Annotation, None, FinishedRun] | None = None
        self._tries, self._not_before, self._is_anew = 0, 0.0, False

    def step(self) -> bool:
        """Annotate the next feature; return whether the job has ended."""
        if time.monotonic() < self._not_before:
            time.sleep(0.01)
            return False
        try:
            with chdir(self._files.inputs / SPECTRA):
                if self._steps is None:
                    self._steps = self._begin()
                next(self._steps)
        except StopIteration as end:
            summary = _summary(end.value)
            if summary["counts"]["features"]:
                self._end(state="done", summary=summary)
            else:
                self._fail(ApiError("bad_spectrum", _why_nothing(summary), "files"))
            return True
        except BusyError as error:
            self._tries, self._steps = self._tries + 1, None
            self._not_before = time.monotonic() + _BUSY_WAIT
            if self._tries < _BUSY_TRIES:
                return False
            self._fail(ApiError("worker_lost", str(error)))
            return True
        except RunError as error:
            # What a killed process has left is of another version, database or library.
            left = self._files.out.with_name("out.partial")
            if self._is_anew or not left.is_dir():
                self._fail(error)
                return True
            shutil.rmtree(left)
            self._is_anew, self._steps = True, None
        except Exception as error:
            self._fail(error)
            return True
        return False

    def close(self) -> None:
        """Stop; what is written stays, so that the job can be resumed."""
        if self._steps is not None:
            with contextlib.suppress(Exception):  # its folder may be gone
                self._steps.close()

    def _begin(self) -> Generator[Annotation, None, FinishedRun]:
        if self._files.is_finished:  # by a process that was killed before it could say so
            record = json.loads((self._files.out / "run.json").read_text("utf-8"))
            return _finished(self._files.out, record)
        names = [Path(path.name) for path in self._files.uploaded(SPECTRA)]
        limits, resources = self._resources.limits, self._resources
        files = LimitedFiles(names, limits["job_spectra"], limits["peaks"])
        candidates = next(iter(self._files.uploaded(CANDIDATES)), None)
        settings = Settings(
            title=" ".join(map(str, names)),
            features=next(iter(self._files.uploaded(FEATURES)), None),
            network=next(iter(self._files.uploaded(NETWORK)), None),
        )

        def open_annotator(config: AnnotateConfig) -> Annotator:
            own_files = candidates is not None or config.features is not None
            return resources.annotator(config, keep=not own_files)

        return annotating_files(
            files, self._files.out, resources.config(self._options, candidates), settings=settings,
            resume=True, at_once=_AT_ONCE if self._engine is None else None, jobs=1,
            engine=self._engine, more=MORE, open_annotator=open_annotator, progress=self._progress,
        )  # fmt: skip

    def _progress(self, stage: str, done: int, total: int | None = None) -> None:
        now = time.monotonic()
        if stage == "features" and (done == total or now - self._reported > _REPORT_EVERY):
            self._reported = now
            self._send(job=self.id, state="running", done=done, total=total)

    def _fail(self, error: Exception) -> None:
        detail = error_of(error)
        for kind in (SPECTRA, CANDIDATES, FEATURES, NETWORK):  # clients know files by their names
            folder = str(self._files.inputs / kind) + os.sep
            detail["message"] = detail["message"].replace(folder, "")
        self._end(state="failed", error=detail)

    def _end(self, **message: Any) -> None:
        self._send(job=self.id, **message)


def _finished(out: Path, record: Mapping[str, Any]) -> Generator[Annotation, None, FinishedRun]:
    """Return what is known of a run that is complete; nothing is left to annotate."""
    yield from ()
    return FinishedRun(out, record["counts"], {}, record["database"], [])


def _summary(finished: FinishedRun) -> dict[str, Any]:
    hidden = str(finished.out)
    lines = [line for line in finished.messages if hidden not in line]
    return {
        "counts": dict(finished.counts),
        "levels": dict(sorted(Counter(_levels(finished.out)).items())),
        "messages": lines,
        "routine": list(finished.routine),
        "skipped": [
            {"where": where, "reason": reason}
            for where, reason in islice(read_skipped(finished.out), _FIRST)
        ],
    }


def _levels(out: Path) -> Iterator[str]:
    """Yield the level of each feature, also of those that another process has annotated."""
    with (out / ROWS).open("rb") as file:
        for line in file:
            yield json.loads(line)["level"]


def _why_nothing(summary: Mapping[str, Any]) -> str:
    """Return why no feature was annotated."""
    if not summary["skipped"]:
        return "the files hold no spectrum"
    first, more = summary["skipped"][0], summary["counts"]["set_aside"] - 1
    text = f"no spectrum can be used: {first['where']}: {first['reason']}"
    return text + (f", and {more:,} more" if more else "")


def error_of(error: Exception) -> dict[str, Any]:
    """Return code, message and field of an error for the client; unforeseen ones are vague."""
    if isinstance(error, MzseekError):
        error = ApiError.of(error)
    if isinstance(error, ApiError):
        detail: dict[str, Any] = error.to_dict()["error"]
        return detail
    # Where it happened, and nothing of the sample.
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}"
    message = f"something unforeseen happened ({type(error).__name__} in {where})"
    return {"code": "internal", "message": message, "field": None}


class Worker:
    """Do what messages say until there are no more.

    Parameters
    ----------
    messages : queue.Queue
        Of messages from the server.
    send : callable
        Takes the fields of a message, and ``body``.
    settings : mapping
        As `ServerSettings.for_worker` returns it.
    """

    def __init__(
        self, messages: "queue.Queue[Message]", send: Callable[..., None], settings: Message
    ) -> None:
        self._messages, self._send = messages, send
        self._resources = Resources(settings)
        self._jobs: OrderedDict[str, OpenJob] = OrderedDict()

    def warm_up(self) -> None:
        """Annotate a spectrum, so that the first request need not wait for the model."""
        options = {"database": next(iter(self._resources.databases)),
                   "library": list(self._resources.library_paths)}  # fmt: skip
        TASKS["annotate"](self._resources, {**_WARM_UP, "options": options})

    def run(self) -> None:
        """Do what messages say; between them, a few features of one job after the other."""
        while True:
            with contextlib.suppress(queue.Empty):
                self._handle(self._messages.get(block=not self._jobs))
            if self._jobs:
                id, job = self._jobs.popitem(last=False)
                if not job.step():
                    self._jobs[id] = job

    def _handle(self, message: Message) -> None:
        match message["do"]:
            case "tasks":
                self._answer(message["name"], message["requests"])
            case "job":
                self._jobs[message["id"]] = OpenJob(
                    message["id"], Path(message["folder"]), message["options"], self._resources,
                    self._send, message["cluster"],
                )  # fmt: skip
            case "cancel":
                if job := self._jobs.pop(message["id"], None):
                    job.close()
                    self._send(job=message["id"], state="cancelled")

    def _answer(self, name: str, requests: Mapping[str, Any]) -> None:
        """Send a result, or an error, for each request."""
        given = list(requests.values())
        if len(given) > 1:
            results = annotate_together(self._resources, given)
        else:
            results = [attempted(TASKS[name], self._resources, given[0])]
        for id, result in zip(map(int, requests), results, strict=True):
            try:
                if isinstance(result, Exception):
                    raise result
                body = json.dumps(plain_data(result), allow_nan=False).encode()
            except Exception as error:
                self._send(task=id, error=error_of(error))
            else:
                self._send(task=id, body=body)


def main() -> None:
    """Run a worker over standard input and output."""
    incoming: BinaryIO = sys.stdin.buffer
    outgoing = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no message
    settings, _ = read(incoming)
    messages: queue.Queue[Message] = queue.Queue()

    def receive() -> None:
        try:
            while True:
                messages.put(read(incoming)[0])
        finally:  # the server has ended
            os._exit(0)

    def send(body: bytes = b"", **message: Any) -> None:
        outgoing.write(packed(message, body))
        outgoing.flush()

    threading.Thread(target=receive, daemon=True).start()
    try:
        worker = Worker(messages, send, settings)
        worker.warm_up()
    except MzseekError as error:
        send(unusable=str(error))
        return
    send(ready=True)
    worker.run()


if __name__ == "__main__":
    main()
