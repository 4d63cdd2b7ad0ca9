"""Several runs side by side, each in a process of its own."""

import multiprocessing
import os
import queue
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import Any

from mzseek.errors import RunError
from mzseek.files import StrPath
from mzseek.runs.run import Run
from mzseek.training.options import Options
from mzseek.work.engine import Engine, begin_worker, kill_all, signals_kept
from mzseek.work.memory import keep_freed_memory
from mzseek.work.progress import Progress, Say, silent, unheard

_POLL = 0.2  # seconds
_told: Any = None  # in each process, the queue to whoever watches


def train_several(
    data: StrPath,
    wanted: dict[str, Options],
    out: StrPath,
    *,
    processes: int,
    engine: Engine | None = None,
    progress: Progress = silent,
    say: Say = unheard,
) -> dict[str, Run]:
    """Train runs side by side, one thread each.

    On a few cores that takes less time than one run after the other with all of them, since no
    thread waits for another.

    Parameters
    ----------
    data : Path
        Prepared folder.
    wanted : dict of str to Options
        By name; each run goes into a folder of its name, and no two into one.
    out : Path
        Folder of the runs. Runs that have ended with the same options are left as they are.
    processes : int
        Runs at a time.
    engine : Engine, optional
        Train elsewhere, such as on a Ray cluster whose machines see both folders. A run whose
        worker dies goes on from its last validation on another. Progress is then told by run.
    progress : callable of (run's name, step, steps)
    say : callable of str
        Gets the warnings of each run.

    Returns
    -------
    dict of str to Run

    Raises
    ------
    RunError
        Two names are one folder.
    """
    data = Path(data)
    out = Path(out)
    _check_folders(wanted, out)
    if engine is not None:
        return _train_on(engine, data, wanted, out, progress)
    context = multiprocessing.get_context("spawn")
    with signals_kept():
        told = context.Queue()
    with ProcessPoolExecutor(
        processes, mp_context=context, initializer=_begin, initargs=(told,)
    ) as pool:
        pending: dict[str, Future[None]] = {}
        try:
            with signals_kept():
                for name, options in wanted.items():
                    job = (data, replace(options, threads=1), out / name, name)
                    pending[name] = pool.submit(_train_one, *job)
            while not all(future.done() for future in pending.values()):
                _pass_on(told, progress, say)
                for future in pending.values():
                    if future.done():
                        future.result()  # a run that has failed keeps the next from being begun
        except KeyboardInterrupt:
            kill_all(pool._processes or ())  # each can go on from its last validation
            raise
        except BrokenProcessPool as error:
            raise RunError("a run was killed from outside (is there enough memory?)") from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    _pass_on(told, progress, say)  # what they said last is there once they have ended
    return {name: Run.open(out / name) for name in wanted}


def _check_folders(wanted: dict[str, Options], out: Path) -> None:
    """Refuse names that are one folder: one run would be trained over the other."""
    owners: dict[Path, str] = {}
    for name in wanted:
        owner = owners.setdefault((out / name).resolve(), name)
        if owner != name:
            raise RunError(f"{out / name}: is the folder of two runs, {owner!r} and {name!r}")


def _train_on(
    engine: Engine, data: Path, wanted: dict[str, Options], out: Path, progress: Progress
) -> dict[str, Run]:
    """Train runs on an engine, one a batch."""
    data, out = data.resolve(), out.resolve()
    jobs = [
        (data, replace(options, threads=1), out / name, name) for name, options in wanted.items()
    ]
    for name, _ in zip(wanted, engine.results(_train_job, jobs), strict=True):
        progress(name, 1, 1)
    return {name: Run.open(out / name) for name in wanted}


def _train_job(job: tuple[Path, Options, Path, str]) -> str:
    _train_one(*job)
    return job[3]


def _begin(told: Any) -> None:
    """Make a process ready: it tells by a queue, and ends with its parent, also a killed one."""
    global _told
    _told = told
    keep_freed_memory()
    begin_worker()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _train_one(data: Path, options: Options, out: Path, name: str) -> None:
    from mzseek.prepared.reader import Prepared
    from mzseek.training.train import train

    def note(stage: str, done: int, total: int | None = None) -> None:
        if _told is not None and stage == "training" and (done % 20 == 0 or done == total):
            _told.put(("step", name, done, total))

    def say(line: str) -> None:
        if _told is not None and line.startswith("warning"):
            _told.put(("say", f"{name}: {line}", 0, 0))

    train(Prepared.open(data), options, out, resume=True, progress=note, say=say)


def _pass_on(told: Any, progress: Progress, say: Say) -> None:
    """Hand what the processes have told to whoever watches."""
    while True:
        try:
            kind, name, done, total = told.get(timeout=_POLL)
        except queue.Empty:
            return
        if kind == "step":
            progress(name, done, total)
        else:
            say(name)
