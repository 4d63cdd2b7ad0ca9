"""Batches of work in processes, results in order."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import joblib

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
    jobs = min(jobs or os.cpu_count() or 1, len(batches))
    if jobs <= 1:
        for batch in batches:
            yield batch, work(batch)
        return
    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator", pre_dispatch="4*n_jobs")
    yield from zip(batches, parallel(joblib.delayed(work)(b) for b in batches), strict=True)
