"""Summarise a collection of spectra while it is read, in bounded memory."""

import hashlib
import heapq
import re
from collections import Counter
from functools import lru_cache
from typing import Any

import numpy as np

from mzseek.core.text import shorten
from mzseek.io.skipped import SkippedGroups
from mzseek.spectra.records import POLARITY_CONFLICT, parse_time
from mzseek.spectra.spectrum import Spectrum

_MAX_VALUES = 2000
_MAX_TEXT = 80
_MAX_HASHES = 1 << 16


class Tally:
    """Counts of values; beyond a number of different values, further ones are counted together.

    Long texts are shortened; ``not_listed`` counts values beyond the first `_MAX_VALUES`, and
    ``none_given`` how often there was none.

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
        """Count a value."""
        if value is None:
            self.none_given += 1
            return
        text = value if value in self.values else shorten(value, _MAX_TEXT)
        if text in self.values or len(self.values) < _MAX_VALUES:
            self.values[text] += 1
        else:
            self.not_listed += 1

    @property
    def total(self) -> int:
        """How often there was a value."""
        return self.values.total() + self.not_listed

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, the most frequent first."""
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
        self.lowest, self.highest = float("inf"), float("-inf")
        self.count = 0

    def add(self, number: float) -> None:
        """Add a number."""
        self.count += 1
        self.lowest = min(self.lowest, number)
        self.highest = max(self.highest, number)

    def to_dict(self) -> dict[str, Any] | None:
        """Return plain data for JSON; None where there was no number."""
        return dict(vars(self)) if self.count else None


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

    def __init__(self, max_hashes: int = _MAX_HASHES) -> None:
        self._max = max_hashes
        self._smallest: set[int] = set()
        self._largest_first: list[int] = []
        self.is_exact = True

    def add(self, text: str) -> None:
        """Add a text."""
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        hashed = int.from_bytes(digest, "big")
        if hashed in self._smallest:
            return
        if len(self._smallest) < self._max:
            self._smallest.add(hashed)
            heapq.heappush(self._largest_first, -hashed)
            return
        self.is_exact = False
        if hashed < -self._largest_first[0]:
            self._smallest.discard(-heapq.heapreplace(self._largest_first, -hashed))
            self._smallest.add(hashed)

    @property
    def count(self) -> int:
        """The number, or an estimate of it."""
        if self.is_exact:
            return len(self._smallest)
        return round((self._max - 1) * 2.0**64 / -self._largest_first[0])


_LEVEL = re.compile(r"(?:MS)?\s*(\d)(?:\.0)?", re.IGNORECASE)
_PLAIN_NUMBER = re.compile(r"\d{1,6}(?:\.\d{1,6})?")
_NUMBERED = re.compile(r"(.*) #\d+", re.DOTALL)
_MAX_READ = 200  # far more than is shown of a value
_NAMES = ("title", "feature_id", "scans", "compound_name")
_INSTRUMENTS = ("instrument", "source_instrument", "instrument_type")
_INCHIKEY = re.compile(r"[A-Z]{14}(?:-[A-Z]{10}(?:-[A-Z])?)?")


class Summary:
    """What spectra have in common, in memory that does not grow with their number.

    Attributes
    ----------
    read : int
        Spectra that were added.
    skipped : SkippedGroups
        Skipped records, for `read_spectra`'s argument of that name.
    levels, modes, adducts, energies, instruments, centroided, folds : Tally
        As given, in one spelling; ``modes`` also where only the adduct tells, and ``adducts`` also
        where what is given leaves open which (``[M+?]+``).
    precursors : Extent
        m/z.
    times : dict of str to Extent
        Retention times by unit: ``"s"``, ``"min"``, or ``""`` where none is given.
    with_smiles, with_inchi, with_structure : int
        Spectra that state one, the other, or at least one.
    molecules : Distinct
        Molecules among them: by the first block of the InChIKey, or else by the structure's text.
    conflicts : Tally
        Contradictions about the polarity, with what was used.
    renamed : int
        Spectra whose name another had before, and that were therefore numbered.

    Examples
    --------
    >>> from mzseek.spectra import read_spectra
    >>> summary = Summary()
    >>> for spectrum in read_spectra("library.mgf", summary.skipped):  # doctest: +SKIP
    ...     summary.add(spectrum)
    """

    def __init__(self) -> None:
        self.read = 0
        self.skipped = SkippedGroups()
        self.levels, self.modes, self.adducts = Tally(), Tally(), Tally()
        self.energies, self.instruments = Tally(), Tally()
        self.centroided, self.folds = Tally(), Tally()
        self.precursors = Extent()
        self.times: dict[str, Extent] = {}
        self.with_smiles = self.with_inchi = self.with_structure = 0
        self.molecules = Distinct()
        self.conflicts = Tally()
        self.renamed = 0
        self._peaks: Counter[int] = Counter()  # few keys: a spectrum has at most 100,000

    def add(self, spectrum: Spectrum) -> None:
        """Add a spectrum."""
        metadata = spectrum.metadata
        self.read += 1
        self.levels.add(_level(metadata.get("ms_level", "")[:_MAX_READ]))
        self.modes.add(_mode(spectrum))
        self.adducts.add(spectrum.adduct or metadata.get("adduct_as_given"))
        self.energies.add(_energy(metadata.get("collision_energy", "")[:_MAX_READ]))
        self.instruments.add(
            next((metadata[name] for name in _INSTRUMENTS if name in metadata), None)
        )
        self.centroided.add(metadata.get("centroided"))
        self.folds.add(metadata.get("fold"))
        self.precursors.add(spectrum.precursor_mz)
        self._peaks[len(spectrum)] += 1
        if time := parse_time(metadata.get("retention_time", "")):
            self.times.setdefault(time[1], Extent()).add(time[0])
        self.with_smiles += "smiles" in metadata
        self.with_inchi += "inchi" in metadata
        if structure := metadata.get("smiles") or metadata.get("inchi"):
            self.with_structure += 1
            key = metadata.get("inchikey", "")
            self.molecules.add(key[:14] if _INCHIKEY.fullmatch(key) else structure)
        self.conflicts.add(metadata.get(POLARITY_CONFLICT))
        self.renamed += _is_renamed(spectrum)

    @property
    def records(self) -> int:
        """Records met: those read and those skipped."""
        return self.read + self.skipped.total

    def peak_counts(self) -> tuple[float, int, int] | None:
        """Return median, smallest and largest number of peaks; None if nothing was read."""
        if not self.read:
            return None
        counts = sorted(self._peaks)
        ends = np.cumsum([self._peaks[count] for count in counts])
        middle = np.searchsorted(ends, [(self.read - 1) // 2, self.read // 2], side="right")
        return (counts[middle[0]] + counts[middle[1]]) / 2, counts[0], counts[-1]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        peaks = self.peak_counts()
        return {
            "records": self.records,
            "read": self.read,
            "set_aside": self.skipped.total,
            "ms_levels": self.levels.to_dict(),
            "ion_modes": self.modes.to_dict(),
            "adducts": self.adducts.to_dict(),
            "precursor_mz": self.precursors.to_dict(),
            "peaks": peaks and dict(zip(("median", "lowest", "highest"), peaks, strict=True)),
            "retention_times": {
                unit or "no unit": extent.to_dict() for unit, extent in self.times.items()
            },
            "collision_energies": self.energies.to_dict(),
            "instruments": self.instruments.to_dict(),
            "centroided": self.centroided.to_dict(),
            "folds": self.folds.to_dict(),
            "structures": {
                "smiles": self.with_smiles,
                "inchi": self.with_inchi,
                "either": self.with_structure,
                "neither": self.read - self.with_structure,
                "molecules": self.molecules.count,
                "molecules_are_exact": self.molecules.is_exact,
            },
            "polarity_conflicts": self.conflicts.to_dict(),
            "renamed": self.renamed,
            "rejects": [vars(group) for group in self.skipped.by_count()],
        }


@lru_cache(maxsize=256)
def _level(text: str) -> str | None:
    """Return an MS level in one spelling: 2, 2.0 and MS2 are one."""
    match = _LEVEL.fullmatch(text.strip())
    return f"MS{match[1]}" if match else text or None


def _mode(spectrum: Spectrum) -> str | None:
    mode = spectrum.metadata.get("ionmode")
    if mode is None and spectrum.adduct and spectrum.charge:
        return "positive" if spectrum.charge > 0 else "negative"
    return mode


@lru_cache(maxsize=256)
def _energy(text: str) -> str | None:
    """Return a collision energy in one spelling: 60 and 60.0 are one."""
    return f"{float(text):g}" if _PLAIN_NUMBER.fullmatch(text) else text or None


def _is_renamed(spectrum: Spectrum) -> bool:
    """Whether the reader has numbered it, since its name was in use."""
    if "#" not in spectrum.identifier:
        return False
    match = _NUMBERED.fullmatch(spectrum.identifier)
    return match is not None and match[1] in (spectrum.metadata.get(name) for name in _NAMES)
