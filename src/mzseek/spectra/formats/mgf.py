"""Mascot generic format: ``BEGIN IONS``, ``KEY=value`` lines, peaks, ``END IONS``."""

import re
from collections.abc import Iterator

from mzseek.files import Source, text_lines
from mzseek.spectra.formats.peak_block import PeakBlock
from mzseek.spectra.numbers import shorten
from mzseek.spectra.record import Record

_BEGIN = re.compile(r"^\s*BEGIN\s+IONS\s*$", re.IGNORECASE | re.MULTILINE)
_KEY = re.compile(r"^[A-Za-z][^=]*=")


def looks_like(head: str) -> bool:
    """Whether the beginning of a file is MGF."""
    return _BEGIN.search(head) is not None


def read(source: Source) -> Iterator[Record]:
    """Records of an MGF file.

    A record without END IONS ends where the next begins, or with the file. Parameters before the
    first record hold for all that do not set them (Mascot's header).
    """
    header: dict[str, str] = {}
    record: Record | None = None
    peaks = PeakBlock()
    count = 0
    line = ""
    with source.open() as stream:
        for number, line in text_lines(stream):
            if line[:1].isdigit() and record is not None:  # most lines are peaks
                peaks.add(number, line)
                continue
            text = line.strip()
            upper = text.upper()
            if upper.startswith("BEGIN") and upper.split() == ["BEGIN", "IONS"]:
                if record is not None:
                    yield _finish(record, peaks, header)
                count += 1
                where = f"{source.name}: record {count} (line {number})"
                record, peaks = Record(where, fallback_name=f"record {count}"), PeakBlock()
            elif upper == "END IONS":
                if record is not None:
                    yield _finish(record, peaks, header)
                record = None
            elif not text or text[0] in "#;!/":
                continue
            elif record is None:
                key, _, value = text.partition("=")
                header[key] = value
            elif text[0].isalpha() and _KEY.match(text):
                key, _, value = text.partition("=")
                record.add(key, value)
            elif text[0].isalpha() and text[:3].lower() not in {"nan", "inf"}:
                record.fault = f"line {number}: {shorten(text)!r} is neither KEY=value nor a peak"
            else:
                peaks.add(number, line)
    if record is not None:
        if not line.endswith("\n"):
            # With a whole last line only END IONS was forgotten; without one the file was cut.
            record.fault = "the file ends in the middle of a line, before END IONS"
        yield _finish(record, peaks, header)


def _finish(record: Record, peaks: PeakBlock, header: dict[str, str]) -> Record:
    peaks.fill(record)
    for key, value in header.items():
        record.add(key, value)
    mass = record.fields.get("pepmass", "").split()
    if len(mass) == 3:
        record.add("charge", mass[2])
    return record
