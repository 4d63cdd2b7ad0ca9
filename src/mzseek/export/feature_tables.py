"""Feature tables of other programs with annotations joined."""

import codecs
import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from mzseek.annotation.annotation import Annotation
from mzseek.annotation.features import NAMED_BY, Feature
from mzseek.chem.adducts import Adduct, parse_adduct
from mzseek.core.errors import AdductError, InputError, RunError
from mzseek.core.text import visible
from mzseek.export.tables import BEFORE, JOINED, joined_cells
from mzseek.export.writer import Settings, Spool, Writer
from mzseek.io import Source, open_source
from mzseek.io.sources import MAX_ROW
from mzseek.io.text_tables import (
    DELIMITERS,
    first_line,
    format_names,
    header_names,
    normalise_name,
    require_text,
    split_row,
)

_LONGEST = 200  # characters of a text that may be an id
_PROGENESIS = re.compile(r"\d+\.\d+_\d+\.\d+(?:m/z|n)")


def same_feature(name: str) -> str:
    """A feature's name as it is compared: whole numbers by value.

    Examples
    --------
    >>> same_feature(" 0017 "), same_feature("17.0"), same_feature("F17")
    ('17', '17', 'F17')
    """
    plain = name.strip()
    whole = plain.removesuffix(".0")
    return str(int(whole)) if whole.isascii() and whole.isdigit() and len(whole) < 19 else plain


class Kept(NamedTuple):
    """What is kept of an annotation.

    Attributes
    ----------
    name : str
        Of its feature.
    mz : float
        Of the precursor.
    cells : dict of str to str
        What is put beside a row or node, by column.
    ion : str
        The adduct that was used; ``+`` or ``-`` where only the polarity is known, else empty.
    ids : list of str
        What other programs may call the feature, beside its name.
    """

    name: str
    mz: float
    cells: dict[str, str]
    ion: str
    ids: list[str]


def keep(spool: Spool, annotation: Annotation) -> None:
    """Put an annotation on disk, in a line."""
    cells = {key: visible(cell) for key, cell in joined_cells(annotation).items()}
    feature = annotation.feature
    kept = Kept(
        visible(feature.name), feature.precursor_mz, cells, _ion(annotation), other_ids(feature)
    )
    spool.write(json.dumps(kept) + "\n")


def other_ids(feature: Feature) -> list[str]:
    """What a feature is called in other fields of its spectra than the one that named it.

    Progenesis QI writes its compounds as ``Name: Unknown (0.47_755.2738n)``, or, where one was
    identified, has the id in ``Comment`` alone.
    """
    found: dict[str, None] = {}
    for spectrum in feature.spectra:
        fields = (spectrum.metadata.get(field, "") for field in (*NAMED_BY, "comment"))
        for text in (spectrum.identifier, *fields):
            if 0 < len(text) <= _LONGEST:
                found[visible(text.strip())] = None
                found.update(dict.fromkeys(_PROGENESIS.findall(text)))
    found.pop(feature.name, None)
    return list(found)


def _ion(annotation: Annotation) -> str:
    if annotation.best is not None:
        return annotation.best.adduct
    for spectrum in annotation.feature.spectra:
        if spectrum.adduct:
            return spectrum.adduct
        if spectrum.charge or spectrum.metadata.get("ionmode"):
            mode = spectrum.metadata.get("ionmode") or ""
            return "-" if mode == "negative" or (spectrum.charge or 0) < 0 else "+"
    return ""


class Keeping(Writer):
    """A writer that keeps annotations, a line each, and puts them together at the end."""

    def __init__(self, folder: Path, name: str, settings: Settings) -> None:
        super().__init__(folder, name, settings)
        (self._annotations,) = self.spools.values()

    def spool_names(self) -> list[str]:
        """Annotations, a line each."""
        return [f"{self.name}.answers"]

    def write(self, annotation: Annotation) -> None:
        """Keep an annotation."""
        keep(self._annotations, annotation)


class Lookup:
    """Where each annotation stands; of the file only names are held.

    Parameters
    ----------
    path : Path
        That `keep` has written.

    Attributes
    ----------
    places : dict of str to int
        By name, as `same_feature` has it.
    twins : list of int
        Places of annotations whose name another one had before.
    by_id : dict of str to list of int
        By what else the features are called (`other_ids`).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.places: dict[str, int] = {}
        self.twins: list[int] = []
        self.by_id: dict[str, list[int]] = {}
        with path.open("rb") as file:
            place = 0
            for line in file:
                kept = Kept(*json.loads(line))
                if self.places.setdefault(same_feature(kept.name), place) != place:
                    self.twins.append(place)
                for other in dict.fromkeys(map(same_feature, kept.ids)):
                    self.by_id.setdefault(other, []).append(place)
                place += len(line)

    def read(self, place: int) -> Kept:
        """What was kept at a place."""
        with self.path.open("rb") as file:
            file.seek(place)
            return Kept(*json.loads(file.readline()))


_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHUNK = 1 << 20
_MOST_BEFORE = 20  # lines before the header; MS-DIAL has four or five, Progenesis two
_MOST_LINES = 50  # that a quoted cell may run on over


@dataclass(frozen=True)
class Form:
    """How a program writes feature tables: names of columns, as `normalise_name` writes them.

    Attributes
    ----------
    name : str
        Of the program.
    id : tuple of str
        By preference; an empty one is a first column without a name.
    mz : str
    others : tuple of str
        That its tables have as well.
    ion : tuple of str
        Where it states the ion, by preference.
    neutral : str
        Mass of the neutral molecule; MetaboScape has it where others have the m/z.
    example : str
        Of its columns, for messages.
    """

    name: str
    id: tuple[str, ...]
    mz: str
    others: tuple[str, ...] = ()
    ion: tuple[str, ...] = ()
    neutral: str = ""
    example: str = ""


_MZMINE_IONS = ("bestion", "ionidentitiesionidentities", "rowidentity", "rowidentitymainid")
_METABOSCAPE_IDS = ("featureid", "bucketlabel")
FORMS = (
    Form("MZmine", ("rowid",), "rowmz", ion=_MZMINE_IONS, example="row ID, row m/z"),
    Form("MZmine", ("id",), "mz", ("rt",), _MZMINE_IONS, example="id, mz, rt"),
    Form(
        "MS-DIAL", ("alignmentid",), "averagemz", ion=("adducttype", "adductionname"),
        example="Alignment ID, Average Mz",
    ),
    Form(
        "Progenesis QI", ("compound",), "mz", ("charge", "retentiontimemin"), ("adducts",),
        "neutralmassda", "Compound, m/z, Charge, Retention time (min)",
    ),
    Form(
        "MetaboScape", _METABOSCAPE_IDS, "pepmass", ("rt",), ("adduct", "adducts", "ion"),
        "pepmass", "FEATURE_ID, RT, PEPMASS",
    ),
    Form(
        "MetaboScape", _METABOSCAPE_IDS, "mzmeas", ("rtmin",), ("ions", "adduct"), "mmeas",
        "Bucket label, RT [min], m/z meas.",
    ),
    Form(
        "XCMS", ("featureid", "rowid", "feature", "rownames", "featureidx", "name", ""), "mzmed",
        ("rtmed",), ("bestion", "adduct", "adducts"), example="mzmed, rtmed",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A row: its line end apart.

    Attributes
    ----------
    number : int
        Of its first line.
    text, end : bytes
        As they stand in the file.
    cells : list of str
        None for a row that cannot be cut.
    """

    number: int
    text: bytes
    end: bytes
    cells: list[str]


class FeatureTable:
    """A table of features, as one of the programs of `FORMS` writes it.

    Parameters
    ----------
    path : Path

    Attributes
    ----------
    form : Form
    delimiter : str
    names : list of str
        Of its columns.
    width : int
        Cells of a row: R writes row names under no header, and rows are then longer by one.
    id, mz : int
        Places of these columns in a row.
    ion, neutral : int or None
        Likewise, where the table has them.
    before : int
        Rows before the header.

    Raises
    ------
    InputError
        It is no such table.
    """

    def __init__(self, path: Path) -> None:
        self._source: Source = open_source(path)
        head = require_text(self._source, "expected a feature table as CSV or TSV")
        if head.startswith(_WIDE):
            raise InputError(path, "is in UTF-16, expected UTF-8; save it again")
        for delimiter in DELIMITERS:
            self.delimiter = delimiter
            for place, row in enumerate(self.rows()):
                if self._is_header(row):
                    self.before = place
                    return
                if place >= _MOST_BEFORE:
                    break
        examples: dict[str, list[str]] = {}
        for form in FORMS:
            examples.setdefault(form.name, []).append(form.example)
        *first, last = (f"{name} ({'; or '.join(all_)})" for name, all_ in examples.items())
        raise InputError(
            path,
            f"is no table of features: it begins with {format_names(self._beginning())}; expected "
            f"columns of {', '.join(first)} or {last}",
        )

    def _is_header(self, row: Row) -> bool:
        """Whether a row is the header; then takes the columns from it."""
        plain = [normalise_name(name) for name in row.cells]
        for form in FORMS:
            if any(plain.count(name) != 1 for name in (form.mz, *form.others)):
                continue
            shift = 0
            found = [name for name in form.id if name and plain.count(name) == 1]
            if found:
                self.id = plain.index(found[0])
            elif "" in form.id and (not plain[0] or self._has_row_names(row)):
                self.id, shift = 0, 1 if plain[0] else 0
            else:
                continue
            self.form, self.names, self.width = form, row.cells, len(row.cells) + shift
            self.mz = plain.index(form.mz) + shift
            self.ion, self.neutral = (
                next((plain.index(name) + shift for name in names if plain.count(name) == 1), None)
                for names in (form.ion, (form.neutral,) if form.neutral else ())
            )
            return True
        return False

    def _has_row_names(self, header: Row) -> bool:
        """Whether rows have one cell more than the header, as R's ``write.table`` makes them."""
        behind = (row for row in self.rows() if row.number > header.number and row.text.strip())
        row = next(behind, None)
        return row is not None and len(row.cells) == len(header.cells) + 1

    def _beginning(self) -> list[str]:
        first = first_line(self._source)
        return header_names(first) if first else []

    def rows(self) -> Iterator[Row]:
        """All rows, those before the header and the header included."""
        quotes = self.delimiter != "\t"  # in tables of tabs a quotation mark is a prime in a name
        waiting: list[bytes] = []
        first = 1
        for number, line in enumerate(_lines(self._source), 1):
            if not waiting:
                first = number
            waiting.append(line)
            whole = b"".join(waiting)
            if len(whole) > MAX_ROW:
                where = f"{self._source.name}: line {first}"
                raise InputError(where, f"is longer than {MAX_ROW:,} bytes")
            if quotes and whole.count(b'"') % 2 and len(waiting) < _MOST_LINES:
                continue
            yield self._row(first, whole)
            waiting = []
        if waiting:
            yield self._row(first, b"".join(waiting))

    def _row(self, number: int, whole: bytes) -> Row:
        text = whole.rstrip(b"\r\n")
        shown = text.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
        cut = None if self.delimiter == "\t" else split_row(shown, self.delimiter)
        cells = cut if cut is not None else shown.split(self.delimiter)
        return Row(number, text, whole[len(text) :], cells)


def _lines(source: Source) -> Iterator[bytes]:
    """Lines with their ends, of any length up to a row's."""
    with source.open() as stream:
        rest = b""
        while data := stream.read(_CHUNK):
            *lines, rest = (rest + data).split(b"\n")
            yield from (line + b"\n" for line in lines)
            if len(rest) > MAX_ROW:
                raise InputError(source.name, f"a line is longer than {MAX_ROW:,} bytes")
        if rest:
            yield rest


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
        self._annotations.place()
        lookup = Lookup(self._annotations.path)
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


def join_features(table: Path, annotations: Iterable[Annotation], out: Path) -> list[str]:
    """Write a feature table again, with annotations in columns behind its own.

    Parameters
    ----------
    table : Path
    annotations : iterable of Annotation
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
            for annotation in annotations:
                writer.write(annotation)
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
