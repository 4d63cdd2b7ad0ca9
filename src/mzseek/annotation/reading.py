"""Spectra of files to features: named as the user names them, each whole before it is judged."""

import heapq
import math
import os
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from mzseek.annotation.config import GROUPINGS, OFF, AnnotateConfig
from mzseek.annotation.feature_tables import TablePatterns
from mzseek.annotation.features import (
    FEATURE_ID,
    IN_MEMORY,
    Feature,
    cleaned,
    distinct_places,
    distinct_spectra,
    feature_id,
    is_profile,
    lacks_time_unit,
    ms_level_problem,
    name_of,
    recalibrated,
    retention_seconds,
    with_rt_unit,
)
from mzseek.core.errors import AnnotationError, InputError, MzseekError, SpectrumError
from mzseek.core.registry import check_name
from mzseek.core.text import distinct_labels, pluralize
from mzseek.io import StrPath, stable_hash
from mzseek.io.skipped import Skipped, SkipTarget, reporter
from mzseek.spectra import Spectrum, as_spectra, read_spectra
from mzseek.spectra.read import NO_COLUMNS
from mzseek.spectra.recalibration import FileErrors, MassErrorCurve
from mzseek.spectra.records import POLARITY_CONFLICT, UniqueNames, canonical_key
from mzseek.spectra.spectrum import is_spectrum

SAMPLE = 150  # spectra of a file that its mass error and background are estimated from
_SAMPLED_PEAKS = 3  # at least, of each
_PEEKED = 100  # spectra whose fields are named where none has that to group by
_MAX_SHOWN = 5
_LONGEST = 40  # letters of a name that are shown


class InputWarnings:
    """What is doubtful in the spectra that were read: one line for each kind and file.

    Examples
    --------
    >>> import numpy as np
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "a", {})
    >>> warnings = InputWarnings()
    >>> warnings.add("x.mgf", one)
    >>> warnings.lines([0])
    ["1 of 1 feature has no ion mode in the file (polarity unknown): read as positive (if they \
are negative, say --adduct '[M-H]-')"]
    """

    def __init__(self, group: str = "id") -> None:
        self._group = group
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
        self._is_polarity_known.append(spectrum.polarity != 0)

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
            if self._group == "precursor":
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
    columns : mapping of str to str, optional
        As `mzseek.spectra.read_spectra` takes it.

    Raises
    ------
    InputError
        A file is given twice: its spectra would count twice as evidence.
    """

    def __init__(
        self, paths: StrPath | Sequence[StrPath], columns: Mapping[str, str] = NO_COLUMNS
    ) -> None:
        self.columns = columns
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
        rest = self._begun.setdefault(path, _parse(path, self.columns))
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


def _parse(path: Path, columns: Mapping[str, str]) -> Iterator[tuple[str, Spectrum] | Skipped]:
    """Yield the records of a path in their order, skipped ones among them."""
    skipped: list[Skipped] = []
    file = ""

    def opened(name: str, _label: str) -> None:
        nonlocal file
        file = name

    for spectrum in read_spectra(
        path, skipped, skip_bad_peaks=True, opened=opened, columns=columns
    ):
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


def spectra_source(
    spectra: Any, columns: Mapping[str, str] = NO_COLUMNS
) -> SpectrumFiles | SpectrumList:
    """Return paths, or spectra in memory, as a source of spectra; `columns` as `SpectrumFiles`.

    Raises
    ------
    AnnotationError
        Paths and spectra were given together, or a data frame.
    """
    if isinstance(spectra, SpectrumFiles | SpectrumList):
        return spectra
    if isinstance(spectra, Mapping) or hasattr(spectra, "columns"):  # iterates over its names
        raise AnnotationError(
            f"spectra is a {type(spectra).__name__}, expected a path, or spectra of "
            "mz.read_spectra or matchms; write a table of spectra to a file (Parquet) first"
        )
    if isinstance(spectra, str | os.PathLike):
        return SpectrumFiles(spectra, columns)
    if is_spectrum(spectra) or not isinstance(spectra, Iterable):
        return SpectrumList(spectra)
    several = list(spectra)
    are_paths = {isinstance(item, str | os.PathLike) for item in several}
    if len(are_paths) > 1:
        raise AnnotationError("paths and spectra were given together, expected one kind")
    return SpectrumFiles(several, columns) if are_paths == {True} else SpectrumList(several)


class Features:
    """Features of spectra, each given out when its last spectrum was read.

    Spectra are read twice, first to tell which belong together: memory does not grow with large
    files, and no order of spectra shows.

    Parameters
    ----------
    spectra : paths, spectra, or a source of spectra
    config : AnnotateConfig, optional
        How spectra are grouped, and the table of features that has isotope patterns.
    skipped : list or callable of (where, reason), optional
        Gets each record that is skipped, once.

    Attributes
    ----------
    records, skipped : int
        Spectra in features, and records that were skipped.
    curves : dict of str to MassErrorCurve
        By file, the mass error that is taken off its spectra (`recalibrate`).
    background : dict of str to tuple of float
        By file, the m/z of its background lines, which are removed.
    """

    def __init__(
        self, spectra: Any, config: AnnotateConfig | None = None, skipped: SkipTarget | None = None
    ) -> None:
        self.config = config or AnnotateConfig()
        self.source = spectra_source(spectra, self.config.spectrum_columns)
        self.skipped = 0
        report = reporter([] if skipped is None else skipped)

        def count(where: str, reason: str) -> None:
            self.skipped += 1
            report(where, reason)

        table = self.config.features
        self._patterns = None if table is None else TablePatterns(Path(table))
        self._warnings = InputWarnings(self.config.group)
        self._field = group_field(self.config)
        self.curves: dict[str, MassErrorCurve] = {}
        self.background: dict[str, tuple[float, ...]] = {}
        self._files: dict[str, int] = {}
        self._samples: dict[str, list[tuple[int, int, str, Spectrum]]] = {}
        self._file_of, self._name_of = array("q"), array("q")  # of each spectrum; hashes of names
        self._keys = list(_feature_keys(self._first_reading(count), self.config))
        files = list(self._files)
        self._labels = [""] if files == [""] else distinct_labels([Path(file) for file in files])
        self._shared = self._shared_names()
        self.records = len(self._keys)
        self._left = Counter(self._keys)

    def __len__(self) -> int:
        return len(self._left)

    def warnings(self) -> list[str]:
        """Lines about what is doubtful in the spectra, for the end of a run."""
        lines = self._warnings.lines(self._keys)
        return lines if self._patterns is None else [*lines, *self._patterns.lines()]

    def recalibrate(self, estimate: Callable[[Sequence[Feature]], FileErrors]) -> None:
        """Estimate the mass error and background of each file from a sample of its spectra.

        Features that are given out then have both taken off.

        The sample depends on the peaks of the spectra alone, not on their order or names.
        """
        for file, sample in self._samples.items():
            errors = estimate([self._sampled(*entry[1:]) for entry in sorted(sample)])
            if errors.curve is not None:
                self.curves[file] = errors.curve
            if errors.background:
                self.background[file] = errors.background
        self._samples.clear()

    def _sampled(self, index: int, path: str, spectrum: Spectrum) -> Feature:
        """Return a spectrum as a feature of its own, with the names that tables may have."""
        id_, named_by = name_of(spectrum, index + 1, self._field)
        file = self._labels[self._file_of[index]]
        with_file = f"{file}:{id_}" if file else id_
        is_shared = self._name_of[index] in self._shared
        names = dict.fromkeys((with_file, with_file if is_shared else id_))
        return Feature(id_, named_by, distinct_spectra([spectrum])[0], path, id_, tuple(names))

    def _add_to_sample(self, index: int, path: str, file: str, spectrum: Spectrum) -> None:
        """Keep a spectrum if the hash of its peaks is among the lowest of its file."""
        if self.config.recalibrate == self.config.clean == OFF or len(spectrum) < _SAMPLED_PEAKS:
            return
        sample = self._samples.setdefault(file, [])
        # Negative, since the heap has its smallest first.
        key = -stable_hash(spectrum.mz.tobytes(), spectrum.intensities.tobytes())
        if len(sample) < SAMPLE:
            heapq.heappush(sample, (key, index, path, spectrum))
        elif key > sample[0][0]:
            heapq.heapreplace(sample, (key, index, path, spectrum))

    def __iter__(self) -> Iterator[Feature]:
        names = UniqueNames()
        left, held = Counter(self._left), {}  # type: ignore[var-annotated]
        files = list(self._files)
        for index, (path, _, spectrum) in enumerate(self._spectra(lambda where, reason: None)):
            if index >= len(self._keys):
                break
            key = self._keys[index]
            held.setdefault(key, []).append((index, path, spectrum))
            left[key] -= 1
            if not left[key]:
                members = held.pop(key)
                label = self._labels[self._file_of[key]]
                feature, places = _feature(
                    members, names, label, self._name_of[key] in self._shared, self._field
                )
                if self._patterns is not None:
                    feature = self._patterns.add_to(feature)
                origins = [files[self._file_of[members[place][0]]] for place in places]
                if self.config.clean != OFF and not self.config.is_coarse:
                    feature = cleaned(feature, [self.background.get(file, ()) for file in origins])
                yield recalibrated(feature, list(map(self.curves.get, origins)), self.config)
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
            yield path, file, with_rt_unit(spectrum, self.config.rt_unit)

    def _first_reading(self, report: Report) -> Iterator[tuple[str, str, Spectrum]]:
        """Yield each spectrum with its path and file, noting what is doubtful."""
        for index, (path, file, spectrum) in enumerate(self._spectra(report)):
            self._warnings.add(str(path) if self.source.paths else "the spectra", spectrum)
            self._file_of.append(self._files.setdefault(file, len(self._files)))
            self._name_of.append(hash(name_of(spectrum, index + 1, self._field)[0]))
            self._add_to_sample(index, str(path), file, spectrum)
            yield str(path), file, spectrum


def _feature_keys(
    read: Iterable[tuple[str, str, Spectrum]], config: AnnotateConfig
) -> Iterator[int]:
    """Yield the number of each spectrum's feature, given its path, its file and the spectrum."""
    if config.group == "precursor":
        spectra = list[tuple[str, str, float, float]]()
        for path, _, spectrum in read:
            seconds = retention_seconds(spectrum)
            time = math.nan if seconds is None else seconds
            spectra.append((path, spectrum.adduct or "", spectrum.precursor_mz, time))
        yield from _by_precursor(spectra, config)
        return
    field, has_any = group_field(config), False
    known: dict[tuple[str, str], int] = {}
    fields: dict[str, None] = {}
    for index, (_, file, spectrum) in enumerate(read):
        fields.update(dict.fromkeys(spectrum.metadata) if index < _PEEKED else {})
        key = feature_id(spectrum, field or FEATURE_ID) if config.group != "none" else ""
        has_any = has_any or bool(key)
        # An id is of its file, a field that the user names is of the study.
        yield known.setdefault(("" if field else file, key), index) if key else index
    if field and fields and not has_any:
        check_name([*GROUPINGS, *fields], config.group, "grouping", AnnotationError)


def group_field(config: AnnotateConfig) -> str:
    """Return the field of records that features are grouped by, in all files; empty for none.

    Examples
    --------
    >>> group_field(AnnotateConfig(group="Molecule-ID")), group_field(AnnotateConfig(group="id"))
    ('molecule_id', '')
    """
    return "" if config.group in GROUPINGS else canonical_key(config.group)


def _feature(
    members: Sequence[tuple[int, Path, Spectrum]],
    names: UniqueNames,
    file: str,
    is_shared: bool,
    field: str,
) -> tuple[Feature, list[int]]:
    """Return the feature of some spectra, called ``file:id`` if other files have its id.

    Also returns the place among `members` of each of its spectra.
    """
    index, path, first = members[0]
    id_, named_by = name_of(first, index + 1, field)
    with_file = f"{file}:{id_}" if file else id_
    name = names.take(with_file if is_shared else id_)
    distinct, repeated, notes = distinct_places(spectrum for _, _, spectrum in members)
    if name != id_:
        notes.append(f"other features have the id {id_}, too: this one is called {name}")
    if len(files := {str(member[1]) for member in members}) > 1:
        shown = distinct_labels([Path(file) for file in sorted(files)])
        notes.append(f"its spectra are of {len(files)} files: {', '.join(shown)}")
    known_as = dict.fromkeys((name, with_file, with_file if is_shared else id_))
    spectra = tuple(spectrum for _, spectrum in distinct)
    feature = Feature(
        name, named_by, spectra, str(path), id_, tuple(known_as), repeated, tuple(notes)
    )
    return feature, [place for place, _ in distinct]


def _by_precursor(
    spectra: Sequence[tuple[str, str, float, float]], config: AnnotateConfig
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
            if next_mz - mz > config.precursor_tolerance.of(mz):
                break
            # Without a retention time nothing says that two spectra are of one feature.
            if abs(next_seconds - seconds) <= config.rt_window:
                low, high = sorted((find(index), find(other)))
                root[high] = low
    yield from (find(index) for index in range(len(spectra)))


class Named:
    """Names of features by the table that has them; those that are met are struck off.

    Parameters
    ----------
    tables : mapping of str to collection of str
        For each table, as messages call it, the features that it names.

    Examples
    --------
    >>> named = Named({"the table of formulas": ["7", "8"]})
    >>> named.lines()
    ["the table of formulas: 2 of its 2 features are not among the spectra: '7', '8'"]

    Features of several files that have one id are called ``file:id`` (`Feature.name`), and are met
    by that name.
    """

    def __init__(self, tables: Mapping[str, Collection[str]]) -> None:
        self._sizes = {table: len(names) for table, names in tables.items()}
        # Dicts, which keep the order of the table.
        self._left = {table: dict.fromkeys(names) for table, names in tables.items()}
        self._named = {table: frozenset(names) for table, names in tables.items()}
        self._renamed_count, self._renamed = 0, list[dict[str, str]]()
        # By table: ids that it names and several features have, each with names of some of these.
        self._ambiguous: dict[str, dict[str, list[str]]] = {table: {} for table in tables}

    def __bool__(self) -> bool:
        """Whether any name has not been met."""
        return any(self._left.values())

    def meet(self, features: Iterable[Feature]) -> Iterator[Feature]:
        """The same features, each struck off as it goes by."""
        for feature in features:
            for left in self._left.values():
                for name in feature.table_names:
                    left.pop(name, None)
            if feature.id and feature.name != feature.id:
                self._note_renamed(feature)
            yield feature

    def _note_renamed(self, feature: Feature) -> None:
        self._renamed_count += 1
        if len(self._renamed) < _MAX_SHOWN:
            self._renamed.append({"id": feature.id, "name": feature.name, "file": feature.where})
        for table, names in self._named.items():
            if feature.id in names and names.isdisjoint(feature.table_names):
                self._left[table].pop(feature.id, None)  # told as ambiguous
                self._ambiguous[table].setdefault(feature.id, []).append(feature.name)

    def metadata(self) -> dict[str, Any]:
        """For each table how many it names, and what was not met, for a run folder."""
        return {
            table: {
                "named": self._sizes[table],
                "not_met": len(left),
                "first": list(left)[:_MAX_SHOWN],
                "ambiguous": len(self._ambiguous[table]),
                "first_ambiguous": list(self._ambiguous[table])[:_MAX_SHOWN],
            }
            for table, left in self._left.items()
        }

    def renamed(self) -> dict[str, Any]:
        """How many features were renamed since others have their id, and the first, as data."""
        return {"count": self._renamed_count, "first": self._renamed}

    def lines(self) -> list[str]:
        """Lines about features that were renamed, and about what tables name in vain."""
        lines = []
        if self._renamed_count:
            shown = ", ".join(
                f"{_short(entry['id'])} is {_short(entry['name'])}" for entry in self._renamed
            )
            several = self._renamed_count != 1
            lines.append(
                f"{self._renamed_count:,} feature{'s have ids' if several else ' has an id'} that "
                f"other features have, too, and {'were' if several else 'was'} renamed: {shown}"
                f"{', …' if self._renamed_count > _MAX_SHOWN else ''}"
            )
        for table, left in self._left.items():
            if left:
                shown = ", ".join(map(_short, list(left)[:_MAX_SHOWN]))
                lines.append(
                    f"{table}: {len(left):,} of its {self._sizes[table]:,} features "
                    f"{'is' if len(left) == 1 else 'are'} not among the spectra: {shown}"
                    f"{', …' if len(left) > _MAX_SHOWN else ''}"
                )
        for table, ids in self._ambiguous.items():
            if ids:
                id_, names = next(iter(ids.items()))
                lines.append(
                    f"{table}: {len(ids):,} of its {self._sizes[table]:,} features "
                    f"{'is' if len(ids) == 1 else 'are'} in several files, and not used: instead "
                    f"of {_short(id_)} write {' or '.join(map(_short, names[:_MAX_SHOWN]))}"
                )
        return lines


def _short(name: str) -> str:
    return repr(name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…")
