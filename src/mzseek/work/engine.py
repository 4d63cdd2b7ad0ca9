"""What works on batches, wherever that is done.

An engine gets batches as they come and gives results in their order, a few batches ahead at the
most, so that memory is bounded and results do not depend on the engine.
"""

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TypeVar

from mzseek.work.channel import Channel
from mzseek.work.progress import Progress, Say, silent, unheard

Batch = TypeVar("Batch")
Result = TypeVar("Result")

AHEAD = 4  # batches a process that are begun before their results are asked for
_POLL = 0.2  # seconds between two deliveries of what workers tell
_CHECK = 2.0  # seconds between two looks whether results can come at all


class Engine(ABC):
    """Something that works on batches."""

    name: str
    stands_for: str

    @abstractmethod
    def results(
        self, work: Callable[[Batch], Result], batches: Iterable[Batch]
    ) -> Iterator[Result]:
        """What ``work`` makes of each batch, in order."""

    @abstractmethod
    def long_results(
        self,
        work: Callable[[Batch, Channel], Result],
        batches: Iterable[Batch],
        *,
        progress: Progress = silent,
        say: Say = unheard,
    ) -> Iterator[Result]:
        """As `results`, of few pieces of work that take long, such as training a run.

        ``work`` gets a channel beside its batch, by which it tells how far it has got; ``progress``
        and ``say`` hear of it while results are waited for. A worker has one piece at a time. When
        one fails, that is raised at once, no other is begun, and those at work are ended.
        """


def in_order(
    submit: Callable[[Batch], "Future[Result]"],
    batches: Iterable[Batch],
    jobs: int,
    deliver: Callable[[], None] | None = None,
    check: Callable[[], None] | None = None,
) -> Iterator[Result]:
    """Results in the order of their batches, which are begun as there is room for them.

    Parameters
    ----------
    submit : callable of a batch
        Has it begun, and gives its future.
    batches : iterable
    jobs : int
        Batches that are worked on at a time.
    deliver : callable, optional
        Called while results are waited for. With it the work is taken to be long: none is begun
        before a worker is free, and a failure is raised at once instead of in its turn.
    check : callable, optional
        Called every few seconds without a result; raises if none can come.
    """
    pending: deque[Future[Result]] = deque()
    source = iter(batches)
    checked = time.monotonic()
    is_over, at_once = False, AHEAD * jobs if deliver is None else jobs

    def has_room() -> bool:
        at_work = sum(not future.done() for future in pending)
        return len(pending) < AHEAD * jobs and at_work < at_once and _failed(pending) is None

    try:
        while True:
            while not is_over and has_room():
                try:
                    batch = next(source)
                except StopIteration:
                    is_over = True
                else:
                    pending.append(submit(batch))
            if not pending:
                return
            is_done, failed = pending[0].done(), _failed(pending)
            if deliver is not None:
                deliver()
                if failed is not None:
                    failed.result()
            if is_done:
                yield pending.popleft().result()
            else:
                at_work = [future for future in pending if not future.done()]
                ended, _ = wait(at_work, _CHECK if deliver is None else _POLL, FIRST_COMPLETED)
                if check is not None and not ended and time.monotonic() - checked > _CHECK:
                    check()
                    checked = time.monotonic()
    finally:
        for future in pending:
            future.cancel()


def _failed(futures: Iterable["Future[Result]"]) -> "Future[Result] | None":
    ended = (future for future in futures if future.done())
    return next((future for future in ended if future.exception() is not None), None)
