"""Process batches on a Ray cluster, and choose an engine by name."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from mzseek.core.errors import MzseekError
from mzseek.core.registry import check_name
from mzseek.parallel.engine import (
    Channel,
    Engine,
    Log,
    Progress,
    Sender,
    dispatch,
    in_order,
    no_log,
    silent,
)
from mzseek.parallel.processes import LocalEngine

Batch = TypeVar("Batch")
Result = TypeVar("Result")


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
    stands_for = "a Ray cluster, which needs mzseek[cluster]"

    def __init__(self, jobs: int | None = None, address: str | None = None) -> None:
        self.jobs, self.address = jobs, address

    def results(
        self, work: Callable[[Batch], Result], batches: Iterable[Batch]
    ) -> Iterator[Result]:
        """See `Engine.results`."""

        def task(batch: Batch) -> Result:  # Ray takes no partial
            return work(batch)

        with self._connected() as ray:
            yield from self._done_by_workers(ray, task, batches)

    def long_results(
        self,
        work: Callable[[Batch, Channel], Result],
        batches: Iterable[Batch],
        *,
        progress: Progress = silent,
        say: Log = no_log,
    ) -> Iterator[Result]:
        """See `Engine.long_results`."""
        with self._connected() as ray:
            mailbox = ray.remote(num_cpus=0)(Mailbox).remote()

            def task(batch: Batch) -> Result:
                channel = MailboxChannel(mailbox)
                try:
                    return work(batch, channel)
                finally:
                    channel.close()

            def deliver() -> None:
                for message in ray.get(mailbox.take.remote()):
                    dispatch(message, progress, say)

            yield from self._done_by_workers(ray, task, batches, deliver)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Ray with a cluster, which is left running if it was."""
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
            yield ray
        finally:
            if started:
                ray.shutdown()

    def _done_by_workers(
        self,
        ray: Any,
        task: Callable[[Batch], Result],
        batches: Iterable[Batch],
        deliver: Callable[[], None] | None = None,
    ) -> Iterator[Result]:
        remote = ray.remote(num_cpus=1, max_retries=-1)(task)
        jobs = self.jobs or max(int(ray.cluster_resources().get("CPU", 1)), 1)
        begun: list[Any] = []

        def submit(batch: Batch) -> Any:
            begun[:] = [ref for ref in begun if not ray.wait([ref], timeout=0)[0]]
            begun.append(remote.remote(batch))
            return begun[-1].future()

        try:
            yield from in_order(submit, batches, jobs, deliver)
        except ray.exceptions.RayTaskError as error:
            raise (error.cause or error) from None  # without Ray's wrapping
        finally:
            for ref in begun:  # what nobody waits for any more
                ray.cancel(ref, force=True)


class Mailbox:
    """An actor of the cluster that keeps what workers tell until it is fetched."""

    def __init__(self) -> None:
        self._kept: list[str] = []

    def put(self, message: str) -> None:
        """Keep a message."""
        self._kept.append(message)

    def take(self) -> list[str]:
        """All messages since the last time."""
        kept, self._kept = self._kept, []
        return kept


class MailboxChannel(Sender):
    """To a `Mailbox` on the cluster."""

    def __init__(self, mailbox: Any) -> None:
        super().__init__()
        self._mailbox = mailbox
        self._last: Any = None

    def send(self, message: str) -> None:
        """Send a message, and go on."""
        self._last = self._mailbox.put.remote(message)

    def close(self) -> None:
        """See `Sender.close`."""
        if self._last is not None:
            _ray().get(self._last)


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
    check_name(ENGINES, name, "engine", MzseekError)
    if name == "ray":
        return RayEngine(jobs, address)
    if address:
        raise MzseekError(f"engine {name!r} has no address; --address is for --engine ray")
    return LocalEngine(jobs)
