"""Where batches are worked on: in processes of this machine, or on a Ray cluster.

An engine gets batches as they come and gives results in their order, a few batches ahead at the
most, so that memory is bounded and results do not depend on the engine.
"""

import contextlib
import os
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from mzseek.errors import MzseekError

Batch = TypeVar("Batch")
Result = TypeVar("Result")

_AHEAD = 4
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Engine(ABC):
    """Something that works on batches."""

    name: str

    @abstractmethod
    def results(
        self, work: Callable[[Batch], Result], batches: Iterable[Batch]
    ) -> Iterator[Result]:
        """What ``work`` makes of each batch, in order."""


class LocalEngine(Engine):
    """Processes on this machine.

    Parameters
    ----------
    jobs : int, optional
        All cores by default; with one, all is done in this process.
    """

    name = "local"

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs or os.cpu_count() or 1

    def results(
        self, work: Callable[[Batch], Result], batches: Iterable[Batch]
    ) -> Iterator[Result]:
        """See `Engine.results`."""
        if self.jobs == 1:
            for batch in batches:
                try:
                    done = work(batch)
                finally:
                    _hear_ctrl_c()
                yield done
            return
        from joblib.externals.loky import BrokenProcessPool, get_reusable_executor

        # joblib.Parallel bounds what is not done yet, not what nobody has taken yet.
        threads = str(max((os.cpu_count() or 1) // self.jobs, 1))
        env = {name: os.environ.get(name, threads) for name in _THREADS}
        with signals_kept():
            executor = get_reusable_executor(
                max_workers=self.jobs, timeout=300, env=env, initializer=begin_worker
            )
        pending: deque[Any] = deque()
        try:
            for batch in batches:
                with signals_kept():  # processes are started here, and now and then anew
                    pending.append(executor.submit(work, batch))
                if len(pending) >= _AHEAD * self.jobs:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except KeyboardInterrupt:
            stop_workers()  # nobody waits for what they are at
            raise
        except BrokenProcessPool as error:
            raise MzseekError(
                f"one of {self.jobs} processes was killed from outside (is there enough memory?)"
            ) from error
        finally:
            for future in pending:
                future.cancel()


@contextlib.contextmanager
def signals_kept() -> Iterator[None]:
    """Start processes in the block; signals that are blocked here are so there, and stay so.

    Python lets two of them through again when it starts the process that clears up after others.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _hear_ctrl_c() -> None:
    """Undo what RDKit's matching of substructures leaves behind: its own handler of SIGINT."""
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGINT)
        if handler is not None:
            signal.signal(signal.SIGINT, handler)


def begin_worker() -> None:
    """Make a process ready to work for another: Ctrl-C is for that one, and it ends this one."""
    if not hasattr(signal, "pthread_sigmask"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return
    # Blocked, not ignored: RDKit puts a handler of its own in the place of any other.
    signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGINT})


def stop_workers() -> None:
    """End the processes of the local engine at once, whatever they are at."""
    loky = sys.modules.get("joblib.externals.loky.reusable_executor")
    if loky is not None and loky._executor is not None:
        # Told to kill them itself, loky's thread stumbles over what they had not begun.
        kill_all(loky._executor._processes)
        loky._executor.shutdown(wait=True)


def kill_all(processes: Iterable[int]) -> None:
    """End processes by their numbers; those that have ended are no matter."""
    for process in list(processes):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))


class RayEngine(Engine):
    """Workers of a Ray cluster; batches of a worker that dies are given to another.

    Parameters
    ----------
    jobs : int, optional
        Batches that are worked on at a time; by default one for each CPU of the cluster.
    address : str, optional
        Of a running cluster; by default one is started on this machine.
    """

    name = "ray"

    def __init__(self, jobs: int | None = None, address: str | None = None) -> None:
        self.jobs, self.address = jobs, address

    def results(
        self, work: Callable[[Batch], Result], batches: Iterable[Batch]
    ) -> Iterator[Result]:
        """See `Engine.results`."""
        ray = _ray()
        started = not ray.is_initialized()
        if started:
            try:
                ray.init(
                    address=self.address, num_cpus=None if self.address else self.jobs,
                    include_dashboard=False, log_to_driver=False, logging_level="ERROR",
                )  # fmt: skip
            except (ConnectionError, RuntimeError, ValueError) as error:
                reason = str(error).splitlines()[0]
                raise MzseekError(f"no Ray cluster at {self.address}: {reason}") from error
        try:
            yield from self._ordered(ray, work, batches)
        finally:
            if started:
                ray.shutdown()

    def _ordered(
        self, ray: Any, work: Callable[[Batch], Result], batches: Iterable[Batch]
    ) -> Iterator[Result]:
        def task(batch: Batch) -> Result:  # Ray takes no partial
            return work(batch)

        def result(of: Any) -> Result:
            try:
                done: Result = ray.get(of)
            except ray.exceptions.RayTaskError as error:
                raise (error.cause or error) from None  # without Ray's wrapping
            return done

        remote = ray.remote(num_cpus=1, max_retries=-1)(task)
        at_once = _AHEAD * (self.jobs or max(int(ray.cluster_resources().get("CPU", 1)), 1))
        pending: deque[Any] = deque()
        for batch in batches:
            pending.append(remote.remote(batch))
            if len(pending) >= at_once:
                yield result(pending.popleft())
        while pending:
            yield result(pending.popleft())


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MzseekError("Ray is not installed: pip install 'mzseek[cluster]'") from error
    return ray


ENGINES: dict[str, type[Engine]] = {"local": LocalEngine, "ray": RayEngine}


def engine_named(name: str, jobs: int | None = None, address: str | None = None) -> Engine:
    """Engine of that name.

    Parameters
    ----------
    name : str
        "local" or "ray".
    jobs : int, optional
        Batches at a time.
    address : str, optional
        Of a Ray cluster.

    Returns
    -------
    Engine

    Raises
    ------
    MzseekError
        The name is unknown, or an address was given to an engine that has none.
    """
    if name not in ENGINES:
        raise MzseekError(f"engine {name!r} is unknown, expected one of: {', '.join(ENGINES)}")
    if name == "ray":
        return RayEngine(jobs, address)
    if address:
        raise MzseekError(f"engine {name!r} has no address; --address is for --engine ray")
    return LocalEngine(jobs)
