"""Feature tables of other programs with annotations joined.

Rows are copied byte by byte, so that quoting, encoding and line ends stay as they were.
"""

import contextlib
import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from mzseek.annotation.annotation import Annotation
from mzseek.annotation.feature_tables import MAX_DISTANCE, FeatureTable, Row
from mzseek.chem.adducts import Adduct, parse_adduct
from mzseek.core.errors import AdductError, InputError, RunError
from mzseek.export.joining import JOINED, PREFIX, JoiningWriter, JoinRecord
from mzseek.export.writer import Settings

CONFLICT = f"{PREFIX}ion_conflict"
COLUMNS = (*(f"{PREFIX}{name}" for name in JOINED), CONFLICT)
_MAX_NAMED = 5
_POLARITY = "polarity:"
_BRACKETED = re.compile(r"\[\d*M[^\[\]]*\]\d*[+-]+\d*")
_BETWEEN = re.compile(r"[,;]")


class JoinedTable(JoiningWriter):
    """Write a table of features with annotations in columns behind its own."""

    signature = re.compile(
        rb"\A(?:[^\n]*\n){0,9}[^\n]*(?:%s)\r?\n"
        % "|".join(re.escape(mark + mark.join(COLUMNS)) for mark in (",", ";", "\t")).encode()
    )

    def __init__(self, folder: Path, name: str, settings: Settings) -> None:
        if settings.features is None:
            raise RunError(f"{name}: needs a table of features to join to; give --features")
        self._table = FeatureTable(settings.features)
        twice = next((name for name in self._table.names if name.startswith(PREFIX)), None)
        if twice is not None:
            raise InputError(settings.features, f"has a column {twice} already")
        super().__init__(folder, name, settings)

    def assemble(self, file: TextIO) -> list[str]:
        """Write each row, and behind it the annotation of its feature."""
        self._counts = Counter[str]()  # rows, for what is reported
        self._first_conflict = ""
        self._joined, self._sharing = set[int](), set[int]()  # offsets of features
        for index, row in enumerate(self._table.rows()):
            cells = self._new_cells(index, row)
            file.buffer.write(row.text + self._encode(row, cells) + row.end)
        return self._report()

    def _new_cells(self, index: int, row: Row) -> list[str]:
        """Return what is put behind a row."""
        table, counts = self._table, self._counts
        if index == table.header:
            return list(COLUMNS)
        missing = table.width - len(row.cells)
        if missing < 0 or (not row.text.strip() and table.width > 1):
            counts["longer"] += missing < 0 and index > table.header
            return []
        nothing = [""] * (missing + len(COLUMNS))
        if index < table.header:
            return nothing
        counts["rows"] += 1
        record = self._find(row)
        if record is None:
            return nothing
        counts["annotated"] += 1
        conflict = ion_conflict(row.cell(table.ion), record.ion)
        if conflict:
            counts["conflicts"] += 1
            counts["polarities"] += conflict.startswith(_POLARITY)
            self._first_conflict = self._first_conflict or f"row {row.cell(table.id)}, {conflict}"
        cells = record.cells | {CONFLICT: conflict}
        return [""] * missing + [cells[name] for name in COLUMNS]

    def _find(self, row: Row) -> JoinRecord | None:
        """Return the annotation of a row: of the feature with its id, or that is else called so.

        A feature that has the id in another field than its name must also have the row's m/z. Of
        several (ions of one compound, of which Progenesis makes one row) the nearest in m/z.
        """
        ids = self._table.ids(row)
        named = [self.by_name[name] for name in ids if name in self.by_name]
        offsets = [*named, *(offset for name in ids for offset in self.by_id.get(name, ()))]
        records = {offset: self.read(offset) for offset in offsets}
        fitting = [offset for offset in records if self._is_near(row, records[offset])]
        chosen = fitting or named[:1]
        if not chosen:
            return None
        mz = row.number_at(self._table.mz)
        best = min(
            chosen, key=lambda offset: 0.0 if mz is None else round(abs(records[offset].mz - mz), 2)
        )
        self._joined.add(best)
        self._sharing.update(set(chosen) - {best, *self.twins})
        self._counts["far"] += not fitting
        return records[best]

    def _is_near(self, row: Row, record: JoinRecord) -> bool:
        """Return whether the feature has the row's m/z, or one that follows from its mass."""
        mz, mass = row.number_at(self._table.mz), row.number_at(self._table.neutral)
        expected = [] if mz is None else [mz]
        if mass is not None:
            ions = [*stated_ions(record.ion), *stated_ions(row.cell(self._table.ion))]
            expected += [ion.slope * mass + ion.offset for ion in ions]
        return not expected or any(abs(record.mz - value) <= MAX_DISTANCE for value in expected)

    def _encode(self, row: Row, cells: list[str]) -> bytes:
        """Return cells in the table's own form and, as far as one can tell, in its encoding."""
        mark = self._table.delimiter
        if mark != "\t":  # in tables of tabs nothing is quoted, since no cell has a tab
            is_special = re.compile(f'[{mark}"]').search
            cells = ['"' + c.replace('"', '""') + '"' if is_special(c) else c for c in cells]
        text = "".join(mark + cell for cell in cells)
        try:
            row.text.decode("utf-8")
        except UnicodeDecodeError:
            return text.encode("latin-1", "replace")
        return text.encode("utf-8")

    def _report(self) -> list[str]:
        counts = self._counts
        left = [at for at in self.by_name.values() if at not in self._joined | self._sharing]
        lines = [f"{counts['annotated']:,} of {counts['rows']:,} rows have an annotation"]
        for offsets, what in (
            (left, "are in none of its rows"),
            (
                sorted(self._sharing - self._joined),
                "share a row with another that is nearer in m/z, and are not joined",
            ),
        ):
            if offsets:
                shown = ", ".join(self.read(offset).name for offset in offsets[:_MAX_NAMED])
                more = "…" if len(offsets) > _MAX_NAMED else ""
                lines.append(f"{len(offsets):,} features {what}: {shown}{more}")
        if self.twins:
            lines.append(f"{len(self.twins):,} features have the name of one before them")
        if counts["far"]:
            lines.append(
                f"{counts['far']:,} rows have another m/z than their feature (more than "
                f"{MAX_DISTANCE} apart): is it the table of these spectra?"
            )
        if counts["longer"]:
            lines.append(f"{counts['longer']:,} rows are longer than the header, not joined")
        if counts["conflicts"]:
            polarities = counts["polarities"]
            also = f" ({polarities:,} of another polarity)" if polarities else ""
            lines.append(
                f"{counts['conflicts']:,} of {counts['annotated']:,} annotated rows state another "
                f"ion than the annotation used{also}, see {CONFLICT}; the first: "
                f"{self._first_conflict}"
            )
        name = self.settings.features.name if self.settings.features else ""
        return [f"{name}: {line}" for line in lines]


def stated_ions(text: str) -> list[Adduct]:
    """Return the ions that a cell of a feature table names; others are left out.

    Examples
    --------
    >>> [ion.name for ion in stated_ions("ION=[M+H+H]2+")]
    ['[M+2H]2+']
    >>> [ion.name for ion in stated_ions("M-H2O-H, M-H")]
    ['[M-H-H2O]-', '[M-H]-']
    >>> [ion.name for ion in stated_ions("[M+H]+ 194.08 [M+Na]+ 172.1")]
    ['[M+H]+', '[M+Na]+']
    """
    ions = []
    for part in _BRACKETED.findall(text) or _BETWEEN.split(text):
        with contextlib.suppress(AdductError):  # a name of a compound, or an unknown ion
            ions.append(parse_adduct(part))
    return ions


def ion_conflict(stated: str, used: str) -> str:
    """Return how the ion that a table states differs from the one used; empty where it does not.

    Parameters
    ----------
    stated : str
        A cell of the table: one ion or several, of which one must be the one used.
    used : str
        An adduct, or ``+`` or ``-`` for a polarity.

    Examples
    --------
    >>> ion_conflict("M+H, M+Na", "[M+Na]+")
    ''
    >>> ion_conflict("[M-H]-", "[M+H]+")
    'polarity: table [M-H]-, annotation [M+H]+'
    """
    ions = stated_ions(stated)
    if not ions or not used:
        return ""
    names = " or ".join(ion.name for ion in ions)
    if all((ion.charge > 0) != used.endswith("+") for ion in ions):
        return f"{_POLARITY} table {names}, annotation {used}"
    is_same = any(
        (ion.molecules, ion.charge) == (other.molecules, other.charge)
        and abs(ion.mass_shift - other.mass_shift) < 1e-4
        for ion in ions
        for other in stated_ions(used)
    )
    if is_same or len(used) == 1:
        return ""
    return f"ion: table {names}, annotation {used}"


def join_features(table: Path, annotations: Iterable[Annotation], out: Path) -> list[str]:
    """Write a feature table again, with annotations in columns behind its own.

    Annotations are joined by the feature's name, which is the row's id, or by what its spectra call
    it else. Returns lines about how many rows have an annotation, what matched nothing, and where
    ions differ.

    Raises
    ------
    InputError
        It is no table of features.
    """
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.resolve().parent) as folder:
        writer = JoinedTable(Path(folder), out.name, Settings(features=table))
        with contextlib.closing(writer):
            for annotation in annotations:
                writer.write(annotation)
            lines = writer.finish()
        (Path(folder) / out.name).replace(out)
    return lines
