"""NIST's MSP text format and its dialects: ``Key: value`` lines, ``Num Peaks: n``, peaks."""

import re
from collections.abc import Iterator

from mzseek.files import Source, text_lines
from mzseek.spectra.formats.peak_block import PeakBlock
from mzseek.spectra.numbers import shorten
from mzseek.spectra.record import Record

_NAME = re.compile(r"^\s*NAME\s*:", re.IGNORECASE | re.MULTILINE)
_KEY = re.compile(r"\s*([A-Za-z][^:]*):(.*)")
_QUOTED = re.compile(r'"([^"=]+)=([^"]*)"')
_BARE = re.compile(r'(?:^|\s)([A-Za-z_][\w/]*)=(?:"([^"]*)"|(\S+))')
_ANNOTATION = re.compile(r'"[^"]*"?|\'[^\']*\'?')
_SPECIAL = re.compile(r"[\"';:]")
_COLON_PEAK = re.compile(r"(?<=\d):(?=\d)")


def looks_like(head: str) -> bool:
    """Whether the beginning of a file is MSP."""
    return _NAME.search(head) is not None


def read(source: Source) -> Iterator[Record]:
    """Records of an MSP file; each begins with its ``Name`` line."""
    record: Record | None = None
    peaks = PeakBlock()
    count = 0
    with source.open() as stream:
        for number, line in text_lines(stream):
            if line[:1].isdigit() and record is not None and not _SPECIAL.search(line):
                peaks.add(number, line)
                continue
            if not line.strip():
                continue
            entry = _KEY.match(line)
            is_name = entry is not None and entry[1].strip().lower() == "name"
            if is_name:
                if record is not None:
                    peaks.fill(record)
                    yield record
                count += 1
                where = f"{source.name}: record {count} (line {number})"
                record, peaks = Record(where, fallback_name=f"record {count}"), PeakBlock()
            if record is None:
                continue  # a preamble before the first record
            if entry is not None:
                _add_entry(record, entry[1], entry[2])
            else:
                _add_peaks(record, peaks, number, line)
    if record is not None:
        peaks.fill(record)
        if "num_peaks" not in record.fields and record.fault is None:
            record.fault = "the file ends before its number of peaks: it may have been cut short"
        yield record


def _add_entry(record: Record, key: str, value: str) -> None:
    key = key.strip().lower()
    if key == "num peaks":
        record.fields["num_peaks"] = value.strip()
    elif key in {"comment", "comments"}:
        record.add("comment", value)
        pairs = _QUOTED.findall(value)
        pairs += [(k, quoted or bare) for k, quoted, bare in _BARE.findall(_QUOTED.sub(" ", value))]
        for inner_key, inner_value in pairs:
            record.add(inner_key, inner_value)
    else:
        record.add(key, value)


def _add_peaks(record: Record, peaks: PeakBlock, number: int, line: str) -> None:
    """Peaks of a line: ``mz intensity "note"``, ``mz intensity; mz intensity;`` or ``mz:int``."""
    text = _COLON_PEAK.sub(" ", _ANNOTATION.sub(" ", line))
    if ";" in text:
        for part in filter(str.strip, text.split(";")):
            peaks.add(number, part)
        return
    columns = text.split()
    if len(columns) > 2 and len(columns) % 2 == 0 and ":" in line:
        for i in range(0, len(columns), 2):
            peaks.add(number, f"{columns[i]} {columns[i + 1]}")
    elif columns and columns[0][0].isalpha() and columns[0][:3].lower() not in {"nan", "inf"}:
        record.fault = f"line {number}: {shorten(line)!r} is neither 'Key: value' nor a peak"
    else:
        peaks.add(number, text)
