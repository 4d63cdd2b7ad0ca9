"""Process batches on a Ray cluster, and choose an engine by name."""

import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from mzseek.core.errors import ClusterError, MzseekError, require
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

_CONNECTING = 5.0  # seconds

Batch = TypeVar("Batch")
Result = TypeVar("Result")


class RayEngine(Engine):
    """Workers of a Ray cluster; batches of a worker that dies are given to another.

    ``jobs`` batches are worked on at a time, by default one for each CPU of the cluster, which runs
    at ``address`` or else is started on this machine. A batch of `long_results` has a GPU to itself
    where there are any, ``gpus`` at most, and by default there are as many at a time.
    """

    name = "ray"
    stands_for = "a Ray cluster, which needs mzseek[cluster]"
    shares_files = False

    def __init__(
        self, jobs: int | None = None, address: str | None = None, gpus: int | None = None
    ) -> None:
        self.jobs, self.address, self.gpus = jobs, address, gpus

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
            from ray.util.queue import Queue

            messages = Queue(actor_options={"num_cpus": 0})
            channel = Sender(messages.put)

            def task(batch: Batch) -> Result:
                return work(batch, channel)

            def deliver() -> None:
                for message in messages.get_nowait_batch(messages.qsize()):
                    dispatch(message, progress, say)

            yield from self._done_by_workers(ray, task, batches, deliver)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Yield Ray, connected to a cluster, which is left running if it was."""
        ray = _ray()
        started = not ray.is_initialized()
        if started:
            _check_address(self.address)
            try:
                ray.init(
                    address=self.address, num_cpus=None if self.address else self.jobs,
                    include_dashboard=False, log_to_driver=False, logging_level="ERROR",
                )  # fmt: skip
            except (ConnectionError, RuntimeError, ValueError) as error:
                reason = str(error).splitlines()[0]
                raise ClusterError(f"no Ray cluster at {self.address}: {reason}") from error
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
        there = ray.cluster_resources()
        gpus = 0 if deliver is None or self.gpus == 0 else int(there.get("GPU", 0))
        if self.gpus is not None and deliver is not None and self.gpus > gpus:
            raise MzseekError(f"--gpus {self.gpus}: the Ray cluster has {gpus}")
        gpus = min(gpus, self.gpus) if self.gpus else gpus
        remote = ray.remote(num_cpus=1, num_gpus=min(gpus, 1), max_retries=-1)(task)
        jobs = self.jobs or gpus or max(int(there.get("CPU", 1)), 1)
        jobs = min(jobs, gpus) if gpus else jobs
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
            for ref in begun:
                ray.cancel(ref, force=True)


def _check_address(address: str | None) -> None:
    """Refuse an address at which nothing listens: Ray would wait minutes, and end the process."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECTING).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"no Ray cluster at {address}: {error}") from error


def _ray() -> Any:
    require("ray", "--engine ray")
    import ray

    return ray


ENGINES: dict[str, type[Engine]] = {"local": LocalEngine, "ray": RayEngine}


def engine_named(
    name: str, jobs: int | None = None, address: str | None = None, gpus: int | None = None
) -> Engine:
    """Return the engine of that name ("local" or "ray"); ``address`` is that of a Ray cluster.

    ``gpus`` are those of the cluster to use.
    """
    check_name(ENGINES, name, "engine", MzseekError)
    if name == "ray":
        return RayEngine(jobs, address, gpus)
    if address:
        raise MzseekError(f"engine {name!r} has no address; --address is for --engine ray")
    return LocalEngine(jobs)
