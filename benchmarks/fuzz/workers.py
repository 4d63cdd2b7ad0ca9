"""Processes that try inputs, watched from outside: what crashes or hangs is a finding too."""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inputs import Input, Sizes, make_input
from seeds import Seeds
from targets import Broken, check_counts, run

MOST_SECONDS = 20.0  # of computing
SECONDS_PER_MEGABYTE = 1.0  # where that is more: 400,000 records of 90 bytes are no hang
MOST_GROWTH = 500_000_000  # bytes
_CHUNK = 200
_MOST_INPUTS = 20_000  # a process, so that memory that is never given back does not add up
_ADDRESSES = 4_000_000_000  # bytes beyond what a process has at first, for the machine's sake
_PATIENCE = 3.0  # times the limit, for code that does not look up


class TooSlow(BaseException):
    """Past the limit; no reader may catch it."""


@dataclass
class Finding:
    """An input that breaks a promise."""

    number: int
    target: str
    what: str
    detail: str


@dataclass
class Report:
    """What a number of inputs came to."""

    inputs: int = 0
    bytes: int = 0
    by_target: Counter[str] = field(default_factory=Counter)
    large: int = 0
    refused: int = 0
    read: int = 0
    set_aside: int = 0
    slowest: float = 0.0
    slowest_number: int = -1
    most_growth: int = 0
    most_growth_number: int = -1
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: "Report") -> None:
        """Take in another one."""
        for name in ("inputs", "bytes", "large", "refused", "read", "set_aside"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.by_target += other.by_target
        if other.slowest > self.slowest:
            self.slowest, self.slowest_number = other.slowest, other.slowest_number
        if other.most_growth > self.most_growth:
            self.most_growth, self.most_growth_number = other.most_growth, other.most_growth_number
        self.findings += other.findings


def try_input(number: int, given: Input, folder: Path, report: Report) -> None:
    """Give one input to its reader and note what comes of it."""
    path = folder / given.name
    path.write_bytes(given.stored)
    most = max(MOST_SECONDS, SECONDS_PER_MEGABYTE * len(given.plain) / 1e6)
    before = _reset_peak()
    start = time.process_time()
    what = detail = ""
    try:
        try:
            with _limited(most):
                outcome = run(given.target, path)
        finally:
            spent = time.process_time() - start
            _note_growth(number, given, _peak() - before, report)
        if given.is_whole:
            check_counts(given.target, given.plain, outcome)
        report.refused += bool(outcome.refused)
        report.read += outcome.read
        report.set_aside += outcome.set_aside
    except TooSlow:
        what, detail = "hang", f"more than {most:.0f} s of computing"
    except Broken as broken:
        what, detail = "broken promise", str(broken)
    except MemoryError:
        what, detail = "memory", "asked for more than there is"
    except Exception as error:  # the reason why this program exists
        what, detail = f"exception {type(error).__name__}", _where(error)
    finally:
        path.unlink()
    if what:
        report.findings.append(Finding(number, given.target, what, detail))
    report.inputs += 1
    report.bytes += len(given.plain)
    report.large += len(given.plain) >= 1_000_000
    report.by_target[given.target] += 1
    if spent > report.slowest:
        report.slowest, report.slowest_number = spent, number


def _note_growth(number: int, given: Input, growth: int, report: Report) -> None:
    """What reading took beyond the memory that this process had already."""
    if growth > report.most_growth:
        report.most_growth, report.most_growth_number = growth, number
    if growth > MOST_GROWTH:
        report.findings.append(Finding(number, given.target, "memory", f"{growth / 1e6:.0f} MB"))


def _where(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "mzseek" in frame.filename] or frames
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
    return f"{place} {type(error).__name__}: {str(error)[:200]}"


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _reset_peak() -> int:
    """Let the kernel forget the highest memory so far; the present one, in bytes (Linux only)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    """The highest memory since it was last reset, in bytes."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:  # not Linux: the highest ever
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def _work(pipe: Any, current: Any, seed: int, seeds: Seeds, sizes: Sizes) -> None:
    """Try the numbers that come through the pipe, until none comes or memory has grown."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if os.access(shm, os.W_OK) else None) as name:
        folder = Path(name)
        for number in range(300):  # so that libraries are loaded and caches are filled
            given = make_input(-1 - seed & 0xFFFF, number, seeds, Sizes(100_000))
            try_input(number, given, folder, Report())
        _limit_addresses()
        done = 0
        while (chunk := pipe.recv()) is not None:
            report = Report()
            for number in range(*chunk):
                current.value = number
                try_input(number, make_input(seed, number, seeds, sizes), folder, report)
                if report.most_growth > MOST_GROWTH:
                    break
            done += report.inputs
            is_spent = done >= _MOST_INPUTS or report.most_growth > MOST_GROWTH
            pipe.send((report, (number + 1, chunk[1]), is_spent))
            if is_spent:
                return


def _limit_addresses() -> None:
    with contextlib.suppress(OSError, ValueError, FileNotFoundError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + _ADDRESSES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


class Worker:
    """A process, what it has been given, and for how long it has had the present number."""

    def __init__(self, seed: int, seeds: Seeds, sizes: Sizes) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.current = context.Value("q", -1, lock=False)
        arguments = (theirs, self.current, seed, seeds, sizes)
        self.process = context.Process(target=_work, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self.chunk: tuple[int, int] | None = None
        self._most_seconds = max(MOST_SECONDS, SECONDS_PER_MEGABYTE * sizes.most / 1e6)
        self._last = (-1, 0.0)

    def give(self, chunk: tuple[int, int]) -> None:
        """Numbers to try."""
        self.chunk = chunk
        self.current.value = -1
        self.pipe.send(chunk)

    def is_stuck(self) -> bool:
        """Whether it has computed on one number for longer than it would have let itself."""
        number, spent = self.current.value, _computed(self.process.pid)
        if number != self._last[0]:
            self._last = (number, spent)
        return number >= 0 and spent - self._last[1] > _PATIENCE * self._most_seconds

    def stop(self) -> None:
        """End it."""
        with contextlib.suppress(OSError):
            self.pipe.send(None)
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()


def _computed(process: int | None) -> float:
    """Seconds of computing of a process."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fuzz(
    seed: int,
    seeds: Seeds,
    jobs: int,
    numbers: range,
    seconds: float = float("inf"),
    sizes: Sizes | None = None,
    progress: Any = None,
) -> Report:
    """Try inputs in processes until all are tried or the time is over."""
    sizes = sizes or Sizes()
    total = Report()
    step = min(_CHUNK, max(1, sizes.one_large_in // 4))  # large ones take seconds
    starts = range(numbers.start, numbers.stop, step)
    left = iter((start, min(start + step, numbers.stop)) for start in starts)
    end = time.monotonic() + seconds
    workers = [Worker(seed, seeds, sizes) for _ in range(jobs)]
    again: list[tuple[int, int]] = []

    def next_chunk() -> tuple[int, int] | None:
        return (again.pop() if again else next(left, None)) if time.monotonic() < end else None

    busy = {}
    for worker in workers:
        if (chunk := next_chunk()) is not None:
            worker.give(chunk)
            busy[worker.pipe] = worker
    while busy:
        ready = multiprocessing.connection.wait(list(busy), timeout=1.0)
        for pipe in [*ready, *(p for p, w in busy.items() if p not in ready and w.is_stuck())]:
            worker = busy.pop(pipe)
            fresh = _take(worker, pipe in ready, total, again)
            if fresh:
                worker.stop()
                worker = Worker(seed, seeds, sizes)
            if progress is not None:
                progress(total)
            if (chunk := next_chunk()) is not None:
                worker.give(chunk)
                busy[worker.pipe] = worker
            else:
                worker.stop()
    return total


def _take(worker: Worker, has_answer: bool, total: Report, again: list[tuple[int, int]]) -> bool:
    """Take in what a worker has to say, or that it has ended; whether another must take over."""
    chunk = worker.chunk or (0, 0)
    try:
        if not has_answer:
            raise EOFError
        report, rest, is_spent = worker.pipe.recv()
    except (EOFError, OSError):
        number = worker.current.value
        if worker.process.is_alive() and not has_answer:
            worker.process.kill()
            what, detail = "hang", "did not look up"
        else:
            worker.process.join(5)
            what, detail = "crash", f"the process ended with {worker.process.exitcode}"
        total.findings.append(Finding(number, "", what, detail))
        rest, is_spent = (max(number, chunk[0]) + 1, chunk[1]), True
    else:
        total.add(report)
    if rest[0] < rest[1]:
        again.append(rest)
    return is_spent
