"""MassBank records: ``TAG: value`` lines, a peak table, and ``//`` at the end."""

import re
from collections.abc import Iterator

from mzseek.core.errors import Reason
from mzseek.core.text import shorten
from mzseek.io import LongLine, Source, text_lines
from mzseek.spectra.records import PeakBlock, Record, is_number, leading_number

_OWN_TAGS = re.compile(r"^(?:RECORD_TITLE:|CH\$|AC\$|PK\$)", re.MULTILINE)

# Tags that hold one value, and tags whose value begins with a subtag, as mzseek names them.
_FIELDS = {
    "ACCESSION": "identifier",
    "CH$NAME": "compound_name",
    "CH$FORMULA": "formula",
    "CH$EXACT_MASS": "parent_mass",
    "CH$SMILES": "smiles",
    "CH$IUPAC": "inchi",
    "CH$COMPOUND_CLASS": "compound_class",
    "CH$LINK INCHIKEY": "inchikey",
    "AC$INSTRUMENT": "instrument",
    "AC$INSTRUMENT_TYPE": "instrument_type",
    "AC$MASS_SPECTROMETRY MS_TYPE": "ms_level",
    "AC$MASS_SPECTROMETRY ION_MODE": "ionmode",
    "AC$MASS_SPECTROMETRY COLLISION_ENERGY": "collision_energy",
    "AC$MASS_SPECTROMETRY FRAGMENTATION_MODE": "fragmentation_mode",
    "AC$CHROMATOGRAPHY RETENTION_TIME": "retention_time",
    "MS$FOCUSED_ION PRECURSOR_M/Z": "precursor_mz",
    "MS$FOCUSED_ION PRECURSOR_TYPE": "adduct",
    "MS$FOCUSED_ION ION_TYPE": "adduct",
    "LICENSE": "license",
    "AUTHORS": "authors",
    "COPYRIGHT": "copyright",
    "PK$SPLASH": "splash",
    "PK$NUM_PEAK": "num_peaks",
    "DEPRECATED": "deprecated",
}

_TIME = "retention_time"
_MOST_MINUTES = 120.0

_NO_END = Reason("has no // at its end: it may have been cut short", "truncated")


def read(source: Source) -> Iterator[Record]:
    """Read the records of a file in MassBank's format (usually one).

    Fields and peaks outside of a record belong to one that lacks its ``ACCESSION``, and are
    reported as such.
    """
    record: Record | None = None
    peaks = PeakBlock()
    in_peaks = False
    count = 0
    with source.open() as stream:
        for number, line in text_lines(stream):
            is_begin = line.startswith("ACCESSION:")
            if is_begin and record is not None:
                yield _finish(record, peaks, _NO_END)
            if is_begin or (record is None and _OWN_TAGS.match(line)):
                count += 1
                where = source.name if count == 1 else f"{source.name}: record {count}"
                record, peaks, in_peaks = Record(where, fallback_name=where), PeakBlock(), False
                if not is_begin:
                    record.refuse(f"has no ACCESSION (line {number})", "malformed")
            if record is None:
                continue
            if isinstance(line, LongLine):
                record.refuse_line(number)
            elif line.rstrip() == "//":
                yield _finish(record, peaks)
                record = None
            elif line.startswith("PK$PEAK:"):
                in_peaks = "N/A" not in line
            elif line[:1] in {" ", "\t"} or (in_peaks and line[:1].isdigit()):
                if in_peaks and line.strip():
                    peaks.add(number, line)
            else:
                in_peaks = False
                _add_line(record, line)
    if record is not None:
        yield _finish(record, peaks, _NO_END)


def _with_unit(retention_time: str) -> str:
    """Add the unit of a retention time without one: minutes by custom, unless it is too long.

    Examples
    --------
    >>> _with_unit("3.04"), _with_unit("684.81"), _with_unit("40 sec")
    ('3.04 min', '684.81 s', '40 sec')
    """
    number = leading_number(retention_time)
    if number is None or len(retention_time.split()) > 1 or not is_number(retention_time):
        return retention_time
    return f"{retention_time} {'min' if number < _MOST_MINUTES else 's'}"


def _add_line(record: Record, line: str) -> None:
    tag, _, value = line.partition(":")
    value = value.strip()
    subtag, _, rest = value.partition(" ")
    if f"{tag} {subtag}" in _FIELDS:
        name = _FIELDS[f"{tag} {subtag}"]
        record.add(name, _with_unit(rest) if name == _TIME else rest)
    elif tag in _FIELDS:
        record.add(_FIELDS[tag], value)


def _finish(record: Record, peaks: PeakBlock, problem: Reason | None = None) -> Record:
    peaks.fill(record)
    record.problem = record.problem or problem
    if "deprecated" in record.fields:
        reason = f"is deprecated ({shorten(record.fields['deprecated'])})"
        record.problem = Reason(reason, "deprecated")
    return record
