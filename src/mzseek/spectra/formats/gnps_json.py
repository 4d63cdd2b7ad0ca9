"""JSON libraries: arrays of objects, single objects, and one object a line.

Four kinds of object are read: GNPS's (``peaks_json``, or ``peaks`` as its USI service returns
them), GNPS's answer about one library spectrum (``spectruminfo`` and ``annotations``), MZmine's
(``peaks``, ``softwaresource``) and MoNA's (``spectrum``, ``metaData``, ``compound``).
"""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from mzseek.core.errors import InputError, Reason
from mzseek.core.text import shorten
from mzseek.io import LongLine, Source, text_lines
from mzseek.io.json_stream import iter_members, too_long
from mzseek.io.sources import MAX_MEMBER, MAX_PEAKS, MAX_VALUES
from mzseek.spectra.records import (
    READ_FIELDS,
    Record,
    canonical_key,
    with_time_unit,
)

_MAX_FIELDS = 500
_MAX_LISTED = 20  # values of a field that is a list
_PEAKS = ("peaks_json", "peaks")
_GNPS_SPECTRUM, _GNPS_ANNOTATIONS = "spectruminfo", "annotations"
_NO_PEAKS = Reason("is no spectrum: has no list of peaks under peaks_json", "no-peaks")
# MoNA's names that no other file has.
_MONA_NAMES = {"ionization mode": "ionmode", "inchiKey": "inchikey"}
_MONA_PEAKS, _MONA_METADATA, _MONA_COMPOUNDS = "spectrum", "metaData", "compound"


class _Object(dict[str, Any]):
    """A JSON object that knows which of its keys stood there twice, with different values."""

    __slots__ = ("twins",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        is_whole = len(self) == len(pairs)
        self.twins = () if is_whole else tuple(key for key, value in pairs if value != self[key])


def read(source: Source) -> Iterator[Record]:
    """Read the records of a JSON array of spectra, of one object, or of one object a line."""
    return _read_lines(source) if _is_one_a_line(source) else _read_members(source)


def _is_one_a_line(source: Source) -> bool:
    """Whether the first line is a whole object, and another object begins after it."""
    with source.open() as stream:
        lines = ((text, line) for _, line in text_lines(stream) if (text := line.strip()))
        first, line = next(lines, ("", ""))
        is_whole = first.endswith("}") or isinstance(line, LongLine)
        return first.startswith("{") and is_whole and next(lines, ("", ""))[0].startswith("{")


def _read_lines(source: Source) -> Iterator[Record]:
    count = 0
    with source.open() as stream:
        for number, line in text_lines(stream):
            if not line.strip():
                continue
            count += 1
            record = _begin(source, count)
            if isinstance(line, LongLine):
                record.refuse_line(number)
                yield record
            else:
                yield _fill(record, line.strip())


def _read_members(source: Source) -> Iterator[Record]:
    with source.open() as stream:
        single: list[str] = []
        size = 0
        for count, (kind, text) in enumerate(iter_members(stream, source.name), 1):
            if kind == "array":
                yield _fill(_begin(source, count), text)
                continue
            if count > _MAX_FIELDS:
                reason = f"is one object of over {_MAX_FIELDS} fields, expected an array"
                raise InputError(source.name, reason)
            size += MAX_MEMBER if text is None else len(text)
            single.append(text or "" if size < MAX_MEMBER else "")
        if size:
            whole = "{" + ",".join(single) + "}" if size < MAX_MEMBER else None
            yield _fill(_begin(source, 1), whole)


def _begin(source: Source, count: int) -> Record:
    return Record(f"{source.name}: record {count}", fallback_name=f"record {count}")


def _fill(record: Record, text: str | None) -> Record:
    if text is None or text.count(",") + text.count("[") + text.count("{") > MAX_VALUES:
        record.problem = too_long()
        return record
    try:
        entry = json.loads(text, object_pairs_hook=_Object)
        if not isinstance(entry, _Object):
            record.refuse(f"is {shorten(text)}, expected an object with peaks_json", "malformed")
            return record
        if isinstance(entry.get(_MONA_PEAKS), str) and _MONA_METADATA in entry:
            _read_mona(record, entry)
            return record
        parts = [entry]
        if isinstance(entry.get(_GNPS_SPECTRUM), _Object):
            annotations = entry.get(_GNPS_ANNOTATIONS)
            newest = annotations[:1] if isinstance(annotations, list) else []
            parts = [entry[_GNPS_SPECTRUM], *(a for a in newest if isinstance(a, _Object))]
        for part in parts:
            for key in part.twins:
                if key in _PEAKS or canonical_key(key) in READ_FIELDS:
                    reason = f"has two values of one key, {shorten(key)!r}, expected one"
                    record.problem = Reason(reason, "contradiction")
                    return record
            _read_fields(record, part)
        _read_peaks(record, parts[0])
    except (ValueError, TypeError, RecursionError) as error:
        record.problem = Reason(f"is not valid JSON ({shorten(str(error))})", "malformed")
    return record


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _read_fields(record: Record, entry: dict[str, Any]) -> None:
    peaks = "peaks_json" if "peaks_json" in entry else "peaks"
    is_mzmine = str(entry.get("softwaresource", "")).lower().startswith("mzmine")
    for key, value in entry.items():
        if key == peaks:
            continue
        if isinstance(value, list) and 0 < len(value) <= _MAX_LISTED:
            if all(map(_is_scalar, value)):
                record.add(key, ", ".join(map(str, value)))
        elif _is_scalar(value):
            text = str(value)
            if key == "rt" and is_mzmine:
                text = with_time_unit(text, "min")
            record.add("inchikey" if key == "InChIKey_smiles" else key, text)


def _read_peaks(record: Record, entry: dict[str, Any]) -> None:
    peaks = entry.get("peaks_json", entry.get("peaks"))
    if isinstance(peaks, str):
        peaks = json.loads(peaks)
    if not isinstance(peaks, list):
        record.problem = _NO_PEAKS
    elif peaks:
        _set_peaks(record, peaks, "[m/z, intensity]")


def _set_peaks(record: Record, peaks: list[Any], form: str) -> None:
    if len(peaks) > MAX_PEAKS:
        record.refuse_peaks(len(peaks))
        return
    try:
        values = np.array(peaks, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):  # the last: whole numbers past all floats
        values = np.empty(0)
    if values.ndim != 2 or values.shape[1] < 2:
        record.problem = Reason(f"has a peak that is not {form}", "bad-peak")
    else:
        record.mz, record.intensities = values[:, 0].copy(), values[:, 1].copy()


def _read_mona(record: Record, entry: dict[str, Any]) -> None:
    """Fill a record from MoNA's export: named values, the first compound, peaks as one text."""
    record.add("identifier", str(entry.get("id") or ""))
    compounds = entry.get(_MONA_COMPOUNDS)
    compound = compounds[0] if isinstance(compounds, list) and compounds else {}
    if isinstance(compound, dict):
        for key in ("inchi", "inchiKey"):
            if isinstance(compound.get(key), str):
                record.add(_MONA_NAMES.get(key, key), compound[key])
        for name in _listed(compound.get("names"))[:1]:
            record.add("compound_name", str(name.get("name", "")))
        _read_mona_metadata(record, compound.get(_MONA_METADATA))
    _read_mona_metadata(record, entry.get(_MONA_METADATA))
    words = str(entry[_MONA_PEAKS]).split()
    if not words:
        record.problem = Reason("has no peaks", "no-peaks")
    elif any(word.count(":") != 1 for word in words):
        record.problem = Reason("has a peak that is not m/z:intensity", "bad-peak")
    else:
        _set_peaks(record, [word.split(":") for word in words], "m/z:intensity")


def _read_mona_metadata(record: Record, metadata: object) -> None:
    for entry in _listed(metadata):
        name, value = entry.get("name"), entry.get("value")
        if isinstance(name, str) and _is_scalar(value):
            unit = entry.get("unit")
            text = f"{value} {unit}" if isinstance(unit, str) and unit else str(value)
            record.add(_MONA_NAMES.get(name, name), text)


def _listed(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
