"""Counting what a long file says, in memory that does not grow with it."""

import hashlib
import heapq
from collections import Counter
from typing import Any

from mzseek.spectra.numbers import shorten

_MOST_VALUES = 2000
_MOST_TEXT = 80
_MOST_KEPT = 1 << 16


class Tally:
    """How often each value was given: at most so many values, further ones counted together.

    Attributes
    ----------
    values : Counter of str
        Long texts are shortened.
    not_listed : int
        How often values beyond the first `_MOST_VALUES` were given.
    none_given : int
        How often there was none.

    Examples
    --------
    >>> tally = Tally()
    >>> for value in ("[M+H]+", None, "[M+Na]+", "[M+H]+"):
    ...     tally.add(value)
    >>> tally.values.most_common(1), tally.none_given
    ([('[M+H]+', 2)], 1)
    """

    def __init__(self) -> None:
        self.values: Counter[str] = Counter()
        self.not_listed = 0
        self.none_given = 0

    def add(self, value: str | None) -> None:
        """Count one."""
        if value is None:
            self.none_given += 1
            return
        if value in self.values:  # nearly always
            self.values[value] += 1
            return
        text = shorten(value, _MOST_TEXT)
        if text in self.values or len(self.values) < _MOST_VALUES:
            self.values[text] += 1
        else:
            self.not_listed += 1

    @property
    def given(self) -> int:
        """How often there was a value."""
        return self.values.total() + self.not_listed

    def to_dict(self) -> dict[str, Any]:
        """For JSON, the most frequent first."""
        return {
            "values": dict(self.values.most_common()),
            "not_listed": self.not_listed,
            "none_given": self.none_given,
        }


class Extent:
    """Smallest and largest of some numbers.

    Examples
    --------
    >>> extent = Extent()
    >>> for number in (3.0, 1.0, 2.0):
    ...     extent.add(number)
    >>> extent.count, extent.lowest, extent.highest
    (3, 1.0, 3.0)
    """

    def __init__(self) -> None:
        self.count = 0
        self.lowest = float("inf")
        self.highest = float("-inf")

    def add(self, number: float) -> None:
        """Take one in."""
        self.count += 1
        self.lowest = min(self.lowest, number)
        self.highest = max(self.highest, number)

    def to_dict(self) -> dict[str, Any] | None:
        """For JSON; None where there was no number."""
        if not self.count:
            return None
        return {"lowest": self.lowest, "highest": self.highest, "count": self.count}


class Distinct:
    """How many different texts there were: exact up to 65,536, then within about 1 %.

    Keeps the smallest of the texts' hashes. If hashes are spread evenly over [0, 1) and the k-th
    smallest is h, there are about (k − 1) / h of them, with a relative error of 1 / √k.

    Examples
    --------
    >>> distinct = Distinct()
    >>> for text in ("CCO", "CCN", "CCO"):
    ...     distinct.add(text)
    >>> distinct.count, distinct.is_exact
    (2, True)
    """

    def __init__(self, most: int = _MOST_KEPT) -> None:
        self._most = most
        self._kept: set[int] = set()
        self._largest_first: list[int] = []
        self.is_exact = True

    def add(self, text: str) -> None:
        """Take one in."""
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        hashed = int.from_bytes(digest, "big")
        if hashed in self._kept:
            return
        if len(self._kept) < self._most:
            self._kept.add(hashed)
            heapq.heappush(self._largest_first, -hashed)
            return
        self.is_exact = False
        if hashed < -self._largest_first[0]:
            self._kept.discard(-heapq.heapreplace(self._largest_first, -hashed))
            self._kept.add(hashed)

    @property
    def count(self) -> int:
        """The number, or an estimate of it."""
        if self.is_exact:
            return len(self._kept)
        return round((self._most - 1) * 2.0**64 / -self._largest_first[0])
