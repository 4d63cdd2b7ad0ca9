"""Molecules in SDF: MOL blocks with data fields, record by record."""

import re
from collections.abc import Iterator, Mapping

from mzseek.database.columns import KNOWN, one_line, plain_name
from mzseek.database.record import Record
from mzseek.files import Source, text_lines
from mzseek.rejects import Report

# A protein of 30,000 atoms has some 4 million characters; what is longer has lost its end.
MAX_RECORD = 8_000_000
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


def read_sdf(
    source: Source, report: Report, origin: str, named: Mapping[str, str]
) -> Iterator[Record]:
    """Records of SDF, each with its MOL block as it stands in the file.

    The identifier is that of a data field, else the title line; ``named`` gives the names of the
    fields as it gives those of columns.
    """
    with source.open() as stream:
        for number, lines in _records(text_lines(stream)):
            where = f"{source.name}: record {number}"
            if lines is None:
                report(where, f"is longer than {MAX_RECORD:,} characters")
                continue
            block, rest = _block(lines)
            reason = _fault(block)
            if reason:
                report(where, reason)
                continue
            fields = _fields(rest)
            identifier = _value(fields, "id", named) or one_line(lines[0])
            name = _value(fields, "name", named)
            own_source = _value(fields, "source", named)
            yield Record(where, "".join(block), identifier, name, own_source or origin, True)


def _records(numbered: Iterator[tuple[int, str]]) -> Iterator[tuple[int, list[str] | None]]:
    """Numbered records as their lines; none for one that would fill the memory."""
    number, size = 1, 0
    lines: list[str] = []
    for _, line in numbered:
        if line.startswith("$$$$"):
            yield number, lines if size <= MAX_RECORD else None
            number, size, lines = number + 1, 0, []
            continue
        size += len(line)
        if size > MAX_RECORD:
            lines = []
        else:
            lines.append(line)
    if size > MAX_RECORD:
        yield number, None
    elif any(line.strip() for line in lines):  # the last end mark may be missing
        yield number, lines


def _block(lines: list[str]) -> tuple[list[str], list[str]]:
    """The MOL block, and what stands below it; no block where its end is missing."""
    for place, line in enumerate(lines):
        if line.startswith("M  END"):
            return lines[: place + 1], lines[place + 1 :]
    return [], lines


def _fault(block: list[str]) -> str:
    """Why this is no molecule; empty if it may be one."""
    if not block:
        return "has no molecule (no line 'M  END')"
    counts = block[3] if len(block) > 4 else ""
    if not counts[:3].strip().isdecimal():
        return "has no molecule (no counts of atoms and bonds on its fourth line)"
    has_atoms = "V3000" in counts or int(counts[:3]) > 0  # V3000 has its counts further down
    return "" if has_atoms else "has no molecule (no atoms)"


def _fields(lines: list[str]) -> dict[str, str]:
    """First line of each data field, by the field's plain name."""
    fields: dict[str, str] = {}
    name = ""
    for line in lines:
        match = _FIELD.match(line) if line.startswith(">") else None
        if match:
            name = plain_name(match[1])
        elif name:
            fields.setdefault(name, one_line(line))
            name = ""
    return fields


def _value(fields: Mapping[str, str], meaning: str, named: Mapping[str, str]) -> str:
    wanted = (plain_name(named[meaning]),) if meaning in named else KNOWN[meaning]
    return next((fields[name] for name in wanted if fields.get(name)), "")
