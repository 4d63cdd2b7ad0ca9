"""Tables of features that other programs export with spectra: their rows, and isotope patterns."""

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mzseek.annotation.features import NAMED_BY, Feature
from mzseek.core.errors import InputError, SpectrumError
from mzseek.core.text import pluralize, visible
from mzseek.formulas.isotopes import parse_peaks
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
from mzseek.spectra.records import MS1_PEAKS
from mzseek.spectra.spectrum import clean_peaks
from mzseek.spectra.survey import peaks_text

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHUNK = 1 << 20
_MAX_BEFORE = 20  # lines before the header; MS-DIAL has four or five, Progenesis two
_MAX_LINES = 50  # that a quoted cell may run on over
MAX_DISTANCE = 0.05  # Da: beyond, a row and a feature of one name are not one ion
_XCMS_NUMBER = re.compile(r"FT0*(\d+)")
_MAX_ID = 200  # characters of a text that may be an id
_NO_PATTERN = ("", "null", "na", "nan")
_BETWEEN_PAIRS = re.compile(r"[\s;,|]+")
_PROGENESIS = re.compile(r"\d+\.\d+_\d+\.\d+(?:m/z|n)")


@dataclass(frozen=True)
class TableForm:
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
    isotopes : tuple of str
        Where it states isotope patterns; MZmine has such columns for each file.
    """

    name: str
    id: tuple[str, ...]
    mz: str
    others: tuple[str, ...] = ()
    ion: tuple[str, ...] = ()
    neutral: str = ""
    example: str = ""
    isotopes: tuple[str, ...] = ()


_MZMINE_IONS = ("bestion", "ionidentitiesionidentities", "rowidentity", "rowidentitymainid")
_MZMINE_ISOTOPES = ("isotopes", "isotopepattern")
_METABOSCAPE_IDS = ("featureid", "bucketlabel")
FORMS = (
    TableForm(
        "MZmine", ("rowid",), "rowmz", ion=_MZMINE_IONS, isotopes=_MZMINE_ISOTOPES,
        example="row ID, row m/z",
    ),
    TableForm(
        "MZmine", ("id",), "mz", ("rt",), _MZMINE_IONS, isotopes=_MZMINE_ISOTOPES,
        example="id, mz, rt",
    ),
    TableForm(
        "MS-DIAL", ("alignmentid",), "averagemz", ion=("adducttype", "adductionname"),
        isotopes=("ms1isotopicspectrum", "ms1isotopes"), example="Alignment ID, Average Mz",
    ),
    TableForm(
        "Progenesis QI", ("compound",), "mz", ("charge", "retentiontimemin"), ("adducts",),
        "neutralmassda", "Compound, m/z, Charge, Retention time (min)",
    ),
    TableForm(
        "MetaboScape", _METABOSCAPE_IDS, "pepmass", ("rt",), ("adduct", "adducts", "ion"),
        "pepmass", "FEATURE_ID, RT, PEPMASS",
    ),
    TableForm(
        "MetaboScape", _METABOSCAPE_IDS, "mzmeas", ("rtmin",), ("ions", "adduct"), "mmeas",
        "Bucket label, RT [min], m/z meas.",
    ),
    TableForm(
        "XCMS", ("featureid", "rowid", "feature", "rownames", "featureidx", "name", ""), "mzmed",
        ("rtmed",), ("bestion", "adduct", "adducts"), example="mzmed, rtmed",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A row: the number of its first line, its bytes and line end as they are, and its cells."""

    number: int
    text: bytes
    end: bytes
    cells: list[str]

    def cell(self, index: int | None) -> str:
        """Return a cell without quotes, which R writes in tables of tabs, too; empty for none."""
        if index is None or index >= len(self.cells):
            return ""
        return self.cells[index].strip().strip('"')

    def number_at(self, index: int | None) -> float | None:
        """Return the number of a cell, with a decimal point or comma; None where it has none."""
        try:
            return float(self.cell(index).replace(",", "."))
        except ValueError:
            return None


class FeatureTable:
    """A table of features, as one of the programs of `FORMS` writes it.

    Attributes
    ----------
    delimiter : str
    names : list of str
        Of its columns.
    width : int
        Cells of a row: R writes row names under no header, and rows are then longer by one.
    id, mz : int
        Indices of these columns in a row.
    ion, neutral : int or None
        Likewise, where the table has them.
    isotopes : list of int
        Likewise, of isotope patterns.
    header : int
        Index of the header among the rows.

    Raises
    ------
    InputError
        It is no such table.
    """

    def __init__(self, path: Path) -> None:
        self._source: Source = open_source(path)
        head = require_text(self._source, "expected a feature table as CSV or TSV")
        if head.startswith(_UTF16):
            raise InputError(path, "is in UTF-16, expected UTF-8; save it again")
        for delimiter in DELIMITERS:
            self.delimiter = delimiter
            for index, row in enumerate(self.rows()):
                if self._is_header(row):
                    self.header = index
                    return
                if index >= _MAX_BEFORE:
                    break
        examples: dict[str, list[str]] = {}
        for form in FORMS:
            examples.setdefault(form.name, []).append(form.example)
        *first, last = (f"{name} ({'; or '.join(texts)})" for name, texts in examples.items())
        header = first_line(self._source)
        raise InputError(
            path,
            f"is no table of features: it begins with "
            f"{format_names(header_names(header) if header else [])}; expected "
            f"columns of {', '.join(first)} or {last}",
        )

    def _is_header(self, row: Row) -> bool:
        """Return whether a row is the header; then take the columns from it."""
        plain = [normalise_name(name) for name in row.cells]

        def find(names: Iterable[str]) -> int | None:
            return next((plain.index(name) for name in names if plain.count(name) == 1), None)

        for form in FORMS:
            if any(plain.count(name) != 1 for name in (form.mz, *form.others)):
                continue
            shift, index = 0, find(filter(None, form.id))
            if index is None and "" in form.id and (not plain[0] or self._has_row_names(row)):
                index, shift = 0, 1 if plain[0] else 0
            if index is None:
                continue
            self.form, self.id, self.names = form, index, row.cells
            self.width = len(row.cells) + shift
            self.mz = plain.index(form.mz) + shift
            ion, neutral = find(form.ion), find(filter(None, [form.neutral]))
            self.ion = None if ion is None else ion + shift
            self.neutral = None if neutral is None else neutral + shift
            self.isotopes = [
                column + shift
                for column, name in enumerate(row.cells)
                if normalise_name(name.rpartition(":")[2]) in form.isotopes
            ]
            return True
        return False

    def ids(self, row: Row) -> list[str]:
        """Return what a row calls its feature, as `same_feature` writes it."""
        id_ = row.cell(self.id)
        # XCMS writes FT0017 to tables, 17 to MGF files.
        number = _XCMS_NUMBER.fullmatch(id_)
        return [same_feature(id_), *([number[1]] if number else [])]

    def _has_row_names(self, header: Row) -> bool:
        """Return whether rows have one cell more than the header, as R's ``write.table`` does."""
        rows = (row for row in self.rows() if row.number > header.number and row.text.strip())
        row = next(rows, None)
        return row is not None and len(row.cells) == len(header.cells) + 1

    def rows(self) -> Iterator[Row]:
        """Yield all rows, those before the header and the header included."""
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
            if quotes and whole.count(b'"') % 2 and len(waiting) < _MAX_LINES:
                continue
            yield self._row(first, whole)
            waiting = []
        if waiting:
            yield self._row(first, b"".join(waiting))

    def _row(self, number: int, whole: bytes) -> Row:
        text = whole.rstrip(b"\r\n")
        shown = text.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
        cells = None if self.delimiter == "\t" else split_row(shown, self.delimiter)
        cells = shown.split(self.delimiter) if cells is None else cells
        return Row(number, text, whole[len(text) :], cells)


def _lines(source: Source) -> Iterator[bytes]:
    """Yield lines with their ends, of any length up to a row's."""
    with source.open() as stream:
        rest = b""
        while data := stream.read(_CHUNK):
            *lines, rest = (rest + data).split(b"\n")
            yield from (line + b"\n" for line in lines)
            if len(rest) > MAX_ROW:
                raise InputError(source.name, f"a line is longer than {MAX_ROW:,} bytes")
        if rest:
            yield rest


def same_feature(name: str) -> str:
    """Normalise a feature's name for comparison: whole numbers by value.

    Examples
    --------
    >>> same_feature(" 0017 "), same_feature("17.0"), same_feature("F17")
    ('17', '17', 'F17')
    """
    plain = name.strip()
    whole = plain.removesuffix(".0")
    return str(int(whole)) if whole.isascii() and whole.isdigit() and len(whole) < 19 else plain


def other_ids(feature: Feature) -> list[str]:
    """Return what a feature is called in other fields of its spectra than the one that named it.

    Progenesis QI writes its compounds as ``Name: Unknown (0.47_755.2738n)``, or, where one was
    identified, has the id in ``Comment`` alone.
    """
    ids: dict[str, None] = {}
    for spectrum in feature.spectra:
        fields = (spectrum.metadata.get(field, "") for field in (*NAMED_BY, "comment"))
        for text in (spectrum.identifier, *fields):
            if 0 < len(text) <= _MAX_ID:
                ids[visible(text.strip())] = None
                ids.update(dict.fromkeys(_PROGENESIS.findall(text)))
    ids.pop(feature.name, None)
    return list(ids)


class TablePatterns:
    """Isotope patterns of a table of features, by what its rows call the features.

    Parameters
    ----------
    path : Path

    Raises
    ------
    InputError
        It is no table of features.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.name
        self._peaks: dict[str, str] = {}
        self._used: set[str] = set()  # names of features
        self._numbers = self._unreadable = 0
        self._first_unreadable = ""
        table = FeatureTable(path)
        for index, row in enumerate(table.rows()):
            if index <= table.header:
                continue
            patterns = list(filter(None, (self._read(row, at) for at in table.isotopes)))
            if patterns:  # of several files: the most intense
                strongest = max(patterns, key=lambda text: float(parse_peaks(text)[1].sum()))
                for id_ in table.ids(row):
                    self._peaks.setdefault(id_, strongest)

    def _read(self, row: Row, index: int) -> str:
        """Return the pattern of a cell as readers keep survey scans; empty for none."""
        text = row.cell(index)
        if text.lower() in _NO_PATTERN:
            return ""
        if text.isdecimal():
            self._numbers += 1
            return ""
        peaks = pattern_peaks(text)
        if not peaks:
            self._unreadable += 1
            self._first_unreadable = self._first_unreadable or f"line {row.number}: {text[:40]!r}"
        return peaks

    def add_to(self, feature: Feature) -> Feature:
        """Return a feature with its pattern as the survey scan of its spectra, if these have none.

        The pattern must have a peak at the precursor's m/z.
        """
        if not self._peaks or any(MS1_PEAKS in s.metadata for s in feature.spectra):
            return feature
        for name in dict.fromkeys(map(same_feature, (feature.name, *other_ids(feature)))):
            peaks = self._peaks.get(name)
            if peaks is None:
                continue
            mz = parse_peaks(peaks)[0]
            fitting = [
                bool(np.abs(mz - spectrum.precursor_mz).min() <= MAX_DISTANCE)
                for spectrum in feature.spectra
            ]
            if any(fitting):
                self._used.add(feature.name)
                return replace(
                    feature,
                    spectra=tuple(
                        replace(spectrum, metadata=spectrum.metadata | {MS1_PEAKS: peaks})
                        if is_fitting
                        else spectrum
                        for spectrum, is_fitting in zip(feature.spectra, fitting, strict=True)
                    ),
                )
        return feature

    def lines(self) -> list[str]:
        """Return lines for the end of a run: how many features used a pattern, and what is none."""
        lines = []
        if self._used:
            used = pluralize(len(self._used), "feature", "features")
            lines.append(f"{self._file}: {used} without a survey scan took the isotope pattern")
        if self._numbers and not self._peaks:
            lines.append(
                f"{self._file}: its isotope columns hold numbers of peaks, expected pairs such as "
                "195.0877:1000 196.0907:98; export an MGF file for SIRIUS, which holds the patterns"
            )
        if self._unreadable:
            what = pluralize(
                self._unreadable, "isotope pattern is skipped", "isotope patterns are skipped"
            )
            lines.append(
                f"{self._file}: {what}, the first in {self._first_unreadable}, expected pairs such "
                "as 195.0877:1000 196.0907:98"
            )
        return lines


def pattern_peaks(text: str) -> str:
    """Return an isotope pattern as readers keep survey scans; empty for what is none.

    MS-DIAL writes ``mz:intensity`` with blanks between, or ``mz intensity`` with semicolons. Peaks
    without intensity were not seen.

    Examples
    --------
    >>> pattern_peaks("195.08770:1000 196.09070:98 197.09330:0")
    '195.0877:1000.0 196.0907:98.0'
    >>> pattern_peaks("195.08770 1000;196.09070 98")
    '195.0877:1000.0 196.0907:98.0'
    >>> pattern_peaks("195.0877")
    ''
    """
    pairs = _BETWEEN_PAIRS.split(text) if ":" in text else text.split(";")
    numbers = [re.split(r"[:\s]+", pair.strip()) for pair in pairs if pair.strip()]
    try:
        peaks = np.array(numbers, np.float64)
        if peaks.ndim != 2 or peaks.shape[1] != 2:
            return ""
        mz, intensities = clean_peaks(peaks[:, 0], peaks[:, 1])
    except (ValueError, SpectrumError):
        return ""
    return peaks_text(mz, intensities)
