"""`read_spectra`: every format, every kind of damage, one iterator."""

import codecs
import dataclasses
import functools
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from mzseek.core.errors import InputError, SpectrumError
from mzseek.io import Source, StrPath, open_source, zip_sources
from mzseek.io.skipped import Rejects, Report, reporter
from mzseek.io.sources import MAX_FAULTS, paths_below
from mzseek.spectra.formats import FORMATS, SpectrumFormat
from mzseek.spectra.parsing import shorten
from mzseek.spectra.records import Names, Record, identifier_of, to_spectrum
from mzseek.spectra.spectrum import Spectrum

Opened = Callable[[str, str], object]


def known_formats() -> list[str]:
    """Labels of the formats that `read_spectra` understands."""
    return [kind.label for kind in FORMATS.values()]


def read_spectra(
    path: StrPath,
    rejects: Rejects | None = None,
    *,
    intensity_floor: float = 0.0,
    skip_bad_peaks: bool = False,
    opened: Opened | None = None,
) -> Iterator[Spectrum]:
    """Tandem spectra of a file, a folder, or a zip archive.

    Reads MGF, MSP, mzML, mzXML, JSON (GNPS, MZmine, MoNA), MassBank records, SIRIUS .ms and
    MassSpecGym's table, plain or compressed with gzip or zstd, recognised by content. Records are
    streamed: memory does not grow with the file, but for a few bytes an identifier. Every record is
    either yielded or reported once to ``rejects``.

    Parameters
    ----------
    path : path
    rejects : list, callable or None
        Gets ``(where, reason)`` for each record set aside: appended to a list, or as the two
        arguments of a call. With None a warning at the end tells how many there were.
    intensity_floor : float
        Peaks below this fraction of a spectrum's largest are left out.
    skip_bad_peaks : bool
        Skip single peaks whose m/z or intensity is NaN, infinite, negative or beyond all bounds,
        and count them in the metadata (``skipped_peaks``). By default their record is skipped.
    opened : callable, optional
        Gets the name and the format's label of each file when its records begin.

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
    files: Iterator[Iterator[Record]]
    if path.is_dir():
        files = (_records(source, opened) for source in _folder_sources(path))
    elif path.is_file() and zipfile.is_zipfile(path):
        files = (_records(source, opened) for source in zip_sources(path))
    else:
        source = open_source(path)
        files = iter([_read_one(source, recognise(source), opened)])
    judge = functools.partial(
        to_spectrum, intensity_floor=intensity_floor, skip_bad_peaks=skip_bad_peaks
    )
    if rejects is None:
        return _warn_at_end(files, path, judge)
    return _judge(files, reporter(rejects), judge)


def recognise(source: Source) -> SpectrumFormat:
    """Format of a source: by its content, else by its name."""
    text = _decode_head(source.head())
    for kind in FORMATS.values():
        if kind.looks_like(text):
            return kind
    if not text.strip():
        raise InputError(source.name, "the file is empty")
    if "\0" in text:
        what = "not a text file"
    else:
        # The first record may come after a long preamble.
        for kind in FORMATS.values():
            if source.suffix in kind.suffixes:
                return kind
        what = "not a spectrum file"
    raise InputError(source.name, f"{what}, expected one of {', '.join(known_formats())}")


def _decode_head(head: bytes) -> str:
    marked = head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return head.decode("utf-16" if marked else "utf-8-sig", errors="replace")


def _folder_sources(folder: Path) -> Iterator[Source | InputError]:
    files = sorted(paths_below(folder))
    if not files:
        raise InputError(folder, "the folder holds no files")
    return _open_each(functools.partial(open_source, file) for file in files)


def _open_each(openers: Iterable[Callable[[], Source]]) -> Iterator[Source | InputError]:
    for opener in openers:
        try:
            yield opener()
        except InputError as error:
            yield error


def _records(source: Source | InputError, opened: Opened | None) -> Iterator[Record]:
    """Records of a source; a single one that says why where it cannot be read."""
    if isinstance(source, InputError):
        return iter([_fault(source)])
    try:
        return _read_one(source, recognise(source), opened)
    except InputError as error:
        return iter([_fault(error)])


def _read_one(source: Source, kind: SpectrumFormat, opened: Opened | None) -> Iterator[Record]:
    """Records of one source; damage ends it with a record that says so."""
    if opened is not None:
        opened(source.name, kind.label)
    count = 0
    try:
        for record in kind.read(source):
            count += 1
            yield record
    except InputError as error:
        yield _fault(error)
        return
    if count == 0:
        yield Record(source.name, fault=f"holds no record, expected {kind.record_form}")


def _fault(error: InputError) -> Record:
    return Record(error.where, fault=error.reason)


def _judge(
    files: Iterator[Iterator[Record]], report: Report, judge: Callable[[Record], Spectrum]
) -> Iterator[Spectrum]:
    names = Names()
    for records in files:
        faults = 0  # in a row
        for record in records:
            try:
                spectrum = judge(record)
                name, is_stated = identifier_of(record)
                if is_stated and name in names:
                    reason = f"identifier {shorten(name)!r} was used by an earlier record"
                    raise SpectrumError(reason)
            except SpectrumError as error:
                report(record.where, str(error))
                faults += 1
                if faults < MAX_FAULTS:
                    continue
                reason = f"{faults:,} records in a row could not be read"
                report(record.where, f"the file is given up here: {reason}")
                break
            faults = 0
            unique = names.take(name)
            yield spectrum if unique == name else dataclasses.replace(spectrum, identifier=unique)


def _warn_at_end(
    files: Iterator[Iterator[Record]], path: Path, judge: Callable[[Record], Spectrum]
) -> Iterator[Spectrum]:
    count = 0
    first = ""

    def report(where: str, reason: str) -> None:
        nonlocal count, first
        count += 1
        first = first or f"{where}: {reason}"

    yield from _judge(files, report, judge)
    if count:
        warnings.warn(
            f"{path}: {count} record{'s' if count > 1 else ''} set aside, the first: {first}",
            stacklevel=2,
        )
