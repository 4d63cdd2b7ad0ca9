"""Time and peak memory of a block of work, worker processes included."""

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType


@dataclass
class Measure:
    """Use as a context manager; afterwards ``seconds`` and the peaks are set.

    Memory is the resident size of this process and all its descendants, added up and sampled
    ten times a second. Pages that they share are counted once for each in ``peak_bytes``: the true
    peak is lower. In ``peak_shared_once`` each process has its part of them.
    """

    seconds: float = 0.0
    peak_bytes: int = 0
    peak_shared_once: int = 0

    def __enter__(self) -> "Measure":
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._start = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.seconds = time.perf_counter() - self._start
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(0.1):
            family = _family()
            self.peak_bytes = max(self.peak_bytes, sum(map(_resident, family)))
            self.peak_shared_once = max(self.peak_shared_once, sum(map(_part, family)))


def _family() -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
    family = {int(Path("/proc/self").resolve().name)}
    while True:
        more = {child for child, parent in parents.items() if parent in family} - family
        if not more:
            return list(family)
        family |= more


def _resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0


def _part(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def shared_data() -> Path | None:
    """The shared data folder beside the checkout, if it is there."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    return folder if folder.is_dir() else None
