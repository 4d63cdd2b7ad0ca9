"""What a worker opens once and keeps between batches: a folder's name travels, not its contents."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

Thing = TypeVar("Thing")
Batch = TypeVar("Batch")
Result = TypeVar("Result")

# One at a time in each process: what comes next is another folder, and the one before is done with.
_kept: dict[Hashable, Any] = {}


class WithOpened(Generic[Thing, Batch, Result]):
    """Work for an engine that reads something which each process opens once.

    Parameters
    ----------
    work : callable of (thing, batch)
    opener : callable
        Opens the thing.
    key : hashable values
        What the opener gets. A thing that is opened already is taken again for the same key, so
        that it should tell a folder from one made anew in its place.

    Examples
    --------
    >>> work = WithOpened(lambda folder, batch: folder + batch, str.upper, "data/")
    >>> [work(batch) for batch in ("a", "b")]
    ['DATA/a', 'DATA/b']
    >>> forget_opened()
    """

    def __init__(
        self,
        work: Callable[[Thing, Batch], Result],
        opener: Callable[..., Thing],
        *key: Hashable,
    ) -> None:
        self.work, self.opener, self.key = work, opener, key

    def __call__(self, batch: Batch) -> Result:
        """What the work makes of a batch."""
        key = (self.opener, self.key)
        if key not in _kept:
            _kept.clear()
            _kept[key] = self.opener(*self.key)
        return self.work(_kept[key], batch)


def forget_opened() -> None:
    """Let go of what is open in this process."""
    _kept.clear()


@contextmanager
def opened_within() -> Iterator[None]:
    """Whatever is opened within is let go at the end, and what was open before is open again.

    Work that has something open may itself hand out work: to lose the first at the end of the
    second would open it anew for every batch.
    """
    before = dict(_kept)
    _kept.clear()
    try:
        yield
    finally:
        _kept.clear()
        _kept.update(before)
