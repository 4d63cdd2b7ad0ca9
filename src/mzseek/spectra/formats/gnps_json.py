"""GNPS's JSON libraries: an array of objects, each with its peaks under ``peaks_json``."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from mzseek.errors import InputError
from mzseek.files import Source, iter_members
from mzseek.files.limits import MAX_MEMBER, MAX_PEAKS
from mzseek.files.streams.json_stream import too_long
from mzseek.spectra.numbers import shorten
from mzseek.spectra.record import READ_FIELDS, Record, canonical_key

_MOST_FIELDS = 500
_PEAKS = ("peaks_json", "peaks")


class _Object(dict[str, Any]):
    """A JSON object that knows which of its keys stood there twice, with different values."""

    __slots__ = ("twins",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        is_whole = len(self) == len(pairs)
        self.twins = () if is_whole else tuple(key for key, value in pairs if value != self[key])


def looks_like(head: str) -> bool:
    """Whether the beginning of a file is JSON."""
    return head.lstrip("\ufeff \t\r\n")[:1] in {"[", "{"}


def read(source: Source) -> Iterator[Record]:
    """Records of a JSON array of spectra; an object of one spectrum counts as an array of it."""
    with source.open() as stream:
        single: list[str] = []
        size = 0
        for count, (kind, text) in enumerate(iter_members(stream, source.name), 1):
            if kind == "array":
                yield _fill(_begin(source, count), text)
                continue
            if count > _MOST_FIELDS:
                reason = f"is one object of over {_MOST_FIELDS} fields, expected an array"
                raise InputError(source.name, reason)
            size += MAX_MEMBER if text is None else len(text)
            single.append(text or "" if size < MAX_MEMBER else "")
        if size:
            whole = "{" + ",".join(single) + "}" if size < MAX_MEMBER else None
            yield _fill(_begin(source, 1), whole)


def _begin(source: Source, count: int) -> Record:
    return Record(f"{source.name}: record {count}", fallback_name=f"record {count}")


def _fill(record: Record, text: str | None) -> Record:
    if text is None:
        record.fault = too_long()
        return record
    try:
        entry = json.loads(text, object_pairs_hook=_Object)
        if not isinstance(entry, _Object):
            record.fault = f"is {shorten(text)}, expected an object with peaks_json"
            return record
        for key in entry.twins:
            if key in _PEAKS or canonical_key(key) in READ_FIELDS:
                record.fault = f"has two values of one key, {shorten(key)!r}, expected one"
                return record
        _read_fields(record, entry)
        _read_peaks(record, entry)
    except (ValueError, TypeError, RecursionError) as error:
        record.fault = f"is not valid JSON ({shorten(str(error))})"
    return record


def _read_fields(record: Record, entry: dict[str, Any]) -> None:
    peaks = "peaks_json" if "peaks_json" in entry else "peaks"
    for key, value in entry.items():
        if isinstance(value, str | int | float) and not isinstance(value, bool) and key != peaks:
            record.add("inchikey" if key == "InChIKey_smiles" else key, str(value))


def _read_peaks(record: Record, entry: dict[str, Any]) -> None:
    peaks = entry.get("peaks_json", entry.get("peaks"))
    if isinstance(peaks, str):
        peaks = json.loads(peaks)
    if not isinstance(peaks, list):
        record.fault = "is no spectrum: has no list of peaks under peaks_json"
        return
    if len(peaks) > MAX_PEAKS:
        record.fault = f"has {len(peaks):,} peaks, expected at most {MAX_PEAKS:,}"
        return
    try:
        values = np.array(peaks, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):  # the last: whole numbers past all floats
        values = np.empty(0)
    if peaks and (values.ndim != 2 or values.shape[1] < 2):
        record.fault = "has a peak that is not [m/z, intensity]"
    elif peaks:
        record.mz, record.intensities = values[:, 0].copy(), values[:, 1].copy()
