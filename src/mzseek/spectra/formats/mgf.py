"""Mascot generic format: ``BEGIN IONS``, ``KEY=value`` lines, peaks, ``END IONS``."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mzseek.chem.adducts import parse_adduct
from mzseek.core.errors import AdductError, Reason
from mzseek.core.text import shorten
from mzseek.io import LongLine, Source, StrPath, atomic_file, text_lines
from mzseek.spectra.records import PeakBlock, Record
from mzseek.spectra.spectrum import Spectrum

_KEY = re.compile(r"[A-Za-z_][^=]*=")
# An adduct at the end of a name: in brackets, or bare with what was added or lost ("M+" is GNPS's
# own for [M]+). Nothing else is one: "Vitamin M" is a name.
_ADDUCT_AT_END = re.compile(
    r"(?:^|[\s;,])(\[\d{0,2}M[^\[\]]{0,40}\]\d{0,2}[+-]{0,3}"
    r"|\d?M(?:[+-]\d?[A-Z][A-Za-z0-9]*)+[+-]?|M\+)[\s\"]*$"
)
_ENERGY_AT_END = re.compile(
    r"(?:[-;,(]\s?)?(?:\b(?:CE|Collision ?Energy)[:=]\s?\d{1,9}(?:\.\d{1,3})?(?:\s?(?:eV|V|NCE|%))?"
    r"|\b\d{1,3}(?:\.\d{1,3})?\s?(?:eV|V|NCE|%))\)?\s*$",
    re.IGNORECASE,
)
_MAX_END = 120


def read(source: Source) -> Iterator[Record]:
    """Read the records of an MGF file.

    A record without END IONS ends where the next begins, or with the file. Parameters before the
    first record hold for all that do not set them (Mascot's header). What stands between records
    belongs to one that lacks its BEGIN IONS, and is reported as such.
    """
    header = Record("header")
    record: Record | None = None
    peaks = PeakBlock()
    count = 0
    line = ""
    with source.open() as stream:
        for number, line in text_lines(stream):
            is_long = isinstance(line, LongLine)
            if line[:1].isdigit() and record is not None and not is_long:  # most lines are peaks
                peaks.add(number, line)
                continue
            text = line.strip()
            if not text or text[0] in "#;!/":
                continue
            border = text.upper().split() if text[:1] in "bBeE" and not is_long else []
            if border == ["BEGIN", "IONS"]:
                if record is not None:
                    yield _finish(record, peaks, header)
                count += 1
                record, peaks = _begin(source, count, number), PeakBlock()
            elif border == ["END", "IONS"]:
                if record is not None:
                    yield _finish(record, peaks, header)
                record = None
            elif record is None and count == 0 and _KEY.match(text) and not is_long:
                key, _, value = text.partition("=")
                header.add(key, value)
            else:
                if record is None:
                    count += 1
                    record, peaks = _begin(source, count, number), PeakBlock()
                    record.refuse("has no BEGIN IONS", "malformed")
                _add_line(record, peaks, number, line)
    if record is not None:
        if not line.endswith("\n"):
            # With a whole last line only END IONS was forgotten; without one the file was cut.
            reason = "the file ends in the middle of a line, before END IONS"
            record.problem = Reason(reason, "truncated")
        yield _finish(record, peaks, header)


def _begin(source: Source, count: int, number: int) -> Record:
    return Record(f"{source.name}: record {count} (line {number})", fallback_name=f"record {count}")


def _add_line(record: Record, peaks: PeakBlock, number: int, line: str) -> None:
    if record.problem is not None:  # nothing will be made of it
        return
    text = line.strip()
    if isinstance(line, LongLine):
        record.refuse_line(number)
    elif _KEY.match(text):
        key, _, value = text.partition("=")
        record.add(key, value)
    elif text[0].isalpha() and text[:3].lower() not in {"nan", "inf"}:
        reason = f"line {number}: {shorten(text)!r} is neither KEY=value nor a peak"
        record.refuse(reason, "malformed")
    else:
        peaks.add(number, text)


def _finish(record: Record, peaks: PeakBlock, header: Record) -> Record:
    peaks.fill(record)
    if record.fields.get("charge") in {"0", "0+", "0-"}:
        del record.fields["charge"]
    mass = record.fields.get("pepmass", "").split()
    if len(mass) == 3:
        record.add("charge", mass[2])
    if not record.values("adduct"):
        _take_adduct_from_name(record)
    for name, value in header.fields.items():
        if name not in record.fields:
            record.add(name, value)
    record.problem = record.problem or header.problem
    return record


def _take_adduct_from_name(record: Record) -> None:
    """Take the adduct from the name, as in GNPS libraries: ``NAME=Fuberidazole M-H``.

    A collision energy may follow it (``Quercetin [M+H]+ - 40.0 eV``).
    """
    end = record.fields.get("compound_name", "")[-_MAX_END:]
    match = _ADDUCT_AT_END.search(end) or _ADDUCT_AT_END.search(_ENERGY_AT_END.sub("", end))
    if match is None:
        return
    try:
        parse_adduct(match[1])
    except AdductError:
        return
    record.add("adduct", match[1])
    record.add("adduct_from", "name")


_NAMES = {"compound_name": "NAME", "ms_level": "MSLEVEL"}


def write_mgf(path: StrPath, spectra: Iterable[Spectrum]) -> int:
    """Write spectra as MGF, and return how many there were.

    Reading the file back gives the same peaks, precursor, adduct and metadata, but for white space
    and for the few names that MGF cannot hold.
    """
    count = 0
    with atomic_file(Path(path)) as partial, partial.open("w", encoding="utf-8") as stream:
        for spectrum in spectra:
            count += 1
            lines = ["BEGIN IONS", f"SPECTRUM_ID={spectrum.identifier}"]
            lines.append(f"PEPMASS={spectrum.precursor_mz!r}")
            if spectrum.charge is not None:
                lines.append(f"CHARGE={abs(spectrum.charge)}{'+' if spectrum.charge > 0 else '-'}")
            if spectrum.adduct is not None:
                lines.append(f"ADDUCT={spectrum.adduct}")
            for name, value in spectrum.metadata.items():
                key = _NAMES.get(name, name.upper())
                key = key if key[:1].isalpha() else f"X_{key}"  # a digit would begin a peak
                lines.append(f"{key.replace('=', '_')}={' '.join(value.split())}")
            peaks = zip(spectrum.mz.tolist(), spectrum.intensities.tolist(), strict=True)
            lines += [f"{mz!r} {intensity!r}" for mz, intensity in peaks]
            stream.write("\n".join(lines) + "\nEND IONS\n\n")
    return count
