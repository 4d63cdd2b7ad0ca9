"""NIST's MSP text format and its dialects: ``Key: value`` lines, ``Num Peaks: n``, peaks."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mzseek.core.errors import Reason
from mzseek.core.text import shorten
from mzseek.io import LongLine, Source, StrPath, atomic_file, text_lines
from mzseek.io.sources import MAX_PEAKS
from mzseek.spectra.records import PeakBlock, Record, is_number, with_time_unit
from mzseek.spectra.spectrum import Spectrum

_KEY = re.compile(r"[ \t]*([A-Za-z_][^:]*):(.*)")
_QUOTED = re.compile(r'"([^"=]+)=([^"]*)"')
_BARE = re.compile(r'(?:^|\s)([A-Za-z_][\w/]*)=(?:"([^"]*)"|(\S+))')
_ANNOTATION = re.compile(r'"[^"]*"?|\'[^\']*\'?')
_SPECIAL = re.compile(r"[\"';:]")
_COLON_PEAK = re.compile(r"(?<=\d):(?=\d)")
# Programs that write retention times in minutes, by the field that holds the time and others that
# only they write beside it. Spelling counts: other programs write RetentionTime, in any unit.
_IN_MINUTES = {
    # MS-DIAL and RIKEN's libraries
    "RETENTIONTIME": {"PRECURSORTYPE", "SCANNUMBER", "ALIGNMENTID", "ONTOLOGY", "Ontology", "DB#"},
    # MZmine
    "RT": {"DB#", "merge_type", "scan_number", "quality_chimeric", "precursor_purity"},
}
_PROGRAM_FIELDS = frozenset(_IN_MINUTES).union(*_IN_MINUTES.values())


def read(source: Source) -> Iterator[Record]:
    """Read the records of an MSP file.

    Fields come before peaks. So a record ends at a blank line after its peaks, at the first field
    after them, or at a second ``Name``.
    """
    record: Record | None = None
    peaks = PeakBlock()
    keys: set[str] = set()
    count = 0
    line = ""
    with source.open() as stream:
        for number, line in text_lines(stream):
            is_long = isinstance(line, LongLine)
            is_peak = line[:1].isdigit() and not is_long and not _SPECIAL.search(line)
            if is_peak and record is not None:
                if len(peaks) > MAX_PEAKS or len(line.split()) == 2:  # most lines
                    peaks.add(number, line)
                else:
                    _add_peaks(record, peaks, number, line)
                continue
            entry = _KEY.match(line)
            if record is not None and _ends_before(record, peaks, line, entry):
                yield _finish(record, peaks, keys)
                record = None
            if not line.strip():
                continue
            if record is None:
                count += 1
                where = f"{source.name}: record {count} (line {number})"
                record, peaks = Record(where, fallback_name=f"record {count}"), PeakBlock()
                keys = set()
            if is_long:
                record.refuse_line(number)
                if entry is not None and _is_name(entry):
                    record.fields.setdefault("compound_name", "")
            elif entry is not None:
                _add_entry(record, entry[1], entry[2])
                if (key := entry[1].strip().replace("RETENTION TIME", "RETENTIONTIME")) in (
                    _PROGRAM_FIELDS
                ):
                    keys.add(key)
            else:
                _add_peaks(record, peaks, number, line)
    if record is not None:
        if "num_peaks" not in record.fields and not line.endswith("\n"):
            reason = "the file ends in the middle of a line, before its number of peaks"
            record.refuse(reason, "truncated")
        yield _finish(record, peaks, keys)


def _ends_before(record: Record, peaks: PeakBlock, line: str, entry: re.Match[str] | None) -> bool:
    """Whether the record is over when this line comes."""
    over = len(peaks) > 0 or record.fields.get("num_peaks", "").strip() == "0"
    if not line.strip():
        return over
    if entry is None:
        return False
    return over or (_is_name(entry) and "compound_name" in record.fields)


def _is_name(entry: re.Match[str]) -> bool:
    return entry[1].strip().lower() == "name"


def _finish(record: Record, peaks: PeakBlock, keys: set[str]) -> Record:
    peaks.fill(record)
    if any(field in keys and keys & beside for field, beside in _IN_MINUTES.items()):
        time = record.fields.get("retention_time", "")
        record.fields["retention_time"] = with_time_unit(time, "min")
    if not record.fields.get("compound_name"):
        record.refuse("has no Name", "malformed")
    else:
        record.fallback_name = record.fields["compound_name"]
    return record


def _add_entry(record: Record, key: str, value: str) -> None:
    key = key.strip().lower()
    if key == "num peaks":
        if "num_peaks" in record.others:  # the name between the two is missing
            reason = "states Num Peaks twice: two records that ran together"
            record.refuse(reason, "malformed")
        record.others["num_peaks"] = []
        record.fields["num_peaks"] = value.strip()
    elif record.problem is not None and record.fields.get("compound_name"):
        return  # nothing will be made of it
    elif key in {"comment", "comments"}:
        record.add("comment", value)
        pairs = _QUOTED.findall(value)
        pairs += [(k, quoted or bare) for k, quoted, bare in _BARE.findall(_QUOTED.sub(" ", value))]
        for inner_key, inner_value in pairs:
            record.add(inner_key, inner_value)
    else:
        if key == "name":  # one without a text too: the next name begins the next record
            record.fields.setdefault("compound_name", "")
        record.add(key, value)


def _add_peaks(record: Record, peaks: PeakBlock, number: int, line: str) -> None:
    """Add peaks: ``mz intensity "note"``, ``mz intensity; mz intensity`` or ``mz:int``."""
    text = _COLON_PEAK.sub(" ", _ANNOTATION.sub(" ", line))
    if ";" in text:
        for part in filter(str.strip, text.split(";")):
            peaks.add(number, part)
        return
    columns = text.split()
    if len(columns) == 2:
        peaks.add(number, text)
    elif len(columns) > 2 and len(columns) % 2 == 0 and all(map(is_number, columns)):
        # NIST allows several peaks a line. Whether this is meant shows in their number.
        if not record.fields.get("num_peaks"):
            reason = f"line {number}: several numbers, and no Num Peaks to tell what they are"
            record.problem = Reason(reason, "bad-peak")
        for i in range(0, len(columns), 2):
            peaks.add(number, f"{columns[i]} {columns[i + 1]}")
    elif columns and columns[0][0].isalpha() and columns[0][:3].lower() not in {"nan", "inf"}:
        reason = f"line {number}: {shorten(line)!r} is neither 'Key: value' nor a peak"
        record.problem = Reason(reason, "malformed")
    else:
        peaks.add(number, text)


_NAMES = {"smiles": "SMILES", "inchikey": "InChIKey", "comment": "Comments"}


def write_msp(path: StrPath, spectra: Iterable[tuple[Spectrum, Sequence[str]]]) -> int:
    """Write spectra, each with a comment for each peak, as MSP; return how many there were.

    An empty comment is left out. A spectrum without a name is called by its identifier.
    """
    count = 0
    with atomic_file(Path(path)) as partial, partial.open("w", encoding="utf-8") as stream:
        for spectrum, comments in spectra:
            count += 1
            fields = {key: " ".join(value.split()) for key, value in spectrum.metadata.items()}
            lines = [f"Name: {fields.pop('compound_name', '') or spectrum.identifier}"]
            lines.append(f"PrecursorMZ: {spectrum.precursor_mz:.5f}")
            if spectrum.adduct is not None:
                lines.append(f"Precursor_type: {spectrum.adduct}")
            if spectrum.charge is not None:
                lines.append(f"Ion_mode: {'P' if spectrum.charge > 0 else 'N'}")
            lines += [
                f"{_NAMES.get(key, key.capitalize())}: {value}" for key, value in fields.items()
            ]
            lines.append(f"Num Peaks: {len(spectrum)}")
            for mz, height, comment in zip(
                spectrum.mz.tolist(), spectrum.intensities.tolist(), comments, strict=True
            ):
                lines.append(f"{mz:.5f} {height:.2f}" + (f' "{comment}"' if comment else ""))
            stream.write("\n".join(lines) + "\n\n")
    return count
