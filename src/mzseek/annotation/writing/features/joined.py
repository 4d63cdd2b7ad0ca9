"""A table of features with annotations joined: all that was in it stands as it did."""

import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from mzseek.adducts import Adduct, parse_adduct
from mzseek.annotation.answers import Answer
from mzseek.annotation.writing.features.table import FeatureTable, Row
from mzseek.annotation.writing.lookup import Keeping, Kept, Lookup, same_feature
from mzseek.annotation.writing.spool import Settings
from mzseek.annotation.writing.tables.summary import BEFORE, JOINED
from mzseek.errors import AdductError, InputError, RunError

CONFLICT = f"{BEFORE}ion_conflict"
COLUMNS = (*(f"{BEFORE}{name}" for name in JOINED), CONFLICT)
_FAR = 0.05  # Da: beyond, a row and a feature of one name are not one ion
_MOST_TOLD = 5
_POLARITY = "polarity:"
_BRACKETED = re.compile(r"\[\d*M[^\[\]]*\]\d*[+-]+\d*")
_BETWEEN = re.compile(r"[,;]")
_XCMS_NUMBER = re.compile(r"FT0*(\d+)")


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
        counts = _Counts()
        with (self.folder / self.name).open("wb") as file:
            for place, row in enumerate(self._table.rows()):
                file.write(row.text + self._behind(place, row, lookup, counts) + row.end)
        super().finish()
        return self._said(counts, lookup)

    def _behind(self, place: int, row: Row, lookup: Lookup, counts: "_Counts") -> bytes:
        """What is put behind a row."""
        table = self._table
        if place == table.before:
            return self._bytes(row, list(COLUMNS))
        missing = table.width - len(row.cells)
        if missing < 0 or (not row.text.strip() and table.width > 1):
            counts.longer += missing < 0 and place > table.before
            return b""
        nothing = [""] * (missing + len(COLUMNS))
        if place < table.before:
            return self._bytes(row, nothing)
        counts.rows += 1
        found = self._annotation(row, lookup, counts)
        if found is None:
            return self._bytes(row, nothing)
        counts.annotated += 1
        conflict = ion_conflict(self._cell(row, table.ion), found.ion)
        if conflict:
            counts.conflicts += 1
            counts.polarities += conflict.startswith(_POLARITY)
            counts.first_conflict = counts.first_conflict or (
                f"row {self._cell(row, table.id)}, {conflict}"
            )
        return self._bytes(
            row, [""] * missing + [(found.cells | {CONFLICT: conflict})[name] for name in COLUMNS]
        )

    def _annotation(self, row: Row, lookup: Lookup, counts: "_Counts") -> Kept | None:
        """The annotation of a row: of the feature with its id, or that is else called so.

        A feature that has the id in another field than its name must also have the row's m/z. Of
        several (ions of one compound, of which Progenesis makes one row) the nearest in m/z.
        """
        id_ = self._cell(row, self._table.id)
        ids = [same_feature(id_)]
        if number := _XCMS_NUMBER.fullmatch(id_):  # XCMS writes FT0017 to tables, 17 to MGF files
            ids.append(number[1])
        named = [lookup.places[name] for name in ids if name in lookup.places]
        places = dict.fromkeys([*named, *(at for name in ids for at in lookup.by_id.get(name, ()))])
        read = {place: lookup.read(place) for place in places}
        fitting = [place for place in read if self._is_near(row, read[place])]
        chosen = fitting or named[:1]
        if not chosen:
            return None
        mz = _number(self._cell(row, self._table.mz))
        best = min(chosen, key=lambda at: 0.0 if mz is None else round(abs(read[at].mz - mz), 2))
        counts.joined.add(best)
        counts.sharing.update(set(chosen) - {best, *lookup.twins})
        counts.far += not fitting
        return read[best]

    def _is_near(self, row: Row, kept: Kept) -> bool:
        """Whether the feature has the m/z of the row, or one that follows from its neutral mass."""
        mz = _number(self._cell(row, self._table.mz))
        mass = _number(self._cell(row, self._table.neutral))
        expected = [] if mz is None else [mz]
        if mass is not None:
            ions = [*stated_ions(kept.ion), *stated_ions(self._cell(row, self._table.ion))]
            expected += [ion.slope * mass + ion.offset for ion in ions]
        return not expected or any(abs(kept.mz - each) <= _FAR for each in expected)

    def _cell(self, row: Row, place: int | None) -> str:
        if place is None or place >= len(row.cells):
            return ""
        return row.cells[place].strip().strip('"')  # R quotes in tables of tabs, too

    def _bytes(self, row: Row, cells: list[str]) -> bytes:
        """Cells in the table's own form and, as far as one can tell, in its encoding."""
        mark = self._table.delimiter
        text = "".join(mark + _cell(cell, mark) for cell in cells)
        try:
            row.text.decode("utf-8")
        except UnicodeDecodeError:
            return text.encode("latin-1", "replace")
        return text.encode("utf-8")

    def _said(self, counts: "_Counts", lookup: Lookup) -> list[str]:
        name = self.settings.features.name if self.settings.features else ""
        said = [f"{name}: {counts.annotated:,} of {counts.rows:,} rows have an annotation"]
        left = [at for at in lookup.places.values() if at not in counts.joined | counts.sharing]
        for places, what in (
            (left, "are in none of its rows"),
            (sorted(counts.sharing - counts.joined),
             "share a row with another that is nearer in m/z, and are not joined"),
        ):  # fmt: skip
            if places:
                shown = ", ".join(lookup.read(at).name for at in places[:_MOST_TOLD])
                more = "…" if len(places) > _MOST_TOLD else ""
                said.append(f"{name}: {len(places):,} features {what}: {shown}{more}")
        if lookup.twins:
            said.append(f"{name}: {len(lookup.twins):,} features have the name of one before them")
        if counts.far:
            said.append(
                f"{name}: {counts.far:,} rows have another m/z than their feature (more than "
                f"{_FAR} apart): is it the table of these spectra?"
            )
        if counts.longer:
            said.append(f"{name}: {counts.longer:,} rows are longer than the header, not joined")
        if counts.conflicts:
            also = f" ({counts.polarities:,} of another polarity)" if counts.polarities else ""
            said.append(
                f"{name}: {counts.conflicts:,} of {counts.annotated:,} annotated rows state "
                f"another ion than the annotation used{also}, see {CONFLICT}; the first: "
                f"{counts.first_conflict}"
            )
        return said


@dataclass
class _Counts:
    """What is said of a table when it is written: numbers of rows, and places of features."""

    rows: int = 0
    annotated: int = 0
    longer: int = 0
    far: int = 0
    conflicts: int = 0
    polarities: int = 0
    first_conflict: str = ""
    joined: set[int] = field(default_factory=set)
    sharing: set[int] = field(default_factory=set)


def stated_ions(text: str) -> list[Adduct]:
    """Ions that a cell of a feature table names; those that are not understood are left out.

    Examples
    --------
    >>> [ion.name for ion in stated_ions("ION=[M+H+H]2+")]
    ['[M+2H]2+']
    >>> [ion.name for ion in stated_ions("M-H2O-H, M-H")]
    ['[M-H-H2O]-', '[M-H]-']
    >>> [ion.name for ion in stated_ions("[M+H]+ 194.08 [M+Na]+ 172.1")]
    ['[M+H]+', '[M+Na]+']
    """
    found = []
    for part in _BRACKETED.findall(text) or _BETWEEN.split(text):
        try:
            found.append(parse_adduct(part))
        except AdductError:  # a name of a compound, or an ion of unknown parts
            continue
    return found


def ion_conflict(stated: str, used: str) -> str:
    """How the ion that a table states differs from the one used; empty where it does not.

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
    if any(_is_same(ion, own) for ion in ions for own in stated_ions(used)) or len(used) == 1:
        return ""
    return f"ion: table {names}, annotation {used}"


def _is_same(one: Adduct, other: Adduct) -> bool:
    return (one.molecules, one.charge) == (other.molecules, other.charge) and (
        abs(one.mass_shift - other.mass_shift) < 1e-4
    )


def join_features(table: Path, answers: Iterable[Answer], out: Path) -> list[str]:
    """Write a feature table again, with annotations in columns behind its own.

    Parameters
    ----------
    table : Path
    answers : iterable of Answer
        Joined by the feature's name, which is the row's id, or by what its spectra call it else.
    out : Path

    Returns
    -------
    list of str
        How many rows have an annotation, what matched nothing, and where ions differ.

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


def _number(cell: str) -> float | None:
    """Number of a cell, with a decimal point or comma; None where it has none."""
    try:
        return float(cell.replace(",", "."))
    except ValueError:
        return None
