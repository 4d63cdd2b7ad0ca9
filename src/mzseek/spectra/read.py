"""`read_spectra`: every format, every kind of damage, one iterator."""

import codecs
import dataclasses
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from mzseek.errors import InputError, SpectrumError
from mzseek.files import Source, open_source
from mzseek.files.source import DAMAGE
from mzseek.spectra.formats import FORMATS, Format
from mzseek.spectra.record import Record, identifier_of, to_spectrum
from mzseek.spectra.spectrum import Spectrum

Report = Callable[[str, str], object]
Rejects = list[tuple[str, str]] | Report | None


def known_formats() -> list[str]:
    """Labels of the formats that `read_spectra` understands."""
    return [known.label for known in FORMATS.values()]


def read_spectra(
    path: str | Path, rejects: Rejects = None, *, intensity_floor: float = 0.0
) -> Iterator[Spectrum]:
    """Tandem spectra of a file, a folder, or a zip archive.

    Reads MGF, MSP, mzML, mzXML, GNPS JSON, MassBank records and SIRIUS .ms, plain or gzipped,
    recognised by content. Records are streamed: memory does not grow with the file, but for a
    few bytes an identifier. Every record is either yielded or reported once to ``rejects``.

    Parameters
    ----------
    path : str or Path
    rejects : list, callable or None
        Gets ``(where, reason)`` for each record set aside: appended to a list, or as the two
        arguments of a call. With None a warning at the end tells how many there were.
    intensity_floor : float
        Peaks below this fraction of a spectrum's largest are left out.

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
    if path.is_dir():
        sources = _folder_sources(path)
    elif path.exists() and zipfile.is_zipfile(path):
        sources = _zip_sources(path)
    else:
        source = open_source(path)
        return _guarded(_read_one(source, recognise(source)), path, rejects, intensity_floor)
    return _guarded(_read_many(sources), path, rejects, intensity_floor)


def recognise(source: Source) -> Format:
    """Format of a source: by its content, else by its name."""
    try:
        head = source.head()
    except DAMAGE as error:
        raise InputError(f"{source.name}: damaged compressed file ({error})") from error
    if not head:
        raise InputError(f"{source.name}: the file is empty")
    text = _decode_head(head)
    for known in FORMATS.values():
        if known.looks_like(text):
            return known
    if not text.strip():
        raise InputError(f"{source.name}: the file is empty")
    if "\0" in text:
        what = "not a text file"
    else:
        # The first record may come after a long preamble.
        for known in FORMATS.values():
            if source.suffix in known.suffixes:
                return known
        what = "not a spectrum file"
    raise InputError(f"{source.name}: {what}, expected one of {', '.join(known_formats())}")


def _decode_head(head: bytes) -> str:
    marked = head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return head.decode("utf-16" if marked else "utf-8-sig", errors="replace")


def _folder_sources(folder: Path) -> Iterator[Source | InputError]:
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.is_file() and not any(p.startswith(".") for p in file.relative_to(folder).parts)
    )
    if not files:
        raise InputError(f"{folder}: the folder holds no files")
    return _open_each(files)


def _open_each(files: list[Path]) -> Iterator[Source | InputError]:
    for file in files:
        try:
            yield open_source(file)
        except InputError as error:
            yield error


def _zip_sources(path: Path) -> Iterator[Source | InputError]:
    with zipfile.ZipFile(path) as archive:
        members = sorted(
            (info for info in archive.infolist() if not info.is_dir()), key=lambda i: i.filename
        )
    if not members:
        raise InputError(f"{path}: the archive holds no files")
    return _open_members(path, members)


def _open_members(path: Path, members: list[zipfile.ZipInfo]) -> Iterator[Source | InputError]:
    with zipfile.ZipFile(path) as archive:
        for info in members:
            suffix = Path(info.filename).suffix.lower()
            yield Source(f"{path}: {info.filename}", suffix, lambda i=info: archive.open(i))  # type: ignore[misc]


def _read_many(sources: Iterator[Source | InputError]) -> Iterator[Record]:
    for source in sources:
        if isinstance(source, InputError):
            yield _fault(source)
            continue
        try:
            known = recognise(source)
        except InputError as error:
            yield _fault(error)
            continue
        yield from _read_one(source, known)


def _read_one(source: Source, known: Format) -> Iterator[Record]:
    """Records of one source; damage ends it with a record that says so."""
    count = 0
    try:
        for record in known.read(source):
            count += 1
            yield record
    except InputError as error:
        yield _fault(error)
        return
    except DAMAGE as error:
        reason = f"damaged or cut short after record {count} ({error})"
        yield Record(source.name, fault=reason)
        return
    if count == 0:
        yield Record(source.name, fault=f"holds no record, expected {known.record_form}")


def _fault(error: InputError) -> Record:
    where, _, reason = str(error).rpartition(": ")
    return Record(where, fault=reason)


def _guarded(
    records: Iterator[Record], path: Path, rejects: Rejects, intensity_floor: float
) -> Iterator[Spectrum]:
    if rejects is None:
        return _warn_at_end(records, path, intensity_floor)
    report: Report = (
        (lambda where, reason: rejects.append((where, reason)))
        if isinstance(rejects, list)
        else rejects
    )
    return _judge(records, report, intensity_floor)


def _judge(records: Iterator[Record], report: Report, intensity_floor: float) -> Iterator[Spectrum]:
    stated: set[int] = set()  # hashes: a few bytes a record, whatever the identifiers' length
    seen: dict[int, int] = {}
    for record in records:
        try:
            spectrum = to_spectrum(record, intensity_floor)
            name, is_stated = identifier_of(record)
            key = hash(name)
            if is_stated and key in stated:
                raise SpectrumError(f"identifier {name!r} was used by an earlier record")
        except SpectrumError as error:
            report(record.where, str(error))
            continue
        if is_stated:
            stated.add(key)
        else:
            # Titles and scan numbers repeat in good files: number the later ones.
            seen[key] = seen.get(key, 0) + 1
            if seen[key] > 1:
                spectrum = dataclasses.replace(spectrum, identifier=f"{name} #{seen[key]}")
        yield spectrum


def _warn_at_end(
    records: Iterator[Record], path: Path, intensity_floor: float
) -> Iterator[Spectrum]:
    count = 0
    first = ""

    def report(where: str, reason: str) -> None:
        nonlocal count, first
        count += 1
        first = first or f"{where}: {reason}"

    yield from _judge(records, report, intensity_floor)
    if count:
        warnings.warn(
            f"{path}: {count} record{'s' if count > 1 else ''} set aside, the first: {first}",
            stacklevel=2,
        )
