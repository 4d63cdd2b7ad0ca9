"""Batches in processes of this machine."""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from mzseek.errors import MzseekError
from mzseek.work.channel import Channel, Direct, Post, Socket
from mzseek.work.engine import Engine, in_order
from mzseek.work.opened import opened_within
from mzseek.work.processes import Watch, begin_worker, hear_ctrl_c, signals_kept, stop_workers
from mzseek.work.progress import Progress, Say, silent, unheard

Batch = TypeVar("Batch")
Result = TypeVar("Result")

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class LocalEngine(Engine):
    """Processes on this machine.

    Parameters
    ----------
    jobs : int, optional
        All cores by default; with one, all is done in this process.
    """

    name = "local"
    stands_for = "processes of this machine"

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs or os.cpu_count() or 1

    def results(
        self, work: Callable[[Batch], Result], batches: Iterable[Batch]
    ) -> Iterator[Result]:
        """See `Engine.results`."""
        if self.jobs == 1:
            yield from _done_here(work, batches)
        else:
            yield from self._done_by_processes(work, batches)

    def long_results(
        self,
        work: Callable[[Batch, Channel], Result],
        batches: Iterable[Batch],
        *,
        progress: Progress = silent,
        say: Say = unheard,
    ) -> Iterator[Result]:
        """See `Engine.long_results`."""
        if self.jobs == 1:
            yield from _done_here(partial(_told_here, work, Direct(progress, say)), batches)
            return
        with Post() as post:
            deliver = partial(post.deliver, progress, say)
            telling = partial(_told_by_socket, work, post.channel())
            yield from self._done_by_processes(telling, batches, deliver)

    def _done_by_processes(
        self,
        work: Callable[[Batch], Result],
        batches: Iterable[Batch],
        deliver: Callable[[], None] | None = None,
    ) -> Iterator[Result]:
        """Results in order; work that delivers something meanwhile is long."""
        from joblib.externals.loky import BrokenProcessPool, get_reusable_executor

        threads = str(max((os.cpu_count() or 1) // self.jobs, 1))
        env = {name: os.environ.get(name, threads) for name in _THREADS}
        with signals_kept():
            executor = get_reusable_executor(
                max_workers=self.jobs, timeout=300, env=env,
                initializer=begin_worker, initargs=(os.getpid(),),
            )  # fmt: skip

        def submit(batch: Batch) -> Any:
            with signals_kept():  # processes are started here, and now and then anew
                return executor.submit(work, batch)

        watch = Watch(executor)

        def check() -> None:
            if watch.has_lost_one():
                stop_workers()
                raise BrokenProcessPool

        ended = False
        try:
            yield from in_order(submit, batches, self.jobs, deliver, check)
            ended = True
        except BrokenProcessPool as error:
            raise MzseekError(
                f"one of {self.jobs} processes was killed from outside (is there enough memory?)"
            ) from error
        except KeyboardInterrupt:
            stop_workers()  # nobody waits for what they are at
            raise
        finally:
            if deliver is not None and not ended:
                stop_workers()


def _done_here(work: Callable[[Batch], Result], batches: Iterable[Batch]) -> Iterator[Result]:
    with opened_within():
        for batch in batches:
            try:
                done = work(batch)
            finally:
                hear_ctrl_c()
            yield done


def _told_here(work: Callable[[Batch, Channel], Result], channel: Channel, batch: Batch) -> Result:
    return work(batch, channel)


def _told_by_socket(
    work: Callable[[Batch, Channel], Result], channel: Socket, batch: Batch
) -> Result:
    try:
        return work(batch, channel)
    finally:
        channel.close()
