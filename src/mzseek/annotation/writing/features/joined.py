"""A table of features with annotations joined: all that was in it stands as it did."""

import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from mzseek.annotation.answers import Answer
from mzseek.annotation.writing.features.table import FeatureTable, Row
from mzseek.annotation.writing.lookup import Keeping, Lookup, same_feature
from mzseek.annotation.writing.spool import Settings
from mzseek.annotation.writing.tables.summary import BEFORE, JOINED
from mzseek.errors import InputError, RunError

COLUMNS = tuple(f"{BEFORE}{name}" for name in JOINED)
_FAR = 0.05  # Da: beyond, a row and a feature of one name are not one ion
_MOST_TOLD = 5


class Joined(Keeping):
    """Writes a table of features with annotations beside its rows."""

    def __init__(self, folder: Path, name: str, settings: Settings) -> None:
        if settings.features is None:
            raise RunError(f"{name}: needs a table of features to join to; give --features")
        self._table = FeatureTable(settings.features)
        twice = next((each for each in self._table.names if each.startswith(BEFORE)), None)
        if twice is not None:
            raise InputError(settings.features, f"has a column {twice} already")
        super().__init__(folder, name, settings)

    def finish(self) -> list[str]:
        """Write the table."""
        self._answers.place()
        lookup = Lookup(self._answers.path)
        counts: Counter[str] = Counter()
        left = dict(lookup.places)
        with (self.folder / self.name).open("wb") as file:
            for place, row in enumerate(self._table.rows()):
                file.write(row.text + self._behind(place, row, lookup, left, counts) + row.end)
        super().finish()
        return self._said(counts, [lookup.read(place)[0] for place in left.values()], lookup)

    def _behind(
        self, place: int, row: Row, lookup: Lookup, left: dict[str, int], counts: Counter[str]
    ) -> bytes:
        """What is put behind a row."""
        table = self._table
        missing = len(table.names) - len(row.cells)
        if place == table.before:
            return self._bytes(row, list(COLUMNS))
        if missing < 0 or (not row.text.strip() and len(table.names) > 1):
            counts["longer"] += missing < 0
            return b""
        padded = [""] * missing
        if place < table.before:
            return self._bytes(row, [*padded, *([""] * len(COLUMNS))])
        counts["rows"] += 1
        name = same_feature(row.cells[table.id]) if table.id < len(row.cells) else ""
        found = lookup.places.get(name)
        if found is None:
            return self._bytes(row, [*padded, *([""] * len(COLUMNS))])
        left.pop(name, None)
        _, mz, cells = lookup.read(found)
        counts["annotated"] += 1
        counts["far"] += _is_far(row.cells[table.mz] if table.mz < len(row.cells) else "", mz)
        return self._bytes(row, [*padded, *(cells[column] for column in COLUMNS)])

    def _bytes(self, row: Row, cells: list[str]) -> bytes:
        """Cells in the table's own form and, as far as one can tell, in its encoding."""
        mark = self._table.delimiter
        text = "".join(mark + _cell(cell, mark) for cell in cells)
        try:
            row.text.decode("utf-8")
        except UnicodeDecodeError:
            return text.encode("latin-1", "replace")
        return text.encode("utf-8")

    def _said(self, counts: Counter[str], left: list[str], lookup: Lookup) -> list[str]:
        name = self.settings.features.name if self.settings.features else ""
        said = [f"{name}: {counts['annotated']:,} of {counts['rows']:,} rows have an annotation"]
        if left:
            shown = ", ".join(left[:_MOST_TOLD]) + ("…" if len(left) > _MOST_TOLD else "")
            said.append(f"{name}: {len(left):,} features are in none of its rows: {shown}")
        if lookup.twins:
            said.append(f"{name}: {len(lookup.twins):,} features have the name of one before them")
        if counts["far"]:
            said.append(
                f"{name}: {counts['far']:,} rows have another m/z than their feature (more than "
                f"{_FAR} apart): is it the table of these spectra?"
            )
        if counts["longer"]:
            said.append(f"{name}: {counts['longer']:,} rows are longer than the header, not joined")
        return said


def join_features(table: Path, answers: Iterable[Answer], out: Path) -> list[str]:
    """Write a table of MZmine or MS-DIAL again, with annotations in columns behind its own.

    Parameters
    ----------
    table : Path
    answers : iterable of Answer
        Joined by the feature's name, which is the row's id.
    out : Path

    Returns
    -------
    list of str
        How many rows have an annotation, and what matched nothing.

    Raises
    ------
    InputError
        It is no table of features.
    """
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.resolve().parent) as folder:
        writer = Joined(Path(folder), out.name, Settings(features=table))
        try:
            for answer in answers:
                writer.write(answer)
            said = writer.finish()
        finally:
            writer.close()
        (Path(folder) / out.name).replace(out)
    return said


def _cell(cell: str, mark: str) -> str:
    """A cell; in tables of tabs nothing is quoted, since no cell of ours has a tab."""
    if mark != "\t" and (mark in cell or '"' in cell):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _is_far(cell: str, mz: float) -> bool:
    try:
        return abs(float(cell) - mz) > _FAR
    except ValueError:
        return False
