"""Spectra of files to features: named as the user names them, each whole before it is judged."""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mzseek.annotation.asking.ions import is_mode_known
from mzseek.annotation.asking.tolerance import Tolerance
from mzseek.annotation.features import (
    GIVEN,
    Feature,
    fault_of,
    feature_id,
    lacks_time_unit,
    name_of,
    retention_seconds,
    with_rt_unit,
)
from mzseek.errors import AnnotationError, InputError
from mzseek.files import StrPath
from mzseek.registry import check_name
from mzseek.rejects import Rejects, reporter
from mzseek.spectra import Spectrum, read_spectra
from mzseek.spectra.numbers import TIME_UNITS
from mzseek.spectra.record import POLARITY_CONFLICT, Names

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
    rt_unit : str, optional
        "s" or "min": of retention times whose unit the file does not tell.
    """

    by: str = "id"
    tolerance: Tolerance = dataclasses.field(default_factory=Tolerance)
    seconds: float = 10.0
    rt_unit: str | None = None

    def __post_init__(self) -> None:
        """Refuse what is unknown."""
        check_name(GROUPINGS, self.by, "grouping", AnnotationError)
        if not self.seconds >= 0:
            raise AnnotationError(f"retention times within {self.seconds:g} s, expected 0 or more")
        if self.rt_unit is not None:
            check_name(tuple(TIME_UNITS), self.rt_unit, "unit of retention times", AnnotationError)


class InputWarnings:
    """What is doubtful in the spectra that were read: one line for each kind and file.

    Examples
    --------
    >>> import numpy as np
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "a", {})
    >>> warnings = InputWarnings(Grouping())
    >>> warnings.add("x.mgf", one)
    >>> warnings.lines([0])
    ["1 of 1 feature has no ion mode in the file (polarity unknown): read as positive (if they \
are negative, say --adduct '[M-H]-')"]
    """

    def __init__(self, grouping: Grouping) -> None:
        self._grouping = grouping
        self._conflicts: dict[str, tuple[int, str]] = {}  # by file: number, the first
        self._without_unit: Counter[str] = Counter()
        self._is_polarity_known = bytearray()  # of each spectrum

    def add(self, file: str, spectrum: Spectrum) -> None:
        """Note one spectrum of a file."""
        if conflict := spectrum.metadata.get(POLARITY_CONFLICT):
            count, first = self._conflicts.get(file, (0, f"{spectrum.identifier}, {conflict}"))
            self._conflicts[file] = count + 1, first
        self._without_unit[file] += lacks_time_unit(spectrum)
        self._is_polarity_known.append(is_mode_known(Feature("", "", (spectrum,))))

    def lines(self, features: Sequence[int]) -> list[str]:
        """The lines for the end of a run, given the number of each spectrum's feature."""
        said = [
            f"{_counted(count, 'record')} of {file} {_verb(count, 'contradict')} "
            f"{'itself' if count == 1 else 'themselves'} about the polarity; the first: {first}"
            for file, (count, first) in self._conflicts.items()
        ]
        for file, count in self._without_unit.items():
            if not count:
                continue
            line = (
                f"{_counted(count, 'record')} of {file} {_verb(count, 'state')} a retention time "
                "without a unit: it is not used"
            )
            if self._grouping.by == "precursor":
                line += ", also not to group spectra by precursor and retention time"
            said.append(f"{line} (give --rt-unit min or --rt-unit s)")
        known = {
            n for n, is_known in zip(features, self._is_polarity_known, strict=True) if is_known
        }
        every = len(set(features))
        if unknown := every - len(known):
            said.append(
                f"{unknown:,} of {_counted(every, 'feature')} "
                f"{'has' if unknown == 1 else 'have'} no ion mode in the file (polarity unknown): "
                "read as positive (if they are negative, say --adduct '[M-H]-')"
            )
        return said


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _verb(number: int, verb: str) -> str:
    return f"{verb}s" if number == 1 else verb


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

        self._warnings = InputWarnings(self.grouping)
        self._keys = list(_feature_keys(self._first_reading(counted), self.grouping))
        self.records = len(self._keys)
        self._left = Counter(self._keys)

    def __len__(self) -> int:
        return len(self._left)

    def warnings(self) -> list[str]:
        """Lines about what is doubtful in the files, for the end of a run."""
        return self._warnings.lines(self._keys)

    def __iter__(self) -> Iterator[Feature]:
        names = Names()
        left, held = Counter(self._left), {}  # type: ignore[var-annotated]
        for place, (path, _, spectrum) in enumerate(self._spectra(lambda where, reason: None)):
            key = self._keys[place]
            held.setdefault(key, []).append((place, path, spectrum))
            left[key] -= 1
            if not left[key]:
                yield _feature(held.pop(key), names)

    def _spectra(self, rejects: Rejects) -> Iterator[tuple[Path, str, Spectrum]]:
        """Each spectrum with the path that was given, and the file in it (of a folder or zip)."""
        report = reporter(rejects)
        file = ""

        def opened(name: str, _label: str) -> None:
            nonlocal file
            file = name

        for path in self.paths:
            for spectrum in read_spectra(path, rejects, opened=opened):
                fault = fault_of(spectrum)
                if fault is None:
                    yield path, file, with_rt_unit(spectrum, self.grouping.rt_unit)
                else:
                    report(f"{path}: {spectrum.identifier}", fault)

    def _first_reading(self, rejects: Rejects) -> Iterator[tuple[str, str, Spectrum]]:
        """Yield each spectrum with its path and file, noting what is doubtful."""
        for path, file, spectrum in self._spectra(rejects):
            self._warnings.add(str(path), spectrum)
            yield str(path), file, spectrum


def _feature_keys(read: Iterable[tuple[str, str, Spectrum]], grouping: Grouping) -> Iterator[int]:
    """Yield the number of each spectrum's feature, given its path, its file and the spectrum."""
    if grouping.by == "precursor":
        spectra = list[tuple[str, str, float, float]]()
        for path, _, spectrum in read:
            seconds = retention_seconds(spectrum)
            time = math.nan if seconds is None else seconds
            spectra.append((path, spectrum.adduct or "", spectrum.precursor_mz, time))
        yield from _by_precursor(spectra, grouping)
        return
    known: dict[tuple[str, str], int] = {}
    for place, (_, file, spectrum) in enumerate(read):
        key = feature_id(spectrum) if grouping.by == "id" else ""
        yield known.setdefault((file, key), place) if key else place


def _check_distinct(paths: Sequence[Path]) -> None:
    """Refuse a file that is named twice: its spectra would count twice as evidence."""
    places = [path.resolve() for path in paths]
    for place, path in enumerate(paths):
        if places[place] in places[:place]:
            raise InputError(path, "is given twice, expected each file once")


def features_of(spectra: Iterable[Spectrum], grouping: Grouping | None = None) -> list[Feature]:
    """Features of spectra that are in memory; by default those with one ``feature_id`` are one.

    ``grouping.rt_unit`` holds for retention times without a unit.

    Examples
    --------
    >>> import numpy as np
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "a", {"feature_id": "7"})
    >>> [(each.name, len(each.spectra)) for each in features_of([one, one])]
    [('7', 2)]
    """
    how = grouping or Grouping()
    read = [with_rt_unit(spectrum, how.rt_unit) for spectrum in spectra]
    groups: dict[int, list[tuple[int, Path, Spectrum]]] = {}
    keys = _feature_keys(((GIVEN, GIVEN, spectrum) for spectrum in read), how)
    for place, (key, spectrum) in enumerate(zip(keys, read, strict=True)):
        groups.setdefault(key, []).append((place, Path(GIVEN), spectrum))
    names = Names()
    return [_feature(members, names) for members in groups.values()]


def warnings_of(features: Sequence[Feature], grouping: Grouping) -> list[str]:
    """Lines about what is doubtful in features that are in memory."""
    warnings, numbers = InputWarnings(grouping), list[int]()
    for number, feature in enumerate(features):
        for spectrum in feature.spectra:
            warnings.add("the spectra", spectrum)
            numbers.append(number)
    return warnings.lines(numbers)


def _feature(members: Sequence[tuple[int, Path, Spectrum]], names: Names) -> Feature:
    place, path, first = members[0]
    name, named_by = name_of(first, place + 1)
    # In an order of their own: a feature is the same in whatever order its spectra come.
    spectra = sorted((spectrum for _, _, spectrum in members), key=_order)
    return Feature(names.take(name), named_by, tuple(spectra), str(path))


def _order(spectrum: Spectrum) -> tuple[float, int, bytes, str]:
    peaks = spectrum.mz.tobytes() + spectrum.intensities.tobytes()
    return spectrum.precursor_mz, len(spectrum), peaks, spectrum.identifier


def _by_precursor(
    facts: Sequence[tuple[str, str, float, float]], grouping: Grouping
) -> Iterator[int]:
    """Numbers of features: chains of spectra of near precursors and near retention times.

    ``facts`` are file, adduct, precursor m/z and seconds (NaN where not known) of each spectrum.
    """
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
