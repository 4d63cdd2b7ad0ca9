"""Spectra of files to features: named as the user names them, each whole before it is judged."""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mzseek.annotation.asking.tolerance import Tolerance
from mzseek.annotation.features import (
    GIVEN,
    Feature,
    fault_of,
    feature_id,
    name_of,
    retention_seconds,
)
from mzseek.errors import AnnotationError, InputError
from mzseek.files import StrPath
from mzseek.registry import check_name
from mzseek.rejects import Rejects, reporter
from mzseek.spectra import Spectrum, read_spectra
from mzseek.spectra.read import Names

# How spectra become features: by the id that the file gives them, by precursor and retention time,
# or each by itself.
GROUPINGS = ("id", "precursor", "none")


@dataclass(frozen=True)
class Grouping:
    """How spectra are put together.

    Attributes
    ----------
    by : str
        One of `GROUPINGS`.
    tolerance : Tolerance
        Of precursors, where these are what counts.
    seconds : float
        Of retention times, likewise.
    """

    by: str = "id"
    tolerance: Tolerance = dataclasses.field(default_factory=Tolerance)
    seconds: float = 10.0

    def __post_init__(self) -> None:
        """Refuse what is unknown."""
        check_name(GROUPINGS, self.by, "grouping", AnnotationError)
        if not self.seconds >= 0:
            raise AnnotationError(f"retention times within {self.seconds:g} s, expected 0 or more")


class FeatureFiles:
    """Features of files, read twice: which spectra belong together, and then the spectra.

    So that memory does not grow with the files, and no order of spectra shows: a feature is given
    out when its last spectrum was read.

    Parameters
    ----------
    paths : sequence of paths
    grouping : Grouping
    rejects : list or callable of (where, reason)
        Gets each record that is set aside, once.
    """

    def __init__(
        self,
        paths: Sequence[StrPath],
        grouping: Grouping | None = None,
        rejects: Rejects | None = None,
    ) -> None:
        self.paths = [Path(path) for path in paths]
        _check_distinct(self.paths)
        self.grouping = grouping or Grouping()
        self.set_aside = 0
        report = reporter([] if rejects is None else rejects)

        def counted(where: str, reason: str) -> None:
            self.set_aside += 1
            report(where, reason)

        self._keys = list(_feature_keys(self._spectra(counted), self.grouping))
        self.records = len(self._keys)
        self._left = Counter(self._keys)

    def __len__(self) -> int:
        return len(self._left)

    def __iter__(self) -> Iterator[Feature]:
        names = Names()
        left, held = Counter(self._left), {}  # type: ignore[var-annotated]
        for place, (path, spectrum) in enumerate(self._spectra(lambda where, reason: None)):
            key = self._keys[place]
            held.setdefault(key, []).append((place, path, spectrum))
            left[key] -= 1
            if not left[key]:
                yield _feature(held.pop(key), names)

    def _spectra(self, rejects: Rejects) -> Iterator[tuple[Path, Spectrum]]:
        report = reporter(rejects)
        for path in self.paths:
            for spectrum in read_spectra(path, rejects):
                fault = fault_of(spectrum)
                if fault is None:
                    yield path, spectrum
                else:
                    report(f"{path}: {spectrum.identifier}", fault)


def _feature_keys(read: Iterator[tuple[Path, Spectrum]], grouping: Grouping) -> Iterator[int]:
    """For each spectrum the number of its feature."""
    if grouping.by == "none":
        yield from (place for place, _ in enumerate(read))
    elif grouping.by == "id":
        known: dict[tuple[Path, str], int] = {}
        for place, (path, spectrum) in enumerate(read):
            own = feature_id(spectrum)
            yield known.setdefault((path, own), place) if own else place
    else:
        yield from _by_precursor(read, grouping)


def _check_distinct(paths: Sequence[Path]) -> None:
    """Refuse a file that is named twice: its spectra would count twice as evidence."""
    places = [path.resolve() for path in paths]
    for place, path in enumerate(paths):
        if places[place] in places[:place]:
            raise InputError(path, "is given twice, expected each file once")


def features_of(spectra: Iterable[Spectrum], grouping: Grouping | None = None) -> list[Feature]:
    """Features of spectra that are in memory; by default those with one ``feature_id`` are one.

    Examples
    --------
    >>> import numpy as np
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "a", {"feature_id": "7"})
    >>> [(each.name, len(each.spectra)) for each in features_of([one, one])]
    [('7', 2)]
    """
    read = [(Path(GIVEN), spectrum) for spectrum in spectra]
    groups: dict[int, list[tuple[int, Path, Spectrum]]] = {}
    for place, key in enumerate(_feature_keys(iter(read), grouping or Grouping())):
        groups.setdefault(key, []).append((place, *read[place]))
    names = Names()
    return [_feature(members, names) for members in groups.values()]


def _feature(members: Sequence[tuple[int, Path, Spectrum]], names: Names) -> Feature:
    place, path, first = members[0]
    name, named_by = name_of(first, place + 1)
    # In an order of their own: a feature is the same in whatever order its spectra come.
    spectra = sorted((spectrum for _, _, spectrum in members), key=_order)
    return Feature(names.take(name), named_by, tuple(spectra), str(path))


def _order(spectrum: Spectrum) -> tuple[float, int, bytes, str]:
    peaks = spectrum.mz.tobytes() + spectrum.intensities.tobytes()
    return spectrum.precursor_mz, len(spectrum), peaks, spectrum.identifier


def _by_precursor(read: Iterator[tuple[Path, Spectrum]], grouping: Grouping) -> Iterator[int]:
    """Numbers of features: chains of spectra of near precursors and near retention times."""
    facts = []
    for path, spectrum in read:
        seconds = retention_seconds(spectrum)
        facts.append((str(path), spectrum.adduct or "", spectrum.precursor_mz,
                      math.nan if seconds is None else seconds))  # fmt: skip
    root = list(range(len(facts)))

    def find(place: int) -> int:
        while root[place] != place:
            root[place] = place = root[root[place]]
        return place

    order = sorted(range(len(facts)), key=lambda place: facts[place][:3])
    for at, place in enumerate(order):
        file, adduct, mz, seconds = facts[place]
        for other in order[at + 1 :]:
            next_file, next_adduct, next_mz, next_seconds = facts[other]
            if (file, adduct) != (next_file, next_adduct):
                break
            if next_mz - mz > grouping.tolerance.of(mz):
                break
            # Without a retention time nothing says that two spectra are of one feature.
            if abs(next_seconds - seconds) <= grouping.seconds:
                low, high = sorted((find(place), find(other)))
                root[high] = low
    yield from (find(place) for place in range(len(facts)))
