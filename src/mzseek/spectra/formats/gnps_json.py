"""GNPS's JSON libraries: an array of objects, each with its peaks under ``peaks_json``."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from mzseek.errors import InputError
from mzseek.files import Source, iter_members
from mzseek.spectra.numbers import shorten
from mzseek.spectra.record import READ_FIELDS, Record, canonical_key

_MOST_FIELDS = 500
_PEAKS = ("peaks_json", "peaks")


class _Object(dict[str, Any]):
    """A JSON object that knows which of its keys stood there twice, with different values."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        is_whole = len(self) == len(pairs)
        self.twins = [] if is_whole else [key for key, value in pairs if value != self[key]]


def looks_like(head: str) -> bool:
    """Whether the beginning of a file is JSON."""
    return head.lstrip("\ufeff \t\r\n")[:1] in {"[", "{"}


def read(source: Source) -> Iterator[Record]:
    """Records of a JSON array of spectra; an object of one spectrum counts as an array of it."""
    with source.open() as stream:
        single: list[str] = []
        for count, (kind, text) in enumerate(iter_members(stream, source.name), 1):
            if kind == "object":
                single.append(text)
                if len(single) > _MOST_FIELDS:
                    raise InputError(
                        source.name,
                        f"is one object of over {_MOST_FIELDS} fields, expected an array",
                    )
                continue
            record = Record(f"{source.name}: record {count}", fallback_name=f"record {count}")
            yield _fill(record, text)
        if single:
            record = Record(f"{source.name}: record 1", fallback_name="record 1")
            yield _fill(record, "{" + ",".join(single) + "}")


def _fill(record: Record, text: str) -> Record:
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
    for key, value in entry.items():
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            record.add("inchikey" if key == "InChIKey_smiles" else key, str(value))


def _read_peaks(record: Record, entry: dict[str, Any]) -> None:
    peaks = entry.get("peaks_json", entry.get("peaks"))
    if isinstance(peaks, str):
        record.fields.pop("peaks_json", None)
        peaks = json.loads(peaks)
    if not isinstance(peaks, list):
        record.fault = "has no list of peaks under peaks_json"
        return
    try:
        values = np.array(peaks, dtype=np.float64)
    except (ValueError, TypeError):
        values = np.empty(0)
    if peaks and (values.ndim != 2 or values.shape[1] < 2):
        record.fault = "has a peak that is not [m/z, intensity]"
    elif peaks:
        record.mz, record.intensities = values[:, 0].copy(), values[:, 1].copy()
