"""Searching: the kinds of similarity, and the work shared among threads."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.library.analogs import WITHIN_A_BIN, analog_lists
from mzseek.library.entropy import entropy_lists
from mzseek.library.lists import Entries, Ions, Lists, inverted, losses_of, no_lists, of_length_one
from mzseek.library.sweep import (
    ANALOG,
    COSINE,
    ENTROPY,
    MODIFIED,
    Best,
    Rules,
    Side,
    search_range,
)

_AT_A_TIME = 16  # queries a thread takes: they differ in what they cost


def _cosine(lists: Lists, ions: Ions, tolerance: float) -> Side:
    return Side(of_length_one(lists), no_lists(len(ions.modes)), lists, ions)


def _modified(lists: Lists, ions: Ions, tolerance: float) -> Side:
    peaks = of_length_one(lists)
    return Side(peaks, losses_of(peaks, ions.precursors), lists, ions)


def _entropy(lists: Lists, ions: Ions, tolerance: float) -> Side:
    ready = entropy_lists(lists, tolerance)
    return Side(ready, no_lists(len(ions.modes)), ready, ions)


def _analog(lists: Lists, ions: Ions, tolerance: float) -> Side:
    peaks, losses = analog_lists(lists, ions)
    return Side(peaks, losses, no_lists(len(ions.modes)), ions)


@dataclass(frozen=True)
class Kind:
    """A kind of similarity: its number in the kernels, and how spectra are made ready for it."""

    number: int
    ready: Callable[[Lists, Ions, float], Side]


CODES = {
    "cosine": Kind(COSINE, _cosine),
    "modified": Kind(MODIFIED, _modified),
    "entropy": Kind(ENTROPY, _entropy),
    "analog": Kind(ANALOG, _analog),
}


class Index:
    """Library spectra made ready for one kind of similarity.

    Parameters
    ----------
    kind : str
        A name of `CODES`.
    lists, ions : Lists, Ions
        Of the library.
    tolerance : float
        Within which peaks match; analogs have bins instead.
    """

    def __init__(self, kind: str, lists: Lists, ions: Ions, tolerance: float) -> None:
        self._kind, self._tolerance = CODES[kind], tolerance
        self._side = self._kind.ready(lists, ions, tolerance)
        self._by_peak: Entries = inverted(self._side.peaks)
        self._by_loss: Entries = inverted(self._side.losses)

    def search(
        self,
        lists: Lists,
        ions: Ions,
        top: int,
        groups: npt.NDArray[np.int64],
        allowed: npt.NDArray[np.bool_],
        ppm: float | None = None,
        threads: int | None = None,
    ) -> Best:
        """The best library spectra of each query, at most one of each group."""
        count = len(ions.modes)
        queries = self._kind.ready(lists, ions, self._tolerance)
        tolerance = WITHIN_A_BIN if self._kind.number == ANALOG else self._tolerance
        reach = -1.0 if ppm is None else float(ppm)
        rules = Rules(self._kind.number, tolerance, reach, allowed, groups)
        best = Best(
            np.full((count, top), -1, np.int64), np.zeros((count, top)),
            np.zeros((count, top), np.int64),
        )  # fmt: skip

        def work(start: int) -> None:
            end = min(start + _AT_A_TIME, count)
            search_range(start, end, queries, self._side, self._by_peak, self._by_loss, rules, best)

        with ThreadPoolExecutor(threads or _cores()) as pool:
            for _ in pool.map(work, range(0, count, _AT_A_TIME)):
                pass
        return best


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
