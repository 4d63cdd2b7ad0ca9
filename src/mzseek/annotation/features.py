"""Features: spectra of one ion, under the name that the user knows them by."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from mzseek.spectra import Spectrum
from mzseek.spectra.numbers import leading_number

# Fields that name a feature, the first that a record has; a title is often only its file's name.
NAMED_BY = ("feature_id", "scans", "title", "compound_name")
IDENTIFIER, INDEX, GIVEN = "identifier", "index", "given"
_NOTHING = {"", "0", "-1"}
_MINUTES = re.compile(r"\bmin(?:ute)?s?\b|\bm\b", re.IGNORECASE)


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
        """In seconds, the mean over the spectra that state one; None where none does."""
        stated = [t for s in self.spectra if (t := retention_seconds(s)) is not None]
        return float(np.mean(stated)) if stated else None


def retention_seconds(spectrum: Spectrum) -> float | None:
    """Retention time in seconds; a number without a unit is taken as seconds.

    Examples
    --------
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "a",
    ...                {"retention_time": "2.5 min"})
    >>> retention_seconds(one)
    150.0
    """
    text = spectrum.metadata.get("retention_time", "")
    number = leading_number(text)
    if number is None or not math.isfinite(number) or number < 0:
        return None
    return number * 60 if _MINUTES.search(text) else number


def name_of(spectrum: Spectrum, place: int) -> tuple[str, str]:
    """Name of a spectrum's feature, and the field it was taken from.

    Parameters
    ----------
    spectrum : Spectrum
    place : int
        Of the spectrum among those that were read, from 1: its name where it has no other.

    Examples
    --------
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "x", {"scans": "17"})
    >>> name_of(one, 1)
    ('17', 'scans')
    """
    for field in NAMED_BY:
        text = spectrum.metadata.get(field, "").strip()
        if text not in _NOTHING:
            return text, field
    return (spectrum.identifier, IDENTIFIER) if spectrum.identifier else (str(place), INDEX)
