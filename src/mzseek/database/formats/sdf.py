"""Molecules in SDF: MOL blocks with data fields, record by record."""

import io
import re
from collections.abc import Iterator, Mapping
from functools import partial

from mzseek.core.errors import InputError, Reason
from mzseek.database.formats.tables import FEATURE, KNOWN, one_line
from mzseek.database.records import MoleculeRecord, Reader
from mzseek.io import LongLine, Source, text_lines
from mzseek.io.skipped import Report
from mzseek.io.sources import MAX_SDF_RECORD
from mzseek.io.text_tables import normalise_name

MAX_RECORD = MAX_SDF_RECORD
_MARK = re.compile(r"^(?:.{20,}V[23]000|M  END|\$\$\$\$)\s*$", re.MULTILINE)
_FIELD = re.compile(r"^>.*<([^<>]+)>")


def is_sdf(head: str) -> bool:
    r"""Whether text begins as SDF or a single MOL file does.

    Examples
    --------
    >>> is_sdf("ethanol\n  made by hand\n\n  3  2  0  0  0  0  0  0  0  0999 V2000\n")
    True
    >>> is_sdf("CCO ethanol\n")
    False
    """
    return _MARK.search(head) is not None


def reader_of(source: Source, named: Mapping[str, str]) -> Reader | None:
    """Return a reader of SDF, or of a single MOL file."""
    head = "".join(line for _, line in text_lines(io.BytesIO(source.head())))
    return partial(_read, source, named) if is_sdf(head) else None


def _read(
    source: Source, named: Mapping[str, str], report: Report, origin: str
) -> Iterator[MoleculeRecord]:
    """Yield records of SDF, each with its MOL block as in the file.

    The identifier is that of a data field, else the title line; ``named`` has names of fields as it
    has those of columns. A record with two values of a field that is read is skipped.
    """
    with source.open() as stream:
        for number, lines in _records(text_lines(stream)):
            where = f"{source.name}: record {number}"
            if lines is None:
                report(where, Reason(f"is longer than {MAX_RECORD:,} characters", "too-large"))
                continue
            block, rest = _block(lines)
            reason = _problem(block)
            if reason:
                report(where, Reason(reason, "bad-molecule"))
                continue
            fields = _fields(rest)
            try:
                identifier, name, own_source = (
                    _value(where, fields, meaning, named) for meaning in ("id", "name", "source")
                )
                feature = _value(where, fields, FEATURE, named) if FEATURE in named else ""
            except InputError as error:
                report(where, Reason(error.reason, "contradiction"))
                continue
            identifier = identifier or one_line(lines[0])
            yield MoleculeRecord(
                where, "".join(block), identifier, name, own_source or origin, True,
                feature=feature or None,
            )  # fmt: skip


def _records(numbered: Iterator[tuple[int, str]]) -> Iterator[tuple[int, list[str] | None]]:
    """Yield numbered records as their lines; None for one that is too long."""
    number, size = 1, 0
    lines: list[str] = []
    for _, line in numbered:
        if line.startswith("$$$$"):
            yield number, lines if size <= MAX_RECORD else None
            number, size, lines = number + 1, 0, []
            continue
        size += MAX_RECORD + 1 if isinstance(line, LongLine) else len(line)
        if size > MAX_RECORD:
            lines = []
        else:
            lines.append(line)
    if size > MAX_RECORD:
        yield number, None
    elif any(line.strip() for line in lines):  # the last end mark may be missing
        yield number, lines


def _block(lines: list[str]) -> tuple[list[str], list[str]]:
    """Split a record into its MOL block and the lines below; no block if its end is missing."""
    for index, line in enumerate(lines):
        if line.startswith("M  END"):
            return lines[: index + 1], lines[index + 1 :]
    return [], lines


def _problem(block: list[str]) -> str:
    """Say why a MOL block is no molecule; empty if it may be one."""
    if not block:
        return "has no molecule (no line 'M  END')"
    counts = block[3] if len(block) > 4 else ""
    if not counts[:3].strip().isdecimal():
        return "has no molecule (no counts of atoms and bonds on its fourth line)"
    has_atoms = "V3000" in counts or int(counts[:3]) > 0  # V3000 has its counts further down
    return "" if has_atoms else "has no molecule (no atoms)"


def _fields(lines: list[str]) -> dict[str, list[str]]:
    """Return the distinct first lines of data fields by their normalised names."""
    fields: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        match = _FIELD.match(line) if line.startswith(">") else None
        if match:
            name = normalise_name(match[1])
        elif name:
            value = one_line(line)
            if value and value not in fields.setdefault(name, []):
                fields[name].append(value)
            name = ""
    return fields


def _value(
    where: str, fields: Mapping[str, list[str]], meaning: str, named: Mapping[str, str]
) -> str:
    names = (normalise_name(named[meaning]),) if named.get(meaning) else KNOWN[meaning]
    values = next((fields[name] for name in names if fields.get(name)), [""])
    if len(values) > 1:
        shown = " and ".join(repr(value[:40]) for value in values[:2])
        raise InputError(where, f"has two data fields for its {meaning}, {shown}, expected one")
    return values[0]
