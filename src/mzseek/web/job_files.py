"""The folder of a job: what was uploaded, and the results as they are made.

``inputs/`` has a folder for each kind of upload, ``out/`` is what `mzseek annotate --out` writes,
with three further files: the JSON array, mzTab-M, and the rows and drawings that pages show.
"""

import json
import re
import threading
import unicodedata
import zipfile
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mzseek.annotation.annotation import Annotation
from mzseek.core.text import visible
from mzseek.export.json_array import JsonArray
from mzseek.export.mztab import MzTab
from mzseek.export.report import feature_data, row_data
from mzseek.export.writer import Writer, plain_data

SPECTRA, CANDIDATES, FEATURES, NETWORK = "spectra", "candidates", "features", "network"
ROWS, DRAWINGS, JSON = "rows.jsonl", "drawings.jsonl", "annotations.json"
_UNSAFE = re.compile(r"[^\w.+() -]", re.ASCII)
_MAX_NAME = 100
_MEDIA_TYPES = {".json": "application/json", ".html": "text/html", ".zip": "application/zip"}
_INDEXED = 64  # files whose lines are indexed in memory
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)


class Rows(Writer):
    """Write the row of each feature that tables show, as a line of JSON."""

    signature = re.compile(rb"\A\{")

    def write(self, annotation: Annotation) -> None:
        """Add a line."""
        self.spool.write(_line(row_data(annotation)))


class Drawings(Writer):
    """Write what the drawings of each feature are made from, as a line of JSON."""

    signature = re.compile(rb"\A\{")

    def write(self, annotation: Annotation) -> None:
        """Add a line."""
        self.spool.write(_line(feature_data(annotation)))


def _line(data: Any) -> str:
    return json.dumps(plain_data(data, visible), separators=(",", ":")) + "\n"


# What a job writes beside the files of every output folder.
MORE: Mapping[str, type[Writer]] = {
    JSON: JsonArray, "annotations.mztab": MzTab, ROWS: Rows, DRAWINGS: Drawings,
}  # fmt: skip


class Format(NamedTuple):
    """A format that results can be downloaded in.

    Attributes
    ----------
    file : str
        Name of the file; with a ``*`` for any suffix.
    """

    file: str

    @property
    def media_type(self) -> str:
        """Of the response."""
        return _MEDIA_TYPES.get(Path(self.file).suffix, "text/plain; charset=utf-8")


FORMATS: Mapping[str, Format] = {
    "summary": Format("summary.tsv"),
    "tsv": Format("candidates.tsv"),
    "peaks": Format("peaks.tsv"),
    "proposals": Format("proposals.tsv"),
    "skipped": Format("skipped.tsv"),
    "json": Format(JSON),
    "mztab": Format("annotations.mztab"),
    "html": Format("report.html"),
    "features": Format("features.*"),
    "graphml": Format("network.graphml"),
    "run": Format("run.json"),
    "zip": Format("annotations.zip"),
}


def safe_name(name: str, default: str) -> str:
    r"""Return the last part of a file's name with letters that are safe everywhere.

    Examples
    --------
    >>> safe_name("../../etc/pass wd", "file"), safe_name("C:\\a\\x.mgf", "file")
    ('pass wd', 'x.mgf')
    >>> safe_name("probe 1 µM <b>.mgf", "file"), safe_name("..", "file")
    ('probe 1 uM _b_.mgf', 'file')
    """
    last = re.split(r"[\\/]", unicodedata.normalize("NFKC", name).replace("μ", "u"))[-1]
    plain = _UNSAFE.sub("_", last).strip(" .-")
    if len(plain) > _MAX_NAME:  # the suffix says how a file is read
        plain = plain[: _MAX_NAME // 2] + plain[-_MAX_NAME // 2 :]
    return plain or default


class JobFolder:
    """Paths of a job."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.inputs, self.out = path / "inputs", path / "out"

    def uploaded(self, kind: str) -> list[Path]:
        """Return the files of a kind that were uploaded, in the order of their names."""
        folder = self.inputs / kind
        return sorted(folder.iterdir()) if folder.is_dir() else []

    @property
    def is_finished(self) -> bool:
        """Whether all results are there."""
        return (self.out / "run.json").is_file()

    def result(self, name: str) -> Path | None:
        """Return a file of the results, finished or not; None where it is not there yet."""
        for folder in (self.out, self.path / "out.partial", self.out):  # it may be renamed now
            path = folder / name
            if path.is_file():
                return path
        return None

    def formats(self) -> list[str]:
        """Return the formats that there are results in; none before the job is finished."""
        if not self.is_finished:
            return []
        return [name for name in FORMATS if name == "zip" or self.file(name) is not None]

    def file(self, format_: str) -> Path | None:
        """Return the file of a format."""
        return next(iter(sorted(self.out.glob(FORMATS[format_].file))), None)

    def write_zip(self, path: Path) -> None:
        """Write a zip archive of all results; the same results make the same bytes."""
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(self.out.iterdir()):
                info = zipfile.ZipInfo(f"annotations/{file.name}", _ZIP_DATE)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = 0o644 << 16
                with file.open("rb") as source, archive.open(info, "w") as target:
                    while chunk := source.read(1 << 20):
                        target.write(chunk)

    def size(self) -> int:
        """Return the bytes of all files."""
        return sum(path.stat().st_size for path in self.path.rglob("*") if path.is_file())


class Lines:
    """Lines of growing files, found again by their number.

    Where each line begins is kept in memory, for the files that were asked for last.
    """

    def __init__(self) -> None:
        self._starts: OrderedDict[tuple[str, str], array[int]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, job: str, path: Path, offset: int, limit: int) -> tuple[list[Any], int]:
        """Return JSON values of some lines, and how many whole lines there are.

        Also reads the JSON array that `JsonArray` writes, of which the first line is no value.
        """
        skip = 1 if path.name == JSON else 0
        with self._lock:
            starts = array("q", self._index(job, path))
        total = max(len(starts) - 1 - skip, 0)
        first, last = min(offset, total) + skip, min(offset + limit, total) + skip
        if first >= last:
            return [], total
        with path.open("rb") as file:
            file.seek(starts[first])
            data = file.read(starts[last] - starts[first])
        lines = (line.rstrip(b",\n") for line in data.splitlines())
        return [json.loads(line) for line in lines], total

    def _index(self, job: str, path: Path) -> "array[int]":
        """Return where lines begin, and where the last whole line ends."""
        key = job, path.name
        starts = self._starts.setdefault(key, array("q", [0]))
        self._starts.move_to_end(key)
        while len(self._starts) > _INDEXED:
            self._starts.popitem(last=False)
        if path.stat().st_size < starts[-1]:  # cut when the job was resumed
            del starts[1:]
        with path.open("rb") as file:
            file.seek(starts[-1])
            starts.extend(_ends(file, starts[-1]))
        return starts

    def forget(self, job: str) -> None:
        """Drop what is known of the files of a job."""
        with self._lock:
            for key in [key for key in self._starts if key[0] == job]:
                del self._starts[key]


def _ends(file: Any, position: int) -> Iterator[int]:
    for line in file:
        if not line.endswith(b"\n"):
            return
        position += len(line)
        yield position
