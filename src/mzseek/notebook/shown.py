"""How far long work is, in a notebook or a script."""

import contextlib
import sys
import time
from collections.abc import Iterator

from mzseek.work.progress import Progress, silent

_APART = 0.5  # seconds between two states of the line
_WIDTH = 78


@contextlib.contextmanager
def told(watch: bool) -> Iterator[Progress]:
    """A callable of (stage, done, total) that keeps one line on standard error up to date.

    The line is written over itself, which notebooks and terminals show as one, and is wiped in the
    end. Nothing is written for work that takes less than half a second.
    """
    if not watch:
        yield silent
        return
    last = time.monotonic()
    is_there = False

    def tell(stage: str, done: int, total: int | None = None) -> None:
        nonlocal last, is_there
        now = time.monotonic()
        if now - last < _APART:
            return
        last, is_there = now, True
        of = f" of {total:,}" if total else ""
        line = f"{stage}: {done:,}{of}"[:_WIDTH]
        sys.stderr.write(f"\r{line:<{_WIDTH}}")
        sys.stderr.flush()

    try:
        yield tell
    finally:
        if is_there:
            sys.stderr.write("\r" + " " * _WIDTH + "\r")
            sys.stderr.flush()
