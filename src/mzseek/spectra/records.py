"""Records of files, and one set of rules by which those of all formats become spectra."""

import contextlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mzseek.chem.adducts import Adduct, parse_adduct
from mzseek.core.errors import AdductError, Reason, SpectrumError
from mzseek.core.text import shorten
from mzseek.io.sources import (
    MAX_FIELD_TEXT,
    MAX_FIELDS,
    MAX_KEY,
    MAX_LINE,
    MAX_PEAK_TEXT,
    MAX_PEAKS,
)
from mzseek.spectra.spectrum import MAX_MZ, FloatArray, Spectrum, clean_peaks, measurable_peaks

# Beyond it lies no energy, time or mass, and not much further on what 32 bits can hold.
LARGEST = 1e30

_NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_MAYBE_THOUSANDS = re.compile(r"[+-]?\d{1,3},\d{3}")
# "-1+" is GNPS's: a signed charge with a plus behind it.
_CHARGE = re.compile(r"(?:([+-])(\d{1,3})|(\d{1,3})([+-]?)|(\+{1,4})|(-{1,4}))")
_MINUS_WITH_PLUS = re.compile(r"(-\d{1,3})\+")
_TIME = re.compile(r"([^\s]*?[\d.,])(?:\s*([A-Za-z]+)\b\.?(?:[\s,;(].*)?)?", re.DOTALL)
_DURATION = re.compile(r"P(?:T(?:([\d.]+)H)?(?:([\d.]+)M)?(?:([\d.]+(?:[eE][+-]?\d+)?)S)?)?", re.I)
_MOST_TIME_TEXT = 200
TIME_UNITS = {"s": 1.0, "min": 60.0}
_UNIT_WORDS = {
    word: unit
    for unit, words in (("s", "s sec secs second seconds"), ("min", "m min mins minute minutes"))
    for word in words.split()
}
_POSITIVE_MODE = re.compile(r"pos\w*\b.*|p|\+|1\+|\+1", re.IGNORECASE)
_NEGATIVE_MODE = re.compile(r"neg\w*\b.*|n|-|1-|-1", re.IGNORECASE)

# What files write where they know nothing.
_NOTHING = {"", "n/a", "na", "null", "none", "unknown", "nan", "-", "?"}
_LONGEST_NOTHING = 30  # with blanks around it


def stated_instrument(metadata: Mapping[str, str]) -> str:
    """Return the instrument stated in the metadata of a spectrum, in one line."""
    stated = (metadata.get(key, "").strip() for key in _STATES_INSTRUMENT)
    return ", ".join(filter(None, stated))


def instrument_kind(metadata: Mapping[str, str]) -> str | None:
    """Kind of the instrument that a spectrum states, one of `INSTRUMENTS`; None for others.

    Examples
    --------
    >>> instrument_kind({"instrument_type": "LC-ESI-QTOF"})
    'qtof'
    >>> instrument_kind({"instrument": "Q Exactive Plus Orbitrap"}), instrument_kind({})
    ('orbitrap', None)
    """
    return _kind_of_instrument(stated_instrument(metadata))


@lru_cache(maxsize=4096)
def _kind_of_instrument(text: str) -> str | None:
    kinds = (kind for kind, names in _INSTRUMENT_NAMES.items() if names.search(text))
    return next(kinds, None)


def is_nothing(text: str) -> bool:
    """Whether a field's value means "not known"."""
    return len(text) < _LONGEST_NOTHING and text.strip().lower() in _NOTHING


def parse_number(
    text: str, what: str, *, decimal_comma: bool = False, limit: float | None = None
) -> float:
    """Number with a decimal point or a decimal comma.

    A comma is a decimal comma (``445,12``), unless it could stand between thousands (``1,234``):
    then it is one only where ``decimal_comma`` says that the record writes them so, or where
    thousands would lie beyond ``limit``. What stays open, and what has two separators
    (``1,234.5``), is refused.

    Examples
    --------
    >>> parse_number("445,12", "precursor m/z")
    445.12
    >>> parse_number("445,123", "precursor m/z", limit=20_000)
    445.123
    """
    text = text.strip()
    if _MAYBE_THOUSANDS.fullmatch(text) and not decimal_comma:
        thousands = float(text.replace(",", ""))
        if limit is None or thousands <= limit:
            raise SpectrumError(
                f"{what} {text!r} could be {thousands:g} or a decimal comma", "bad-number"
            )
    if _NUMBER.fullmatch(text):
        return float(text.replace(",", "."))
    if _NOT_FINITE.fullmatch(text):
        return float(text)
    raise SpectrumError(f"{what} {shorten(text)!r} is not a number", "bad-number")


def leading_number(text: str) -> float | None:
    """Number that a text begins with; None where it begins with none, or with a NaN.

    A number past `LARGEST` comes out infinite: no quantity of a spectrum is so large.

    Examples
    --------
    >>> leading_number("35 % (nominal)"), leading_number("30eV"), leading_number("ramped")
    (35.0, 30.0, None)
    >>> leading_number("1e999")
    inf
    """
    words = text.split(maxsplit=1)
    if not words:
        return None
    word = words[0] if _NOT_FINITE.fullmatch(words[0]) else words[0].rstrip("%eVv")
    try:
        value = parse_number(word, "value")
    except SpectrumError:
        return None
    if math.isnan(value):
        return None
    return value if abs(value) <= LARGEST else math.copysign(math.inf, value)


def is_number(text: str) -> bool:
    """Whether a word is a number in one of the usual spellings."""
    return bool(_NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text))


def parse_time(text: str) -> tuple[float, str] | None:
    """Number and unit (``"s"``, ``"min"``, or ``""`` where none is written) of a retention time.

    An ISO duration (``PT1M30S``) is in seconds. None where the text is no time of zero or more, or
    has a unit that is neither minutes nor seconds.

    Examples
    --------
    >>> parse_time("7.3 min"), parse_time("438s"), parse_time("PT1M30S"), parse_time("635.4")
    ((7.3, 'min'), (438.0, 's'), (90.0, 's'), (635.4, ''))
    >>> parse_time("3-5 min"), parse_time("-1"), parse_time("late")
    (None, None, None)
    """
    text = text.strip()[:_MOST_TIME_TEXT]
    if duration := _DURATION.fullmatch(text):
        try:
            hours, minutes, seconds = (float(part or 0) for part in duration.groups())
        except ValueError:  # "1.2.3"
            return None
        return hours * 3600 + minutes * 60 + seconds, "s"
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    unit = _UNIT_WORDS.get((match[2] or "").lower(), None if match[2] else "")
    number = leading_number(match[1])
    if unit is None or number is None or not 0 <= number < math.inf:
        return None
    return number, unit


def time_in_seconds(text: str) -> float | None:
    """Return the seconds of a retention time; None for no time, or one without a unit.

    Examples
    --------
    >>> time_in_seconds("2.5 min"), time_in_seconds("150")
    (150.0, None)
    """
    time = parse_time(text)
    return time[0] * TIME_UNITS[time[1]] if time and time[1] else None


def with_time_unit(text: str, unit: str) -> str:
    """Append a unit to a retention time that is written as a bare number.

    Examples
    --------
    >>> with_time_unit("12.5", "s"), with_time_unit("12.5 min", "s"), with_time_unit("12.5", "")
    ('12.5 s', '12.5 min', '12.5')
    """
    return f"{text} {unit}" if unit and is_number(text) else text


def parse_charge(text: str) -> tuple[int, bool] | None:
    """Parse a charge (``1+``, ``+1``, ``1``, ``2-``, ``--``, ``-1+``) and whether it is signed.

    Returns ``(charge, sign was written)``, or None where the charge is unknown (0). A charge
    without a sign is positive, unless the ion mode or the adduct says otherwise.
    """
    text = text.strip().replace(" ", "")
    if signed := _MINUS_WITH_PLUS.fullmatch(text):
        text = signed[1]
    match = _CHARGE.fullmatch(text)
    if match is None:
        raise SpectrumError(
            f"charge {shorten(text)!r} is not one charge such as 1+, -2 or 1", "bad-charge"
        )
    leading, after, digits, trailing, plus, minus = match.groups()
    if plus or minus:
        return (len(plus) if plus else -len(minus)), True
    sign = leading or trailing
    size = int(after or digits)
    if size == 0:
        return None
    return (-size if sign == "-" else size), bool(sign)


def parse_ion_mode(text: str) -> str | None:
    """Return ``"positive"``, ``"negative"``, or None for another text."""
    modes = (("positive", _POSITIVE_MODE), ("negative", _NEGATIVE_MODE))
    return next((mode for mode, pattern in modes if pattern.fullmatch(text.strip())), None)


_NO_PEAKS = np.empty(0)

# Other programs' names for the fields that mzseek reads. Keys are compared in lower case, with
# blanks, dots and hyphens as underscores.
_SYNONYMS = {
    "identifier": "spectrum_id spectrumid accession db#",
    "title": "spectrum_title",
    "scans": "scan scan_number scannumber",
    "feature_id": "featureid",
    "precursor_mz": "precursormz precursor_m/z precursor_mass parent",
    "parent_mass": "exactmass exact_mass parentmass monoisotopic_mass",
    "adduct": "precursor_type precursortype ion adductionname adduct_ion_name",
    "charge": "precursor_charge precursorcharge",
    "ionmode": "ion_mode polarity",
    "ms_level": "mslevel ms_type spectrum_type",
    "smiles": "computed_smiles canonical_smiles",
    "inchi": "computed_inchi",
    "inchikey": "inchi_key",
    "formula": "molecular_formula molecularformula",
    "compound_name": "name compound compoundname chemical_name",
    "collision_energy": "collisionenergy ce collision",
    "instrument_type": "instrumenttype",
    "retention_time": "rtinseconds rtinminutes retentiontime rt",
    "num_peaks": "numpeaks num_peak",
}
_CANONICAL = {synonym: name for name, synonyms in _SYNONYMS.items() for synonym in synonyms.split()}
# Every name of a field that mzseek reads.
READ_FIELDS = frozenset((*_SYNONYMS, *_CANONICAL, "pepmass"))
# Fields whose name states the unit of a retention time.
_TIME_UNITS = {"rtinseconds": "s", "rtinminutes": "min"}
# What ION= must begin with to be an adduct; other programs put other things there.
_ADDUCT_START = re.compile(r"[\[(]?\s*\d{0,2}M\s*(?:[+\])?-]|H\+|Na\+|NH4\+|$)")
_KEY_MARKS = str.maketrans({" ": "_", ".": "_", "-": "_"})

QTOF, ORBITRAP = "qtof", "orbitrap"
INSTRUMENTS = (ORBITRAP, QTOF)
# Names of instruments; a Xevo TQ is a triple quadrupole.
_INSTRUMENT_NAMES = {
    QTOF: re.compile(
        r"tof\b|tof[ -]?ms|maxis|\bimpact (?:hd|ii)|synapt|xevo(?!.*\btq)|\bx500", re.I
    ),
    ORBITRAP: re.compile(r"orbitrap|exactive|exploris|\b(?:lc-esi-)?(?:q|it)ft\b", re.I),
}
_STATES_INSTRUMENT = ("instrument_type", "instrument", "source_instrument", "instrument_name")

# Metadata: which statements contradict each other about the polarity, and which one was used.
POLARITY_CONFLICT = "polarity_conflict"
MS1_PEAKS = "ms1_peaks"  # metadata: peaks of the survey scan (`mzseek.spectra.survey`)
IS_PAIRED = "ms1_of_ms2"  # field of a survey scan whose peaks tandem spectra have
# Metadata: how many peaks that no instrument can have measured were skipped.
SKIPPED_PEAKS = "skipped_peaks"
# Fields that a spectrum has as attributes, or that only mzseek may state.
_NOT_METADATA = frozenset(
    ("adduct", "charge", "identifier", "precursor_mz", "pepmass", "num_peaks", SKIPPED_PEAKS,
     POLARITY_CONFLICT)
)  # fmt: skip

# Fields that name a spectrum on purpose; the others only happen to (a title is often the
# compound's name, and may repeat).
_WEAK_NAMES = ("title", "feature_id", "scans")

_MUST_AGREE = {"precursor_mz", "pepmass", "adduct", "charge"}
# What a record is, or whose it is. Other names of a field (computed SMILES) may differ from it;
# the same name with two values leaves open which one is meant.
_ONE_ONLY = {
    "identifier": "identifiers",
    "smiles": "SMILES",
    "inchi": "InChI",
    "inchikey": "InChIKeys",
    "formula": "formulas",
    "parent_mass": "parent masses",
}
_PRECURSOR_AGREEMENT = 0.5  # some files state the nominal m/z beside the measured one
_QUANTITIES = ("collision_energy", "retention_time", "parent_mass")
_MAYBE_INFINITE = re.compile(r"[eEiI]|\d{25}")
_MS1 = re.compile(r"(?:MS)?\s*1(?:\.0)?\b.*|MS", re.IGNORECASE)
_EI = re.compile(r"\bEI\b", re.IGNORECASE)
_SIGN_OF_UNKNOWN = re.compile(r".*\](\d{0,2}[+-])")


@dataclass
class Record:
    """Fields and peaks of a record as a reader found them, before any check.

    Attributes
    ----------
    where : str
        File, record number and line, for messages.
    fields : dict
        Canonical lower-case name to text (see `canonical_key`).
    mz, intensities : arrays
        As written.
    problem : str or None
        Why the reader could not take the record apart; it is then skipped.
    fallback_name : str
        Identifier for a record that names itself in no way.
    others : dict
        Further values of fields that were given more than once.
    is_scan : bool
        Whether it is one scan of a raw file, whose name is its own: not a record of a library.
    pending : callable or None
        Decodes the peaks of a survey scan, which are not always needed (`decode`).
    """

    where: str
    fields: dict[str, str] = field(default_factory=dict)
    mz: npt.ArrayLike = field(default_factory=lambda: _NO_PEAKS)
    intensities: npt.ArrayLike = field(default_factory=lambda: _NO_PEAKS)
    problem: str | None = None
    fallback_name: str = ""
    others: dict[str, list[str]] = field(default_factory=dict)
    is_scan: bool = False
    pending: Callable[[], tuple[npt.ArrayLike, npt.ArrayLike]] | None = None
    _keys: dict[str, str] = field(default_factory=dict)
    _count: int = 0
    _size: int = 0

    def add(self, key: str, value: str) -> None:
        """Add a field under its canonical name.

        The first of several values stays; others of what must not be two things (precursor,
        adduct, charge) are kept for the checks. Fields past the bounds of a record are not kept,
        and the record will be skipped.
        """
        value = value.strip()
        if self._count > MAX_FIELDS or not value:
            return
        self._count += 1
        self._size += len(key) + len(value)
        if len(key) > MAX_KEY:
            self.refuse(
                f"has a field whose name is longer than {MAX_KEY:,} characters", "too-large"
            )
            return
        if self._count > MAX_FIELDS:
            self.refuse(f"has more than {MAX_FIELDS:,} fields", "too-large")
            return
        if self._size > MAX_FIELD_TEXT:
            self.refuse(f"has fields of more than {MAX_FIELD_TEXT:,} characters", "too-large")
            return
        name, plain_key = canonical_key(key), key.strip().lower()
        if not name:
            return
        if name == "retention_time":
            value = with_time_unit(value, _TIME_UNITS.get(plain_key, ""))
        elif name == "adduct" and plain_key == "ion":
            name = "adduct" if _ADDUCT_START.match(value) else "ion"
        before = self.fields.get(name, "")
        if is_nothing(before):
            self.fields[name] = value
            if name in _ONE_ONLY:
                self._keys[name] = plain_key
        elif is_nothing(value):
            return
        elif name in _MUST_AGREE:
            self.others.setdefault(name, []).append(value)
        elif self._keys.get(name) == plain_key and value != before:
            reason = f"states two {_ONE_ONLY[name]}, {shorten(before)!r} and {shorten(value)!r}"
            self.refuse(reason, "contradiction")

    def decode(self) -> None:
        """Decode peaks that were left packed; none where they cannot be decoded."""
        if self.pending is not None:
            with contextlib.suppress(SpectrumError, ValueError, OverflowError):
                self.mz, self.intensities = self.pending()
            self.pending = None

    def refuse(self, reason: str, code: str) -> None:
        """Note why the record must be skipped, unless there is a reason already."""
        self.problem = self.problem or Reason(reason, code)

    def refuse_line(self, number: int) -> None:
        """Refuse the record for a `LongLine`."""
        self.refuse(f"line {number} is longer than {MAX_LINE:,} bytes", "too-large")

    def refuse_peaks(self, count: int) -> None:
        """Refuse the record for more peaks than `MAX_PEAKS`."""
        self.problem = None
        self.refuse(f"has {count:,} peaks, expected at most {MAX_PEAKS:,}", "too-large")

    def values(self, name: str) -> list[str]:
        """Return all values that a field was given, those that mean nothing left out."""
        if name not in self.fields:
            return []
        values = [self.fields[name], *self.others.get(name, [])]
        return [value for value in values if not is_nothing(value)]


# Nearly every record: two plain numbers a line. Possessive, so that a long text that is otherwise
# fails at once.
_PLAIN = re.compile(r"(?:[ \t]*+[\d.eE+-]++[ \t]++[\d.eE+-]++[ \t]*+\n)*+")


def parse_peak_lines(lines: Sequence[str], numbers: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Parse m/z and intensity of lines with one peak each; further columns are ignored.

    Columns are divided by white space or semicolons, or by a comma where both numbers have
    decimal points (``100.1,200.5``). ``numbers`` are the lines' numbers in the file, for messages.
    """
    text = "".join(lines)
    if _PLAIN.fullmatch(text):
        try:
            values = np.array([float(number) for number in text.split()])
        except ValueError:  # "1-2" and the like: below, with a reason
            pass
        else:
            return values[0::2], values[1::2]
    decimal_comma = "." not in text and any(
        _has_decimal_comma(word, MAX_MZ if column == 0 else math.inf)
        for line in lines
        for column, word in enumerate(line.replace(";", " ").split())
    )
    pairs = [
        _parse_peak(number, line, decimal_comma)
        for number, line in zip(numbers, lines, strict=True)
        if line.strip()
    ]
    values = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return values[:, 0].copy(), values[:, 1].copy()


def _has_decimal_comma(text: str, limit: float) -> bool:
    """Whether a number's comma can only be a decimal one: thousands would lie beyond ``limit``."""
    if "," not in text or not _NUMBER.fullmatch(text):
        return False
    return not _MAYBE_THOUSANDS.fullmatch(text) or float(text.replace(",", "")) > limit


def _parse_peak(number: int, line: str, decimal_comma: bool) -> tuple[float, float]:
    columns = line.replace(";", " ").split()
    if len(columns) == 1 and columns[0].count(",") == 1 and "." in columns[0]:
        columns = columns[0].split(",")
    where = f"line {number}:"
    if len(columns) < 2:
        raise SpectrumError(
            f"{where} {shorten(line)!r} is no peak, expected m/z and intensity", "bad-peak"
        )
    if len(columns) >= 4 and len(columns) % 2 == 0 and all(is_number(word) for word in columns):
        raise SpectrumError(
            f"{where} {shorten(line)!r}: one peak with more columns, or several?", "bad-peak"
        )
    mz = parse_number(columns[0], f"{where} m/z", decimal_comma=decimal_comma, limit=MAX_MZ)
    return mz, parse_number(columns[1], f"{where} intensity", decimal_comma=decimal_comma)


class PeakBlock:
    """Collects numbered peak lines and gives them to a record.

    Past `MAX_PEAKS` lines, or `MAX_PEAK_TEXT` characters, they are only counted: the record is
    refused anyway, and a file of ten million peaks must not fill the memory.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._numbers: list[int] = []
        self._count = 0
        self._size = 0

    def __len__(self) -> int:
        return self._count

    def add(self, number: int, line: str) -> None:
        """Add a line."""
        self._count += 1
        self._size += len(line)
        if self._count <= MAX_PEAKS and self._size <= MAX_PEAK_TEXT:
            self._lines.append(line if line.endswith("\n") else line + "\n")
            self._numbers.append(number)

    def fill(self, record: Record) -> None:
        """Parse the lines into the record, or note why that failed."""
        if self._count > MAX_PEAKS:
            record.refuse_peaks(self._count)
        elif self._size > MAX_PEAK_TEXT:
            record.problem = None
            record.refuse(f"has peak lines of more than {MAX_PEAK_TEXT:,} characters", "too-large")
        else:
            try:
                record.mz, record.intensities = parse_peak_lines(self._lines, self._numbers)
            except SpectrumError as error:
                record.problem = record.problem or error.reason


class UniqueNames:
    """Identifiers in use; titles and scan numbers repeat in good files, and are then numbered.

    Keeps hashes: a few bytes a name, whatever its length.

    Examples
    --------
    >>> names = UniqueNames()
    >>> [names.take(name) for name in ("a", "a", "a #2", "a")]
    ['a', 'a #2', 'a #2 #2', 'a #3']
    """

    def __init__(self) -> None:
        self._last: dict[int, int] = {}

    def __contains__(self, name: str) -> bool:
        return hash(name) in self._last

    def take(self, name: str) -> str:
        """Return the name, or the first of ``name #2``, ``name #3`` … that is free."""
        unique = name
        number = self._last.get(hash(name), 1)
        while unique in self:
            number += 1
            unique = f"{name} #{number}"
        self._last[hash(name)] = number
        self._last.setdefault(hash(unique), 1)
        return unique


def canonical_key(key: str) -> str:
    """Return the name under which mzseek keeps a field; empty for a key that is too long.

    Examples
    --------
    >>> canonical_key("PrecursorMZ"), canonical_key("Ion Mode"), canonical_key("My-Field")
    ('precursor_mz', 'ionmode', 'my_field')
    """
    return _canonical_key(key) if len(key) <= MAX_KEY else ""


@lru_cache(maxsize=4096)
def _canonical_key(key: str) -> str:
    key = key.strip().lower().translate(_KEY_MARKS)
    return _CANONICAL.get(key, key)


def to_spectrum(
    record: Record, intensity_floor: float = 0.0, *, skip_bad_peaks: bool = False
) -> Spectrum:
    """Check a record and turn it into a spectrum.

    Parameters
    ----------
    record : Record
    intensity_floor : float
        Peaks below this fraction of the largest are left out.
    skip_bad_peaks : bool
        Skip peaks that no instrument can have measured, and count them in the metadata
        (`SKIPPED_PEAKS`), if the record has others. By default such a record is refused.

    Raises
    ------
    SpectrumError
        With the reason why the record must be skipped.
    """
    if record.problem is not None:
        raise SpectrumError(record.problem)
    fields = record.fields
    if is_ms1(record):
        if _EI.search(fields.get("instrument_type", "")):
            raise SpectrumError(
                "is an EI spectrum, in which no ion was selected, expected MS/MS", "ei"
            )
        if IS_PAIRED in fields:
            raise SpectrumError(
                "is an MS1 spectrum: its isotope pattern was kept with its MS2 spectra", "ms1"
            )
        raise SpectrumError("is an MS1 spectrum, expected MS2 or higher", "ms1")
    stated, count = fields.get("num_peaks", "").strip(), str(np.size(record.mz))
    if stated.isdecimal() and (stated.lstrip("0") or "0") != count:
        raise SpectrumError(f"says it has {shorten(stated)} peaks, but has {count}", "peak-count")
    given_mz, given_intensities, skipped = record.mz, record.intensities, 0
    if skip_bad_peaks:
        given_mz, given_intensities, skipped = measurable_peaks(given_mz, given_intensities)
    mz, intensities = clean_peaks(given_mz, given_intensities, intensity_floor)
    for name in _QUANTITIES:  # infinite ones are refused, as infinite peaks are
        text = fields.get(name, "")
        value = leading_number(text) if _MAYBE_INFINITE.search(text) else None
        if value is not None and math.isinf(value):
            what = name.replace("_", " ")
            raise SpectrumError(f"{what} {shorten(text)!r} is not a finite number", "bad-number")
    mode = parse_ion_mode(fields.get("ionmode", "") or fields.get("ionization_mode", ""))
    adduct = _adduct(record, mode)
    charge, conflict = _charge(record, adduct, mode)
    precursor_mz = _precursor_mz(record, adduct)
    metadata = {
        name: value
        for name, value in fields.items()
        if name not in _NOT_METADATA and not is_nothing(value)
    }
    if adduct is None and not is_nothing(fields.get("adduct", "")):
        metadata["adduct_as_given"] = fields["adduct"]
    if mode is not None:
        metadata["ionmode"] = mode
    if conflict:
        metadata[POLARITY_CONFLICT] = conflict
        metadata["ionmode"] = "negative" if charge is not None and charge < 0 else "positive"
    if skipped:
        metadata[SKIPPED_PEAKS] = str(skipped)
    # How often ions were selected, one of the other: "m1/m2" is twice.
    selections = [len(text.split()[0].split("/")) for text in record.values("precursor_mz")]
    if "ms_level" not in metadata and max(selections, default=1) > 1:
        metadata["ms_level"] = str(max(selections) + 1)
    usual = adduct.name if adduct else None
    identifier = identifier_of(record)[0]
    return Spectrum(mz, intensities, precursor_mz, usual, charge, identifier, metadata)


def is_ms1(record: Record) -> bool:
    """Return whether a record is of a survey scan."""
    return _MS1.fullmatch(record.fields.get("ms_level", "").strip()) is not None


def identifier_of(record: Record) -> tuple[str, bool]:
    """Return the identifier, and whether the record states it as one (then it must be unique)."""
    fields = record.fields
    if "identifier" in fields and not is_nothing(fields["identifier"]):
        return fields["identifier"], True
    for name in _WEAK_NAMES:
        if name in fields and not is_nothing(fields[name]) and fields[name] not in {"-1", "0"}:
            return fields[name], False
    return record.fallback_name, False


def _adduct(record: Record, mode: str | None) -> Adduct | None:
    adducts: dict[str, Adduct] = {}
    for text in record.values("adduct"):
        if "?" in text or "/" in text:
            # "[M+?]+" (SIRIUS) knows the charge only; "[M+CH3COO]-/[M-CH3]-" (MassBank) leaves
            # open which of two it is. Neither is an error, and neither is an adduct.
            continue
        try:
            adduct = parse_adduct(text)
        except AdductError as error:
            try:  # "M" alone has no charge but for the ion mode
                adduct = parse_adduct(text, mode)
            except AdductError:
                raise SpectrumError(f"adduct {error}", "bad-adduct") from error
        adducts[adduct.name] = adduct
    if len(adducts) > 1:
        raise SpectrumError(f"states two adducts, {' and '.join(adducts)}", "contradiction")
    return next(iter(adducts.values()), None)


def _charge(record: Record, adduct: Adduct | None, mode: str | None) -> tuple[int | None, str]:
    """Return the signed charge (None if not stated), and the contradiction that was resolved.

    All sizes must agree. The sign is that of the ion where one is stated, since programs write
    ``CHARGE=1+`` and an ion mode by default; then that of the ion mode, if only a plus is against
    it; then that of the charge.
    """
    stated = [(f"charge {text}", *parsed) for text in record.values("charge")
              if (parsed := parse_charge(text))]  # fmt: skip
    ion = _stated_ion(record, adduct)
    sizes = [*ion, *((what, charge) for what, charge, _ in stated)]
    if not sizes:
        return None, ""
    for what, charge in sizes[1:]:
        if abs(charge) != abs(sizes[0][1]):
            raise SpectrumError(f"{what} contradicts {sizes[0][0]}", "contradiction")
    signs = [(what, charge > 0) for what, charge in ion[:1]]
    signs += [(f"{mode} ion mode", mode == "positive")] if mode is not None else []
    signs += [(what, charge > 0) for what, charge, is_signed in stated if is_signed]
    if not signs:
        return abs(sizes[0][1]), ""
    winner, is_positive = signs[0]
    against = [(what, positive) for what, positive in signs[1:] if positive != is_positive]
    if against and not ion and (mode is None or is_positive):
        raise SpectrumError(f"{against[0][0]} contradicts {winner}", "contradiction")
    size = abs(sizes[0][1])
    used = "adduct" if ion else "ion mode"
    conflict = f"{against[0][0]} beside {winner}: the {used} was used" if against else ""
    return size if is_positive else -size, conflict


def _stated_ion(record: Record, adduct: Adduct | None) -> list[tuple[str, int]]:
    """Return the ions of the adduct fields with their charges, all that ``[M+?]+`` states."""
    if adduct is not None:
        return [(f"adduct {adduct.name}", adduct.charge)]
    ions = []
    for text in record.values("adduct"):
        if "?" in text and (tail := _SIGN_OF_UNKNOWN.fullmatch(text)):
            unknown = parse_charge(tail[1])
            ions += [(f"adduct {shorten(text)}", unknown[0])] if unknown else []
    if any((charge > 0) != (ions[0][1] > 0) for _, charge in ions):
        raise SpectrumError(
            f"states two adducts, {' and '.join(what for what, _ in ions)}", "contradiction"
        )
    return ions


def _precursor_mz(record: Record, adduct: Adduct | None) -> float:
    values: list[float] = []
    for name, what in (("precursor_mz", "precursor m/z"), ("pepmass", "PEPMASS")):
        for text in record.values(name):
            # "mz intensity charge" (Mascot); "m1/m2" (MS3: the last is what was fragmented)
            value = parse_number(text.split()[0].rpartition("/")[2], what, limit=MAX_MZ)
            if value == 0:
                continue
            if not 0 < value <= MAX_MZ:
                raise SpectrumError(
                    f"{what} {value:g} is not between 0 and {MAX_MZ:,.0f}", "bad-number"
                )
            values.append(value)
    if values:
        if max(values) - min(values) > _PRECURSOR_AGREEMENT:
            raise SpectrumError(
                f"states two precursor m/z, {min(values):g} and {max(values):g}", "contradiction"
            )
        return values[0]
    fields = record.fields
    mass_text = fields.get("parent_mass", "")
    if adduct is not None and not is_nothing(mass_text):
        mass = parse_number(mass_text, "parent mass", limit=MAX_MZ)
        if 0 < mass <= MAX_MZ:
            try:
                return adduct.precursor_mz(mass)
            except AdductError as error:
                raise SpectrumError(error.reason) from error
    stated = ", ".join(
        f"{n} {shorten(fields[n])}" for n in ("parent_mass", "adduct") if n in fields
    )
    raise SpectrumError(
        "has no precursor m/z, and no parent mass with an adduct to derive it from"
        + (f" (only {stated})" if stated else ""),
        "no-precursor",
    )
