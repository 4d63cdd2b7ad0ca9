"""Features: spectra of one ion, under the name that the user knows them by."""

import re
from dataclasses import dataclass, replace

import numpy as np

from mzseek.spectra import Spectrum
from mzseek.spectra.numbers import parse_time, time_in_seconds, with_time_unit

# Fields that name a feature, the first that a record has. What a record states as its identifier
# comes after the first of them; a title is often only the name of a file.
FEATURE_ID = "feature_id"
NAMED_BY = (FEATURE_ID, "scans", "title", "compound_name")
IDENTIFIER, INDEX, GIVEN = "identifier", "index", "given"
_NOTHING = {"", "0", "-1"}
_NO_ID = {"", "-1"}  # 0 is the first of MS-DIAL's
_LEVEL = re.compile(r"(?:MS)?\W*(\d{1,2})\b.*", re.IGNORECASE)
# What readers call a record that names itself in no way.
_BY_PLACE = re.compile(r"(?:record|line) \d+(?: #\d+)?")
_TIME = "retention_time"


@dataclass(frozen=True, eq=False)
class Feature:
    """Spectra that are judged together.

    Attributes
    ----------
    name : str
        The user's own id.
    named_by : str
        The field that it was taken from.
    spectra : tuple of Spectrum
        At least one.
    where : str
        The file.
    """

    name: str
    named_by: str
    spectra: tuple[Spectrum, ...]
    where: str = ""

    @property
    def precursor_mz(self) -> float:
        """The median over its spectra."""
        return float(np.median([spectrum.precursor_mz for spectrum in self.spectra]))

    @property
    def retention_time(self) -> float | None:
        """In seconds, the mean over the spectra that state one with its unit; None for none."""
        stated = [t for s in self.spectra if (t := retention_seconds(s)) is not None]
        return float(np.mean(stated)) if stated else None


def retention_seconds(spectrum: Spectrum) -> float | None:
    """Retention time in seconds; None where it is not stated, or its unit is not known.

    Readers append the unit where the file's format or the program that wrote it defines it.

    Examples
    --------
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "a",
    ...                {"retention_time": "2.5 min"})
    >>> retention_seconds(one)
    150.0
    """
    return time_in_seconds(spectrum.metadata.get(_TIME, ""))


def lacks_time_unit(spectrum: Spectrum) -> bool:
    """Whether a spectrum states a retention time of which nothing tells the unit."""
    time = parse_time(spectrum.metadata.get(_TIME, ""))
    return time is not None and not time[1]


def with_rt_unit(spectrum: Spectrum, unit: str | None) -> Spectrum:
    """Return the spectrum with a unit for its retention time, if that has none.

    Examples
    --------
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "a",
    ...                {"retention_time": "2.5"})
    >>> with_rt_unit(one, "min").metadata["retention_time"]
    '2.5 min'
    """
    if unit is None or not lacks_time_unit(spectrum):
        return spectrum
    text = with_time_unit(spectrum.metadata[_TIME], unit)
    return replace(spectrum, metadata=spectrum.metadata | {_TIME: text})


def time_notes(feature: Feature) -> list[str]:
    """Notes about retention times that cannot be used."""
    unclear = next((s for s in feature.spectra if lacks_time_unit(s)), None)
    if unclear is None:
        return []
    text = unclear.metadata[_TIME][:40]
    return [f"its retention time {text} has no unit, and is not used: give it with --rt-unit"]


def feature_id(spectrum: Spectrum) -> str:
    """The id that a file gives to a spectrum's feature; empty for none.

    Examples
    --------
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "a", {"feature_id": "-1"})
    >>> feature_id(one)
    ''
    """
    own = spectrum.metadata.get(FEATURE_ID, "").strip()
    return "" if own in _NO_ID else own


def fault_of(spectrum: Spectrum) -> str | None:
    """Why no molecule can be asked for behind a spectrum; None if nothing is in the way.

    A fragment that was broken once more tells its own mass, not the molecule's.

    Examples
    --------
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "a", {"ms_level": "MS3"})
    >>> fault_of(one)
    'is an MS3 spectrum, of the fragment m/z 100.0000, which tells no mass of the molecule; expected MS2'
    """  # noqa: E501
    level = _LEVEL.fullmatch(spectrum.metadata.get("ms_level", "").strip())
    if level is None or int(level[1]) <= 2:
        return None
    return (
        f"is an MS{int(level[1])} spectrum, of the fragment m/z {spectrum.precursor_mz:.4f}, "
        "which tells no mass of the molecule; expected MS2"
    )


def name_of(spectrum: Spectrum, place: int) -> tuple[str, str]:
    """Name of a spectrum's feature, and the field it was taken from.

    Parameters
    ----------
    spectrum : Spectrum
    place : int
        Of the spectrum among those that were read, from 1: its name where it has no other.

    Examples
    --------
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "17", {"scans": "17"})
    >>> name_of(one, 1)
    ('17', 'scans')
    """
    if own_id := feature_id(spectrum):
        return own_id, FEATURE_ID
    named = {
        field: text
        for field in NAMED_BY
        if (text := spectrum.metadata.get(field, "").strip()) not in _NOTHING
    }
    # Readers take a title or a scan for an identifier where a record states none.
    own = spectrum.identifier
    if own and not _BY_PLACE.fullmatch(own) and not any(map(own.startswith, named.values())):
        return own, IDENTIFIER
    for field, text in named.items():
        return text, field
    if spectrum.metadata.get("scans", "").strip() == "0":
        return "0", "scans"  # MS-DIAL counts features from 0; a place would be another's number
    return str(place), INDEX
