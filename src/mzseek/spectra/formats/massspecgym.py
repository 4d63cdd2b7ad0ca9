"""MassSpecGym's table: tab-separated, a header line, peaks as comma-separated lists."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from mzseek.core.errors import InputError, Reason
from mzseek.core.text import shorten
from mzseek.io import LongLine, Source, text_lines
from mzseek.io.sources import MAX_LINE, MAX_PEAKS
from mzseek.io.text_tables import find_column, normalise_name
from mzseek.spectra.records import READ_FIELDS, Record

_PEAK_COLUMNS = ("mzs", "intensities")
_READ_COLUMNS = tuple(sorted({normalise_name(n) for n in (*_PEAK_COLUMNS, *READ_FIELDS, "fold")}))


def check_header(file: object, columns: list[str]) -> None:
    """Refuse a table with two columns of a name that is read; others may repeat."""
    counts = Counter(map(normalise_name, columns))
    for name in _READ_COLUMNS:
        if counts[name] > 1:
            find_column(file, columns, [name])


def read(source: Source) -> Iterator[Record]:
    """Read one record a row."""
    with source.open() as stream:
        lines = text_lines(stream)
        header = next(lines, (0, ""))[1]
        if isinstance(header, LongLine):
            raise InputError(source.name, f"its header is longer than {MAX_LINE:,} bytes")
        columns = header.rstrip("\n").split("\t")
        if not set(_PEAK_COLUMNS) <= set(columns):
            return
        check_header(source.name, columns)
        for number, line in lines:
            if not line.strip():
                continue
            values = line.rstrip("\n").split("\t")
            record = Record(f"{source.name}: line {number}", fallback_name=f"line {number}")
            if isinstance(line, LongLine):
                record.refuse_line(number)
            elif len(values) != len(columns):
                record.refuse(f"has {len(values)} columns, expected {len(columns)}", "malformed")
            else:
                _fill(record, dict(zip(columns, values, strict=True)))
            yield record


def _fill(record: Record, row: dict[str, str]) -> None:
    for name, value in row.items():
        if name not in _PEAK_COLUMNS:
            record.add(name, value.strip('"'))
    arrays = []
    for name in _PEAK_COLUMNS:
        texts = row[name].strip('"[] ').removesuffix(",").split(",")
        if len(texts) > MAX_PEAKS:
            record.refuse_peaks(len(texts))
            return
        try:
            if "_" in row[name]:  # Python reads "1_0" as 10
                raise ValueError("'_' in a number")
            arrays.append(np.array([float(text) for text in texts] if texts != [""] else []))
        except ValueError as error:
            reason = f"column {name} is not a list of numbers ({shorten(str(error))})"
            record.problem = Reason(reason, "bad-peak")
            return
    record.mz, record.intensities = arrays
