"""Spectra of files to features: named as the user names them, each whole before it is judged."""

import dataclasses
import math
import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from mzseek.annotation.config import GROUPINGS
from mzseek.annotation.features import (
    IN_MEMORY,
    Feature,
    Tolerance,
    distinct_spectra,
    feature_id,
    is_profile,
    lacks_time_unit,
    ms_level_problem,
    name_of,
    retention_seconds,
    with_rt_unit,
)
from mzseek.annotation.hypotheses import is_mode_known
from mzseek.core.errors import AnnotationError, InputError, MzseekError, SpectrumError
from mzseek.core.registry import check_name
from mzseek.core.text import distinct_labels, pluralize
from mzseek.io import StrPath
from mzseek.io.skipped import Skipped, SkipTarget, reporter
from mzseek.spectra import Spectrum, as_spectra, read_spectra
from mzseek.spectra.records import POLARITY_CONFLICT, TIME_UNITS, UniqueNames
from mzseek.spectra.spectrum import is_spectrum


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
        self._profiles: Counter[str] = Counter()
        self._is_polarity_known = bytearray()  # of each spectrum

    def add(self, file: str, spectrum: Spectrum) -> None:
        """Note one spectrum of a file."""
        if conflict := spectrum.metadata.get(POLARITY_CONFLICT):
            count, first = self._conflicts.get(file, (0, f"{spectrum.identifier}, {conflict}"))
            self._conflicts[file] = count + 1, first
        self._without_unit[file] += lacks_time_unit(spectrum)
        self._profiles[file] += is_profile(spectrum)
        self._is_polarity_known.append(is_mode_known(Feature("", "", (spectrum,))))

    def lines(self, features: Sequence[int]) -> list[str]:
        """Return the lines for the end of a run, given the number of each spectrum's feature."""
        lines = [
            pluralize(
                count,
                f"record of {file} contradicts itself about the polarity; the first: {first}",
                f"records of {file} contradict themselves about the polarity; the first: {first}",
            )
            for file, (count, first) in self._conflicts.items()
        ]
        for file, count in self._without_unit.items():
            if not count:
                continue
            what = pluralize(count, f"record of {file} states", f"records of {file} state")
            line = f"{what} a retention time without a unit: it is not used"
            if self._grouping.by == "precursor":
                line += ", also not to group spectra by precursor and retention time"
            lines.append(f"{line} (give --rt-unit min or --rt-unit s)")
        lines += [
            f"{pluralize(count, f'record of {file} is', f'records of {file} are')} in profile "
            "mode: peaks are taken as they are, and answers are unsure; centroid them first"
            for file, count in self._profiles.items()
            if count
        ]
        known = {
            n for n, is_known in zip(features, self._is_polarity_known, strict=True) if is_known
        }
        every = len(set(features))
        if unknown := every - len(known):
            lines.append(
                f"{unknown:,} of {pluralize(every, 'feature', 'features')} "
                f"{'has' if unknown == 1 else 'have'} no ion mode in the file (polarity unknown): "
                "read as positive (if they are negative, say --adduct '[M-H]-')"
            )
        return lines


Report = Callable[[str, str], object]
_HELD_PEAKS = 2_000_000  # peaks of files that are kept in memory between readings: some 40 MB
_RECORD_PEAKS = 100  # that the other fields of a record take the memory of


class SpectrumFiles:
    """Spectra of files, folders and archives, parsed once where they fit into memory.

    Of larger inputs the memory stays bounded: they are parsed again for each reading.

    Parameters
    ----------
    paths : path or sequence of paths

    Raises
    ------
    InputError
        A file is given twice: its spectra would count twice as evidence.
    """

    def __init__(self, paths: StrPath | Sequence[StrPath]) -> None:
        several = [paths] if isinstance(paths, str | os.PathLike) else paths
        self.paths = [Path(path) for path in several]
        resolved = [path.resolve() for path in self.paths]
        for at, path in enumerate(self.paths):
            if resolved[at] in resolved[:at]:
                raise InputError(path, "is given twice, expected each file once")
        self._held: dict[Path, list[tuple[str, Spectrum] | Skipped]] = {}
        self._begun: dict[Path, Iterator[tuple[str, Spectrum] | Skipped]] = {}
        self._whole: set[Path] = set()
        self._capacity = _HELD_PEAKS

    def first(self, number: int) -> list[list[Spectrum]]:
        """Return up to so many spectra of each path; none of one that cannot be read."""
        by_path = []
        for path in self.paths:
            try:
                spectra = (
                    record[1] for record in self._records(path) if not isinstance(record, Skipped)
                )
                by_path.append(list(islice(spectra, number)))
            except MzseekError:  # which is reported where the file is read
                self._forget(path)
                by_path.append([])
        return by_path

    def read(self, report: Report) -> Iterator[tuple[Path, str, Spectrum]]:
        """Yield each spectrum with its path and the file in it (of a folder or archive)."""
        for path in self.paths:
            for record in self._records(path):
                if isinstance(record, Skipped):
                    report(*record[:2])
                    continue
                file, spectrum = record
                problem = ms_level_problem(spectrum)
                if problem is None:
                    yield path, file, spectrum
                else:
                    report(f"{path}: {spectrum.identifier}", problem)

    def _records(self, path: Path) -> Iterator[tuple[str, Spectrum] | Skipped]:
        """Yield what is held of a path, then the rest, which is held as long as there is room."""
        held = self._held.setdefault(path, [])
        yield from held
        if path in self._whole:
            return
        rest = self._begun.setdefault(path, _parse(path))
        for record in rest:
            if path in self._begun:
                peaks = 0 if isinstance(record, Skipped) else len(record[1])
                self._capacity -= _RECORD_PEAKS + peaks
                held.append(record)
                if self._capacity < 0:
                    self._forget(path)
            yield record
        if path in self._begun:
            self._whole.add(path)

    def _forget(self, path: Path) -> None:
        self._held[path], self._capacity = [], max(self._capacity, 0)
        self._begun.pop(path, None)


def _parse(path: Path) -> Iterator[tuple[str, Spectrum] | Skipped]:
    """Yield the records of a path in their order, skipped ones among them."""
    skipped: list[Skipped] = []
    file = ""

    def opened(name: str, _label: str) -> None:
        nonlocal file
        file = name

    for spectrum in read_spectra(path, skipped, skip_bad_peaks=True, opened=opened):
        yield from skipped
        skipped.clear()
        yield file, spectrum
    yield from skipped


class SpectrumList:
    """Spectra in memory, of mzseek or matchms, under the methods of `SpectrumFiles`."""

    paths: Sequence[Path] = ()

    def __init__(self, spectra: Any) -> None:
        single = is_spectrum(spectra) or not isinstance(spectra, Iterable)
        self._spectra = [spectra] if single else list(spectra)

    def first(self, number: int) -> list[list[Spectrum]]:
        """Return nothing: tolerances are not taken from spectra in memory."""
        return []

    def read(self, report: Report) -> Iterator[tuple[Path, str, Spectrum]]:
        """Yield each spectrum that can be used, with the name of no file."""
        try:
            spectra = as_spectra(self._spectra, report, skip_bad_peaks=True)
            for number, spectrum in enumerate(spectra, 1):
                problem = ms_level_problem(spectrum)
                if problem is None:
                    yield Path(IN_MEMORY), "", spectrum
                else:
                    report(f"spectrum {number}: {spectrum.identifier}", problem)
        except SpectrumError as error:
            raise AnnotationError(f"{error}, or a path") from error


def spectra_source(spectra: Any) -> SpectrumFiles | SpectrumList:
    """Return paths, or spectra in memory, as a source of spectra.

    Raises
    ------
    AnnotationError
        Paths and spectra were given together.
    """
    if isinstance(spectra, SpectrumFiles | SpectrumList):
        return spectra
    if isinstance(spectra, str | os.PathLike):
        return SpectrumFiles(spectra)
    if is_spectrum(spectra) or not isinstance(spectra, Iterable):
        return SpectrumList(spectra)
    several = list(spectra)
    are_paths = {isinstance(item, str | os.PathLike) for item in several}
    if len(are_paths) > 1:
        raise AnnotationError("paths and spectra were given together, expected one kind")
    return SpectrumFiles(several) if are_paths == {True} else SpectrumList(several)


class Features:
    """Features of spectra, each given out when its last spectrum was read.

    Spectra are read twice, first to tell which belong together: memory does not grow with large
    files, and no order of spectra shows.

    Parameters
    ----------
    spectra : paths, spectra, or a source of spectra
    grouping : Grouping, optional
    skipped : list or callable of (where, reason), optional
        Gets each record that is skipped, once.

    Attributes
    ----------
    records, skipped : int
        Spectra in features, and records that were skipped.
    """

    def __init__(
        self, spectra: Any, grouping: Grouping | None = None, skipped: SkipTarget | None = None
    ) -> None:
        self.source = spectra_source(spectra)
        self.grouping = grouping or Grouping()
        self.skipped = 0
        report = reporter([] if skipped is None else skipped)

        def count(where: str, reason: str) -> None:
            self.skipped += 1
            report(where, reason)

        self._warnings = InputWarnings(self.grouping)
        self._files: dict[str, int] = {}
        self._file_of, self._name_of = array("q"), array("q")  # of each spectrum; hashes of names
        self._keys = list(_feature_keys(self._first_reading(count), self.grouping))
        files = list(self._files)
        self._labels = [""] if files == [""] else distinct_labels([Path(file) for file in files])
        self._shared = self._shared_names()
        self.records = len(self._keys)
        self._left = Counter(self._keys)

    def __len__(self) -> int:
        return len(self._left)

    def warnings(self) -> list[str]:
        """Lines about what is doubtful in the spectra, for the end of a run."""
        return self._warnings.lines(self._keys)

    def __iter__(self) -> Iterator[Feature]:
        names = UniqueNames()
        left, held = Counter(self._left), {}  # type: ignore[var-annotated]
        for index, (path, _, spectrum) in enumerate(self._spectra(lambda where, reason: None)):
            if index >= len(self._keys):
                break
            key = self._keys[index]
            held.setdefault(key, []).append((index, path, spectrum))
            left[key] -= 1
            if not left[key]:
                file = self._labels[self._file_of[key]]
                is_shared = self._name_of[key] in self._shared
                yield _feature(held.pop(key), names, file, is_shared=is_shared)
        else:
            if not held and not any(left.values()):
                return
        raise InputError(
            " and ".join(map(str, self.source.paths)), "has changed while it was read; run it again"
        )

    def _shared_names(self) -> set[int]:
        """Hashes of names that features of several files have."""
        first_file: dict[int, int] = {}
        shared = set()
        for index, key in enumerate(self._keys):
            if index == key:  # a feature is named by its first spectrum
                file, name = self._file_of[index], self._name_of[index]
                if first_file.setdefault(name, file) != file:
                    shared.add(name)
        return shared

    def _spectra(self, report: Report) -> Iterator[tuple[Path, str, Spectrum]]:
        for path, file, spectrum in self.source.read(report):
            yield path, file, with_rt_unit(spectrum, self.grouping.rt_unit)

    def _first_reading(self, report: Report) -> Iterator[tuple[str, str, Spectrum]]:
        """Yield each spectrum with its path and file, noting what is doubtful."""
        for index, (path, file, spectrum) in enumerate(self._spectra(report)):
            self._warnings.add(str(path) if self.source.paths else "the spectra", spectrum)
            self._file_of.append(self._files.setdefault(file, len(self._files)))
            self._name_of.append(hash(name_of(spectrum, index + 1)[0]))
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
    for index, (_, file, spectrum) in enumerate(read):
        key = feature_id(spectrum) if grouping.by == "id" else ""
        yield known.setdefault((file, key), index) if key else index


def _feature(
    members: Sequence[tuple[int, Path, Spectrum]],
    names: UniqueNames,
    file: str = "",
    *,
    is_shared: bool = False,
) -> Feature:
    """Return the feature of some spectra, each with its place and path.

    Parameters
    ----------
    members : sequence of (int, Path, Spectrum)
    names : Names
        Those that are taken.
    file : str
        What tables may call the file.
    is_shared : bool
        Whether features of other files have the same id: then it is called ``file:id``.
    """
    index, path, first = members[0]
    id_, named_by = name_of(first, index + 1)
    with_file = f"{file}:{id_}" if file else id_
    name = names.take(with_file if is_shared else id_)
    spectra, repeated, notes = distinct_spectra(spectrum for _, _, spectrum in members)
    if name != id_:
        notes.append(f"other features have the id {id_}, too: this one is called {name}")
    known_as = dict.fromkeys((name, with_file, with_file if is_shared else id_))
    return Feature(name, named_by, spectra, str(path), id_, tuple(known_as), repeated, tuple(notes))


def _by_precursor(
    spectra: Sequence[tuple[str, str, float, float]], grouping: Grouping
) -> Iterator[int]:
    """Numbers of features: chains of spectra of near precursors and near retention times.

    `spectra` are file, adduct, precursor m/z and seconds (NaN where not known) of each spectrum.
    """
    root = list(range(len(spectra)))

    def find(index: int) -> int:
        while root[index] != index:
            root[index] = index = root[root[index]]
        return index

    order = sorted(range(len(spectra)), key=lambda index: spectra[index][:3])
    for at, index in enumerate(order):
        file, adduct, mz, seconds = spectra[index]
        for other in order[at + 1 :]:
            next_file, next_adduct, next_mz, next_seconds = spectra[other]
            if (file, adduct) != (next_file, next_adduct):
                break
            if next_mz - mz > grouping.tolerance.of(mz):
                break
            # Without a retention time nothing says that two spectra are of one feature.
            if abs(next_seconds - seconds) <= grouping.seconds:
                low, high = sorted((find(index), find(other)))
                root[high] = low
    yield from (find(index) for index in range(len(spectra)))
