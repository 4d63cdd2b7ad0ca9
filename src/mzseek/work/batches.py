"""Lists of work in batches, results in order."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from mzseek.work.local import LocalEngine

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_batches(
    work: Callable[[Sequence[Item]], Result],
    items: Sequence[Item],
    size: int,
    jobs: int | None = None,
) -> Iterator[tuple[Sequence[Item], Result]]:
    """Each batch of ``items`` with what ``work`` made of it.

    ``jobs`` processes at the most, all cores by default; a single batch is done here.
    """
    batches = [items[start : start + size] for start in range(0, len(items), size)]
    engine = LocalEngine(1 if len(batches) <= 1 else jobs)
    yield from zip(batches, engine.results(work, batches), strict=True)
