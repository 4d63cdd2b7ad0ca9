"""A data set on disk: a table of spectra and candidate lists."""

import contextlib
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from mzseek.core.errors import DatasetError, InputError, Reason
from mzseek.core.registry import FOLDS
from mzseek.core.text import shorten
from mzseek.io import StrPath, atomic_file, open_source, text_lines
from mzseek.io.json_stream import iter_members, too_long
from mzseek.io.manifest import Manifest, kind_of, why_not
from mzseek.io.skipped import Report
from mzseek.io.sources import MAX_FAULTS
from mzseek.io.text_tables import format_names
from mzseek.spectra import Spectrum, read_spectra
from mzseek.spectra.formats.tables import check_header
from mzseek.spectra.read import FORMATS, recognise

# Spectra to try things on: nine as textbooks show them, and 51 measured by a contributor to
# MassBank that the shipped bundle has not learned from.
DEMO_QUERIES = Path(str(files("mzseek").joinpath("data", "demo", "queries.mgf")))
DEMO_MEASURED = DEMO_QUERIES.with_name("measured.mgf")
KIND = "data set"
MANIFEST = Manifest(KIND, DatasetError, "build it again")
COLUMNS = (
    "identifier",
    "mzs",
    "intensities",
    "smiles",
    "inchikey",
    "formula",
    "precursor_formula",
    "parent_mass",
    "precursor_mz",
    "adduct",
    "instrument_type",
    "collision_energy",
    "fold",
    "simulation_challenge",
)


@dataclass(frozen=True)
class DatasetFiles:
    """Where a data set's parts are.

    Attributes
    ----------
    spectra : Path
        Table in MassSpecGym's columns.
    candidates : dict of str to Path
        Candidate file of each retrieval setting (``mass``, ``formula`` …).
    """

    spectra: Path
    candidates: dict[str, Path]


def find_dataset(folder: StrPath) -> DatasetFiles:
    """Recognise a data set in a folder by its files' names.

    One ``*.tsv`` (or ``.tsv.gz``) with MassSpecGym's columns, and any ``*candidates*.json`` whose
    names tell the setting after ``candidates_``; where some of them begin with the table's name,
    only those.
    """
    folder = Path(folder)
    if not folder.is_dir():
        what = "is a file, expected a folder" if folder.exists() else "no such folder"
        raise DatasetError(f"{folder}: {what}")
    tables = [
        path
        for path in sorted(folder.rglob("*.tsv")) + sorted(folder.rglob("*.tsv.gz"))
        if {"mzs", "smiles"} <= set(_columns(path))
    ]
    if not tables and (kind_of(folder) or KIND) != KIND:
        raise DatasetError(f"{folder}: {why_not(folder, KIND)}")
    if not tables:
        raise DatasetError(f"{folder}: holds no table of spectra (*.tsv with mzs, smiles, fold)")
    if len(tables) > 1:
        names = ", ".join(path.name for path in tables)
        raise DatasetError(f"{folder}: holds more than one table of spectra ({names})")
    return dataset_of(tables[0], folder)


def dataset_of(table: StrPath, folder: StrPath | None = None) -> DatasetFiles:
    """Return a table of spectra with the candidate files beside it.

    Parameters
    ----------
    table : path
        One of several in a folder, for instance.
    folder : path, optional
        Where to look for candidate files; the table's own by default.
    """
    table = Path(table)
    if not table.is_file():
        raise DatasetError(f"{table}: no such file")
    folder = Path(folder) if folder is not None else table.parent
    lists = sorted(folder.rglob("*candidates*.json")) + sorted(folder.rglob("*candidates*.json.gz"))
    # Lists that carry the table's name are its own; a folder may hold others besides.
    name = table.name.removesuffix(".gz").removesuffix(".tsv")
    named = [path for path in lists if path.name.startswith(f"{name}_candidates")]
    named = named or [path for path in lists if path.name.startswith(f"{name}_")]
    candidates: dict[str, Path] = {}
    for path in named or lists:
        setting = path.name.removesuffix(".gz").removesuffix(".json").rpartition("candidates")[2]
        setting = setting.strip("_-") or "all"
        if setting in candidates:
            raise DatasetError(f"{folder}: two candidate files for {setting!r}")
        candidates[setting] = path
    return DatasetFiles(table, candidates)


def read_table(path: StrPath, report: Report, intensity_floor: float = 0.0) -> Iterator[Spectrum]:
    """Yield spectra with a molecule each; those without one are skipped.

    ``smiles`` and, where the table has it, ``fold`` stand in each spectrum's metadata.
    """
    path = Path(path)
    columns = _columns(path)
    missing = [name for name in ("mzs", "intensities", "smiles") if name not in columns]
    if missing:
        raise DatasetError(f"{path}: {_why_no_table(path, missing[0], columns)}")
    check_header(path, columns)
    for spectrum in read_spectra(path, report, intensity_floor=intensity_floor):
        fold = spectrum.metadata.get("fold")
        if "smiles" not in spectrum.metadata:
            report(f"{path}: {spectrum.identifier}", Reason("has no SMILES", "no-molecule"))
        elif fold is not None and fold not in FOLDS:
            reason = f"fold {shorten(fold)!r} is unknown, expected one of {', '.join(FOLDS)}"
            report(f"{path}: {spectrum.identifier}", Reason(reason, "unknown-name"))
        else:
            yield spectrum


def write_table(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Write a table of spectra in MassSpecGym's columns."""
    with _gzip_writer(path) as stream:
        stream.write(("\t".join(COLUMNS) + "\n").encode())
        for row in rows:
            cells = (" ".join(str(row.get(name, "")).split()) for name in COLUMNS)
            stream.write(("\t".join(cells) + "\n").encode())


def write_candidates(path: Path, lists: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Write candidate lists, each with its molecule's SMILES, as one JSON object, as they come."""
    with _gzip_writer(path) as stream:
        stream.write(b"{")
        for number, (key, values) in enumerate(lists):
            between = ", " if number else ""
            stream.write(f"{between}{json.dumps(key)}: {json.dumps(list(values))}".encode())
        stream.write(b"}")


@contextlib.contextmanager
def _gzip_writer(path: Path) -> Iterator[gzip.GzipFile]:
    """Open a gzip file without name and time in its header: equal content makes equal files."""
    with (
        atomic_file(path) as partial,
        partial.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as stream,
    ):
        yield stream


def _why_no_table(path: Path, missing: str, columns: list[str]) -> str:
    try:
        kind = recognise(open_source(path))
    except InputError:
        kind = FORMATS["table"]
    if kind is not FORMATS["table"]:
        return f"is {kind.label}, expected a table; `mzseek data build` makes one of it"
    return f"lacks the column {missing!r}; it has {format_names(columns) or 'none'}"


def _columns(path: Path) -> list[str]:
    with open_source(path).open() as stream:
        for _, line in text_lines(stream):
            return line.rstrip("\n").split("\t")
    return []


EMPTY_LIST = "empty-list"  # code of the reason, for `data check`


def read_candidates(path: StrPath, report: Report) -> Iterator[tuple[str, list[str]]]:
    """Yield each molecule's SMILES with its candidates'.

    Parameters
    ----------
    path : path
        Plain or gzipped JSON, as MassSpecGym's.
    report : callable
        Gets ``(where, reason)`` for each skipped entry; of several lists for one SMILES these are
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
    """Return key and value of an entry, and the reason if it is malformed."""
    if text is None:
        return "", None, too_long()
    try:
        ((key, candidates),) = json.loads("{" + text + "}").items()
    except (ValueError, RecursionError) as error:
        return "", None, Reason(f"is not valid JSON ({shorten(str(error))})", "malformed")
    return key, candidates, None


def _why_not(key: str, candidates: object, seen: dict[int, int]) -> str | None:
    """Say why an entry is skipped, or None; of lists for one key the first is used."""
    if not isinstance(candidates, list) or not all(isinstance(c, str) for c in candidates):
        return Reason("its candidates are not a list of SMILES", "malformed")
    if not candidates:
        return Reason("its candidate list is empty", EMPTY_LIST)
    if hash(key) in seen:
        same = seen[hash(key)] == hash(tuple(candidates))
        others = "the same" if same else "other"
        reason = f"is listed a second time, with {others} candidates; the first list is used"
        return Reason(reason, "duplicate")
    return None
