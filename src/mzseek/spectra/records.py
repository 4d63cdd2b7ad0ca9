"""Records of files, and one set of rules by which those of all formats become spectra."""

import math
import re
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mzseek.chem.adducts import Adduct, parse_adduct
from mzseek.core.errors import AdductError, Reason, SpectrumError
from mzseek.io.sources import (
    MAX_FIELD_TEXT,
    MAX_FIELDS,
    MAX_KEY,
    MAX_LINE,
    MAX_PEAK_TEXT,
    MAX_PEAKS,
)
from mzseek.spectra.parsing import (
    MAX_MZ,
    clean_peaks,
    is_nothing,
    leading_number,
    measurable_peaks,
    parse_charge,
    parse_ion_mode,
    parse_number,
    parse_peak_lines,
    shorten,
    with_time_unit,
)
from mzseek.spectra.spectrum import Spectrum

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

# Metadata: which statements contradict each other about the polarity, and which one was used.
POLARITY_CONFLICT = "polarity_conflict"
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
    """What a reader found between two record borders, before any check.

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
    """

    where: str
    fields: dict[str, str] = field(default_factory=dict)
    mz: npt.ArrayLike = field(default_factory=lambda: _NO_PEAKS)
    intensities: npt.ArrayLike = field(default_factory=lambda: _NO_PEAKS)
    problem: str | None = None
    fallback_name: str = ""
    others: dict[str, list[str]] = field(default_factory=dict)
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
        reason = ""
        if len(key) > MAX_KEY:
            reason = f"has a field whose name is longer than {MAX_KEY:,} characters"
        elif self._count > MAX_FIELDS:
            reason = f"has more than {MAX_FIELDS:,} fields"
        elif self._size > MAX_FIELD_TEXT:
            reason = f"has fields of more than {MAX_FIELD_TEXT:,} characters"
        name, plain_key = canonical_key(key), key.strip().lower()
        if reason or not name:
            self.problem = self.problem or (Reason(reason, "too-large") if reason else None)
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
            self.problem = self.problem or Reason(reason, "contradiction")

    def values(self, name: str) -> list[str]:
        """Return all values that a field was given, those that mean nothing left out."""
        if name not in self.fields:
            return []
        values = [self.fields[name], *self.others.get(name, [])]
        return [value for value in values if not is_nothing(value)]


def long_line(number: int) -> Reason:
    """Return why a record with a `LongLine` is skipped."""
    return Reason(f"line {number} is longer than {MAX_LINE:,} bytes", "too-large")


def too_many_peaks(count: int) -> Reason:
    """Return why a record with more than `MAX_PEAKS` peaks is skipped."""
    return Reason(f"has {count:,} peaks, expected at most {MAX_PEAKS:,}", "too-large")


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
        """Take one line."""
        self._count += 1
        self._size += len(line)
        if self._count <= MAX_PEAKS and self._size <= MAX_PEAK_TEXT:
            self._lines.append(line if line.endswith("\n") else line + "\n")
            self._numbers.append(number)

    def fill(self, record: Record) -> None:
        """Parse the lines into the record, or note why that failed."""
        if self._count > MAX_PEAKS:
            record.problem = too_many_peaks(self._count)
        elif self._size > MAX_PEAK_TEXT:
            record.problem = Reason(
                f"has peak lines of more than {MAX_PEAK_TEXT:,} characters", "too-large"
            )
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
    if _MS1.fullmatch(fields.get("ms_level", "").strip()):
        if _EI.search(fields.get("instrument_type", "")):
            raise SpectrumError(
                "is an EI spectrum, in which no ion was selected, expected MS/MS", "ei"
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
    """Signed charge (None where none is stated), and the contradiction that was decided, if any.

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
    """Ions that the adduct fields state, with their charges; ``[M+?]+`` states only that."""
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
