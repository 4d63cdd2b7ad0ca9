"""Candidate lists: JSON objects that map a molecule's SMILES to its candidates' SMILES."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mzseek.errors import DatasetError, InputError
from mzseek.files import StrPath, iter_members, open_source
from mzseek.files.limits import MAX_FAULTS
from mzseek.files.streams.json_stream import too_long
from mzseek.rejects import Reason, Report
from mzseek.spectra.numbers import shorten

EMPTY_LIST = "empty list"  # code of the reason, for `data check`


def read_candidates(path: StrPath, report: Report) -> Iterator[tuple[str, list[str]]]:
    """Each molecule's SMILES with its candidates', streamed.

    Parameters
    ----------
    path : path
        Plain or gzipped JSON, as MassSpecGym's.
    report : callable
        Gets ``(where, reason)`` for each entry set aside; of several lists for one SMILES these are
        all but the first.

    Raises
    ------
    DatasetError
        The file is not an object of lists, or is damaged.
    """
    path = Path(path)
    source = open_source(path)
    seen: dict[int, int] = {}  # hashes of keys and lists: a few bytes, whatever their length
    faults = 0  # in a row
    with source.open() as stream:
        try:
            for count, (kind, text) in enumerate(iter_members(stream, str(path)), 1):
                if kind == "array":
                    raise DatasetError(f"{path}: holds an array, expected SMILES: [SMILES, …]")
                where = f"{path}: entry {count}"
                key, candidates, reason = _parse(text)
                reason = reason or _why_not(key, candidates, seen)
                if reason:
                    report(f"{where} ({shorten(key)})" if key else where, reason)
                    faults += 1
                    if faults >= MAX_FAULTS:
                        raise InputError(where, f"{faults:,} entries in a row could not be read")
                    continue
                faults = 0
                seen[hash(key)] = hash(tuple(candidates))
                yield key, candidates
        except InputError as error:
            raise DatasetError(str(error)) from error


def _parse(text: str | None) -> tuple[str, Any, str | None]:
    """Key, value, and why there are none."""
    if text is None:
        return "", None, too_long()
    try:
        ((key, candidates),) = json.loads("{" + text + "}").items()
    except (ValueError, RecursionError) as error:
        return "", None, f"is not valid JSON ({shorten(str(error))})"
    return key, candidates, None


def _why_not(key: str, candidates: object, seen: dict[int, int]) -> str | None:
    """Why an entry is set aside; of lists for one key the first stays."""
    if not isinstance(candidates, list) or not all(isinstance(c, str) for c in candidates):
        return "its candidates are not a list of SMILES"
    if not candidates:
        return Reason("its candidate list is empty", code=EMPTY_LIST)
    if hash(key) in seen:
        same = seen[hash(key)] == hash(tuple(candidates))
        others = "the same" if same else "other"
        return f"is listed a second time, with {others} candidates; the first list is used"
    return None
