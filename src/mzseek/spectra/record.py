"""From what a record says to a spectrum: one set of rules for all formats."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mzseek.adducts import Adduct, parse_adduct
from mzseek.errors import AdductError, SpectrumError
from mzseek.spectra.numbers import (
    is_nothing,
    parse_charge,
    parse_ion_mode,
    parse_number,
    shorten,
)
from mzseek.spectra.peaks import MAX_MZ, clean_peaks
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
    "adduct": "precursor_type precursortype ion_type ionization ion",
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
    "retention_time": "rtinseconds retentiontime rt",
    "num_peaks": "numpeaks num_peak",
}
_CANONICAL = {synonym: name for name, synonyms in _SYNONYMS.items() for synonym in synonyms.split()}
_KEY_MARKS = str.maketrans({" ": "_", ".": "_", "-": "_"})

# Fields that name a spectrum on purpose; the others only happen to (a title is often the
# compound's name, and may repeat).
_WEAK_NAMES = ("title", "feature_id", "scans")


@dataclass
class Record:
    """What a reader found between two record borders, before any judgement.

    Attributes
    ----------
    where : str
        File, record number and line, for messages.
    fields : dict
        Canonical lower-case name to text (see `canonical_key`).
    mz, intensities : arrays
        As written.
    fault : str or None
        Why the reader could not take the record apart; it is then set aside.
    fallback_name : str
        Identifier for a record that names itself in no way.
    """

    where: str
    fields: dict[str, str] = field(default_factory=dict)
    mz: npt.ArrayLike = field(default_factory=lambda: _NO_PEAKS)
    intensities: npt.ArrayLike = field(default_factory=lambda: _NO_PEAKS)
    fault: str | None = None
    fallback_name: str = ""

    def add(self, key: str, value: str) -> None:
        """Note a field under its canonical name; the first of several values stays."""
        value = value.strip()
        name = canonical_key(key)
        if value and (name not in self.fields or is_nothing(self.fields[name])):
            self.fields[name] = value


@lru_cache(maxsize=4096)
def canonical_key(key: str) -> str:
    """Name under which mzseek keeps a field.

    Examples
    --------
    >>> canonical_key("PrecursorMZ"), canonical_key("Ion Mode"), canonical_key("My-Field")
    ('precursor_mz', 'ionmode', 'my_field')
    """
    key = key.strip().lower().translate(_KEY_MARKS)
    return _CANONICAL.get(key, key)


def to_spectrum(record: Record, intensity_floor: float = 0.0) -> Spectrum:
    """Judge a record and turn it into a spectrum.

    Raises
    ------
    SpectrumError
        With the reason why the record must be set aside.
    """
    if record.fault is not None:
        raise SpectrumError(record.fault)
    fields = record.fields
    _check_level(fields)
    _check_peak_count(record)
    mz, intensities = clean_peaks(record.mz, record.intensities, intensity_floor)
    mode = parse_ion_mode(fields.get("ionmode", ""))
    adduct = _adduct(fields, mode)
    charge = _charge(fields, adduct, mode)
    precursor_mz = _precursor_mz(fields, adduct)
    metadata = {
        name: value
        for name, value in fields.items()
        if name not in {"adduct", "charge", "identifier", "precursor_mz", "pepmass", "num_peaks"}
        and not is_nothing(value)
    }
    if adduct is None and not is_nothing(fields.get("adduct", "")):
        metadata["adduct_as_given"] = fields["adduct"]
    if mode is not None:
        metadata["ionmode"] = mode
    return Spectrum(
        mz=mz,
        intensities=intensities,
        precursor_mz=precursor_mz,
        adduct=adduct.name if adduct else None,
        charge=charge,
        identifier=identifier_of(record)[0],
        metadata=metadata,
    )


def identifier_of(record: Record) -> tuple[str, bool]:
    """Identifier, and whether the record states it as one (then it must be unique)."""
    stated = record.fields.get("identifier", "")
    if not is_nothing(stated):
        return stated, True
    for name in _WEAK_NAMES:
        value = record.fields.get(name, "")
        if not is_nothing(value) and value not in {"-1", "0"}:
            return value, False
    return record.fallback_name, False


def _check_level(fields: Mapping[str, str]) -> None:
    if fields.get("ms_level", "").strip().upper() in {"MS", "MS1", "1"}:
        raise SpectrumError("is an MS1 spectrum, expected MS2 or higher")


def _check_peak_count(record: Record) -> None:
    stated = record.fields.get("num_peaks", "")
    found = np.size(record.mz)
    if stated.isdigit() and int(stated) != found:
        raise SpectrumError(f"says it has {stated} peaks, but has {found}")


def _adduct(fields: Mapping[str, str], mode: str | None) -> Adduct | None:
    text = fields.get("adduct", "")
    if is_nothing(text) or "?" in text or "/" in text:
        # "[M+?]+" (SIRIUS) knows the charge only; "[M+CH3COO]-/[M-CH3]-" (MassBank) leaves open
        # which of two it is. Neither is an error, and neither is an adduct.
        return None
    try:
        adduct = parse_adduct(text, None)
    except AdductError as error:
        if mode is None:
            raise SpectrumError(f"adduct {error}") from error
        try:
            adduct = parse_adduct(text, mode)  # "M" alone has no charge but for the ion mode
        except AdductError:
            raise SpectrumError(f"adduct {error}") from error
    if mode is not None and (adduct.charge > 0) != (mode == "positive"):
        raise SpectrumError(f"adduct {adduct.name} contradicts {mode} ion mode")
    return adduct


def _charge(fields: Mapping[str, str], adduct: Adduct | None, mode: str | None) -> int | None:
    text = fields.get("charge", "")
    stated = None if is_nothing(text) else parse_charge(text)
    if adduct is not None:
        if stated is not None:
            charge, signed = stated
            wrong_sign = signed and (charge > 0) != (adduct.charge > 0)
            if abs(charge) != abs(adduct.charge) or wrong_sign:
                raise SpectrumError(f"charge {text} contradicts adduct {adduct.name}")
        return adduct.charge
    if stated is None:
        # The sign and size that an otherwise unknown adduct such as "[M+?]+" still states.
        tail = fields.get("adduct", "").rpartition("]")[2]
        return parse_charge(tail)[0] if tail in {"+", "-"} else None  # type: ignore[index]
    charge, signed = stated
    if mode is not None and signed and (charge > 0) != (mode == "positive"):
        raise SpectrumError(f"charge {text} contradicts {mode} ion mode")
    return -abs(charge) if mode == "negative" else charge


def _precursor_mz(fields: Mapping[str, str], adduct: Adduct | None) -> float:
    for name, what in (("precursor_mz", "precursor m/z"), ("pepmass", "PEPMASS")):
        text = fields.get(name, "").replace("\t", " ")
        if is_nothing(text):
            continue
        # "mz intensity charge" (Mascot); "m1/m2" (MS3: the last one is what was fragmented)
        value = parse_number(text.split()[0].rpartition("/")[2], what)
        if value == 0:
            continue
        if not 0 < value <= MAX_MZ:
            raise SpectrumError(f"{what} {value:g} is not between 0 and {MAX_MZ:,.0f}")
        return value
    mass_text = fields.get("parent_mass", "")
    if adduct is not None and not is_nothing(mass_text):
        mass = parse_number(mass_text, "parent mass")
        if 0 < mass <= MAX_MZ:
            try:
                return adduct.precursor_mz(mass)
            except AdductError as error:
                raise SpectrumError(str(error)) from error
    known = ", ".join(f"{n} {shorten(fields[n])}" for n in ("parent_mass", "adduct") if n in fields)
    raise SpectrumError(
        "has no precursor m/z, and no parent mass with an adduct to derive it from"
        + (f" (only {known})" if known else "")
    )
