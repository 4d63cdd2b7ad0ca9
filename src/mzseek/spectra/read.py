"""Spectra of files in every format, and of other packages' objects; the registry of formats."""

import codecs
import dataclasses
import functools
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from mzseek.core.errors import InputError, Reason, SpectrumError
from mzseek.core.registry import load
from mzseek.core.text import shorten
from mzseek.io import Source, StrPath, open_source, zip_sources
from mzseek.io.skipped import Report, SkipTarget, reporter
from mzseek.io.sources import MAX_FAULTS, paths_below
from mzseek.spectra.records import SKIPPED_PEAKS, Record, UniqueNames, identifier_of, to_spectrum
from mzseek.spectra.spectrum import (
    MAX_MZ,
    Spectrum,
    clean_peaks,
    is_spectrum,
    measurable_peaks,
)
from mzseek.spectra.survey import with_survey_scans

Opened = Callable[[str, str], object]
Columns = Mapping[str, str]  # names of a table's columns, by what they hold (`tables.ROLES`)
NO_COLUMNS: Columns = MappingProxyType({})
_FORMATS = "mzseek.spectra.formats"
_OF_MOLECULES = (".smi", ".smiles", ".sdf", ".psv")


@dataclass(frozen=True)
class SpectrumFormat:
    """How a format is recognised, read, and described in messages.

    Attributes
    ----------
    label : str
    patterns : tuple of str
        Regular expressions, each of which matches in the beginning of a file.
    reader : str
        ``module:function`` in `mzseek.spectra.formats`, which splits a `Source` into records.
    record_form : str
        What a record looks like.
    suffixes : tuple of str
        Names of files whose first record may come after a long preamble.
    test : str
        ``module:function`` of the beginning of a file and of the columns that the user names,
        beside the patterns; for tables, whose reader gets these columns, too.
    is_table : bool
        Whether it has columns that a user may name.
    """

    label: str
    patterns: tuple[str, ...]
    reader: str
    record_form: str
    suffixes: tuple[str, ...]
    test: str = ""
    is_table: bool = False

    def looks_like(self, head: str, columns: Columns = NO_COLUMNS) -> bool:
        """Return whether the beginning of a file is in this format."""
        if not all(re.search(pattern, head, re.MULTILINE) for pattern in self.patterns):
            return False
        return not self.test or bool(load(f"{_FORMATS}.{self.test}")(head, columns))

    def read(self, source: Source, columns: Columns = NO_COLUMNS) -> Iterator[Record]:
        """Split a source into records, unchecked."""
        more = (columns,) if self.is_table else ()
        records: Iterator[Record] = load(f"{_FORMATS}.{self.reader}")(source, *more)
        return records


FORMATS: dict[str, SpectrumFormat] = {
    "parquet": SpectrumFormat(
        "Parquet", (r"\APAR1",), "arrow:read_parquet", "a row with lists of peaks", (".parquet",),
        is_table=True,
    ),
    "arrow": SpectrumFormat(
        "Arrow", (r"\A(?:ARROW1|\ufffd{4}[\s\S]{1,4}\x10\0)",), "arrow:read_arrow",
        "a row with lists of peaks", (".arrow", ".feather"), is_table=True,
    ),
    "table": SpectrumFormat(
        "Table", (), "tables:read", "columns mzs and intensities", (".tsv", ".csv"),
        test="tables:is_table", is_table=True,
    ),
    "mgf": SpectrumFormat(
        "MGF", (r"(?i)^[ \t]*BEGIN[ \t]+IONS[ \t]*$",), "mgf:read", "BEGIN IONS … END IONS",
        (".mgf",),
    ),
    "massbank": SpectrumFormat(
        "MassBank", (r"^ACCESSION:", r"^(?:RECORD_TITLE:|CH\$|AC\$|PK\$)"),
        "massbank:read", "ACCESSION: … //", (".txt",),
    ),
    "sirius": SpectrumFormat(
        "SIRIUS", (r"(?i)^>compound\b",), "sirius:read", ">compound …", (".ms",)
    ),
    "mzml": SpectrumFormat(
        "mzML", (r"<(?:indexed)?mzML",), "xml:read_mzml", "<spectrum>", (".mzml",)
    ),
    "mzxml": SpectrumFormat("mzXML", (r"<mzXML",), "xml:read_mzxml", "<scan>", (".mzxml",)),
    "json": SpectrumFormat(
        "JSON", (r"\A[\ufeff \t\r\n]*[\[{]",), "gnps_json:read", '{"peaks_json": …}',
        (".json", ".jsonl", ".ndjson"),
    ),
    "msp": SpectrumFormat(
        "MSP", (r"(?i)^[ \t]*NAME[ \t]*:",), "msp:read", "Name: … Num Peaks: …", (".msp",)
    ),
}  # fmt: skip


def known_formats() -> list[str]:
    """Return the labels of the formats that `read_spectra` understands."""
    return [kind.label for kind in FORMATS.values()]


def read_spectra(
    path: StrPath,
    rejects: SkipTarget | None = None,
    *,
    intensity_floor: float = 0.0,
    skip_bad_peaks: bool = False,
    opened: Opened | None = None,
    columns: Columns = NO_COLUMNS,
) -> Iterator[Spectrum]:
    """Read tandem spectra of a file, a folder, or a zip archive.

    Reads MGF, MSP, mzML, mzXML, JSON (GNPS, MZmine, MoNA), MassBank records, SIRIUS .ms, and
    tables with lists of peaks (MassSpecGym's, TSV, CSV), plain or compressed with gzip or zstd, as
    well as Parquet and Arrow files; recognised by content. Records are
    streamed: memory does not grow with the file, but for a few bytes an identifier. Every record is
    either yielded or reported once to ``rejects``.

    Parameters
    ----------
    path : path
    rejects : list, callable or None
        Gets ``(where, reason)`` for each record that is skipped: appended to a list, or as the two
        arguments of a call. With None a warning at the end tells how many there were.
    intensity_floor : float
        Peaks below this fraction of a spectrum's largest are left out.
    skip_bad_peaks : bool
        Skip single peaks whose m/z or intensity is NaN, infinite, negative or beyond all bounds,
        and count them in the metadata (``skipped_peaks``). By default their record is skipped.
    opened : callable, optional
        Gets the name and the format's label of each file when its records begin.
    columns : mapping of str to str, optional
        Names of a table's columns, by what they hold (`mzseek.spectra.formats.tables.ROLES`),
        where these are not the usual ones.

    Returns
    -------
    iterator of Spectrum

    Raises
    ------
    InputError
        The path does not exist, is empty, or holds nothing in a known format.

    Examples
    --------
    >>> rejects = []
    >>> for spectrum in read_spectra("library.mgf", rejects):  # doctest: +SKIP
    ...     print(spectrum.identifier, spectrum.precursor_mz)
    """
    path = Path(path)
    records: Iterator[Iterator[Record]]
    if path.is_dir():
        files = sorted(paths_below(path))
        if not files:
            raise InputError(path, "the folder holds no files")
        records = (_records(file, opened, columns) for file in files)
    elif path.is_file() and zipfile.is_zipfile(path):
        records = (_records(member, opened, columns) for member in zip_sources(path))
    else:
        source = open_source(path)
        records = iter([_read_source(source, recognise(source, columns), opened, columns)])
    convert = functools.partial(
        to_spectrum, intensity_floor=intensity_floor, skip_bad_peaks=skip_bad_peaks
    )
    if rejects is None:
        return _warn_at_end(records, path, convert)
    return _convert_all(records, reporter(rejects), convert)


def recognise(source: Source, columns: Columns = NO_COLUMNS) -> SpectrumFormat:
    """Return the format of a source: by its content, else by its name.

    One that has no columns is refused where the user names some.
    """
    kind = _recognised(source, columns)
    if columns and not kind.is_table:
        reason = f"is {kind.label}, which has no columns to name: leave out --columns"
        raise InputError(source.name, reason)
    return kind


def _recognised(source: Source, columns: Columns) -> SpectrumFormat:
    head = source.head()
    is_utf16 = head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    text = head.decode("utf-16" if is_utf16 else "utf-8-sig", errors="replace")
    for kind in FORMATS.values():
        if kind.looks_like(text, columns):
            return kind
    if not text.strip():
        raise InputError(source.name, "the file is empty")
    what = "not a text file" if "\0" in text else "not a spectrum file"
    for kind in FORMATS.values() if "\0" not in text else ():
        if source.suffix in kind.suffixes:  # the first record may come after a long preamble
            return kind
    hint = "; give candidates as --database" if source.suffix in _OF_MOLECULES else ""
    raise InputError(source.name, f"{what}, expected one of {', '.join(known_formats())}{hint}")


def _records(
    source: Path | Source | InputError, opened: Opened | None, columns: Columns
) -> Iterator[Record]:
    """Return the records of one source of several; one with the reason if it is unreadable."""
    try:
        if isinstance(source, InputError):
            raise source
        source = open_source(source) if isinstance(source, Path) else source
        return _read_source(source, recognise(source, columns), opened, columns)
    except InputError as error:
        return iter([Record(error.where, problem=error.reason)])


def _read_source(
    source: Source, kind: SpectrumFormat, opened: Opened | None, columns: Columns
) -> Iterator[Record]:
    """Yield the records of one source; damage ends it with a record of the reason."""
    if opened is not None:
        opened(source.name, kind.label)
    count = 0
    try:
        for record in with_survey_scans(kind.read(source, columns)):
            count += 1
            yield record
    except InputError as error:
        yield Record(error.where, problem=error.reason)
        return
    if count == 0:
        reason = Reason(f"holds no record, expected {kind.record_form}", "no-records")
        yield Record(source.name, problem=reason)


def _convert_all(
    files: Iterator[Iterator[Record]], report: Report, convert: Callable[[Record], Spectrum]
) -> Iterator[Spectrum]:
    names = UniqueNames()
    for records in files:
        faults = 0  # in a row
        for record in records:
            try:
                spectrum = convert(record)
                name, is_stated = identifier_of(record)
                if is_stated and name in names:
                    reason = f"identifier {shorten(name)!r} was used by an earlier record"
                    raise SpectrumError(reason, "duplicate")
            except SpectrumError as error:
                report(record.where, error.reason)
                faults += 1
                if faults < MAX_FAULTS:
                    continue
                reason = f"{faults:,} records in a row could not be read"
                report(record.where, Reason(f"the file is given up here: {reason}", "given-up"))
                break
            faults = 0
            unique = names.take(name)
            yield spectrum if unique == name else dataclasses.replace(spectrum, identifier=unique)


def _warn_at_end(
    files: Iterator[Iterator[Record]], path: Path, convert: Callable[[Record], Spectrum]
) -> Iterator[Spectrum]:
    count = 0
    first = ""

    def report(where: str, reason: str) -> None:
        nonlocal count, first
        count += 1
        first = first or f"{where}: {reason}"

    yield from _convert_all(files, report, convert)
    if count:
        plural = "s" if count > 1 else ""
        warnings.warn(f"{path}: {count} record{plural} skipped, the first: {first}", stacklevel=2)


# matchms keeps the peak count of the file, which is not that of a filtered spectrum.
_OUTDATED = frozenset({"num_peaks", "numpeaks", "num peaks"})


def from_matchms(
    spectrum: Any, where: str = "spectrum", fallback_name: str = "", *, skip_bad_peaks: bool = False
) -> Spectrum:
    """Convert a matchms spectrum, by the rules that records of files go through.

    Parameters
    ----------
    spectrum : object
        With ``mz`` and ``intensities`` (its own, or those of ``peaks``) and ``metadata``.
    where : str
        What messages call it.
    fallback_name : str
        Identifier, where the metadata have none.
    skip_bad_peaks : bool
        As `mzseek.spectra.read_spectra` takes it.

    Raises
    ------
    SpectrumError
        It has no such attributes, no peaks, no precursor m/z, or contradicts itself.
    """
    if not is_spectrum(spectrum):
        raise SpectrumError(
            f"is a {type(spectrum).__name__}, expected a Spectrum or a matchms spectrum",
            "malformed",
        )
    peaks = getattr(spectrum, "peaks", spectrum)
    mz, intensities = np.asarray(peaks.mz), np.asarray(peaks.intensities)
    record = Record(where, mz=mz, intensities=intensities, fallback_name=fallback_name)
    for key, value in dict(spectrum.metadata).items():
        if isinstance(value, list | tuple):  # (m/z, intensity, charge), as MGF's PEPMASS has it
            value = next((part for part in value if part is not None), None)
        if str(key).lower() not in _OUTDATED and value is not None:
            record.add(str(key), str(value))
    return to_spectrum(record, skip_bad_peaks=skip_bad_peaks)


def as_spectra(
    spectra: Any, rejects: SkipTarget | None = None, *, skip_bad_peaks: bool = False
) -> Iterator[Spectrum]:
    """Yield one spectrum or several as `Spectrum`, in their order.

    Parameters
    ----------
    spectra : Spectrum, matchms spectrum, or iterable of them
    rejects : list or callable of (where, reason), optional
        Gets each spectrum that cannot be used. Without it, the first of them raises.
    skip_bad_peaks : bool
        Check objects of mzseek as well, and skip peaks that no instrument can have measured, as
        `mzseek.spectra.read_spectra` does. By default these objects are taken as they are.

    Raises
    ------
    SpectrumError
        An object is no spectrum at all; or a spectrum cannot be used, and there are no `rejects`.

    Examples
    --------
    >>> spectrum = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "a")
    >>> [spectrum.identifier for spectrum in as_spectra([spectrum, spectrum])]
    ['a', 'a']
    """
    is_single = is_spectrum(spectra) or not isinstance(spectra, Iterable)
    for number, spectrum in enumerate([spectra] if is_single else spectra, 1):
        where = f"spectrum {number}"
        try:
            if not isinstance(spectrum, Spectrum):
                yield from_matchms(
                    spectrum, where, f"record {number}", skip_bad_peaks=skip_bad_peaks
                )
            elif skip_bad_peaks:
                yield _checked(spectrum)
            else:
                yield spectrum
        except SpectrumError as error:
            if rejects is None or not is_spectrum(spectrum):
                raise SpectrumError(f"{where}: {error}") from error
            reporter(rejects)(where, error.reason)


def _checked(spectrum: Spectrum) -> Spectrum:
    """Return a spectrum less the peaks that cannot be; the same object if it is sound."""
    if not 0 < spectrum.precursor_mz <= MAX_MZ:
        raise SpectrumError(
            f"precursor m/z {spectrum.precursor_mz:g} is not between 0 and {MAX_MZ:,.0f}",
            "bad-number",
        )
    mz, intensities, skipped = measurable_peaks(spectrum.mz, spectrum.intensities)
    mz, intensities = clean_peaks(mz, intensities)
    if np.array_equal(mz, spectrum.mz):
        return spectrum
    metadata = spectrum.metadata | ({SKIPPED_PEAKS: str(skipped)} if skipped else {})
    return dataclasses.replace(spectrum, mz=mz, intensities=intensities, metadata=metadata)
