"""Spectra of other Python packages: matchms, and whatever has the same attributes.

Nothing is imported from them. An object is read if it has ``peaks`` (or is itself) with ``mz`` and
``intensities``, and ``metadata`` that a dict can be made of.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mzseek.errors import SpectrumError
from mzseek.rejects import Rejects, reporter
from mzseek.spectra.record import Record, to_spectrum
from mzseek.spectra.spectrum import Spectrum

# matchms keeps the peak count of the file, which is not that of a filtered spectrum.
_OUTDATED = frozenset({"num_peaks", "numpeaks", "num peaks"})


def is_spectrum(given: Any) -> bool:
    """Whether an object is a spectrum: of mzseek, of matchms, or one with the same attributes."""
    if isinstance(given, Spectrum):
        return True
    peaks = getattr(given, "peaks", given)
    return all(hasattr(peaks, name) for name in ("mz", "intensities")) and hasattr(
        given, "metadata"
    )


def from_matchms(given: Any, where: str = "spectrum", fallback_name: str = "") -> Spectrum:
    """Return a matchms spectrum as a `Spectrum`, by the rules that records of files go through.

    Parameters
    ----------
    given : object
        With ``mz`` and ``intensities`` (its own, or those of ``peaks``) and ``metadata``.
    where : str
        What messages call it.
    fallback_name : str
        Identifier, where the metadata have none.

    Raises
    ------
    SpectrumError
        It has no such attributes, no peaks, no precursor m/z, or contradicts itself.
    """
    if not is_spectrum(given):
        raise SpectrumError(
            f"is a {type(given).__name__}, expected a Spectrum or a matchms spectrum"
        )
    peaks = getattr(given, "peaks", given)
    record = Record(where, mz=np.asarray(peaks.mz), intensities=np.asarray(peaks.intensities),
                    fallback_name=fallback_name)  # fmt: skip
    for key, value in dict(given.metadata).items():
        if str(key).lower() not in _OUTDATED:
            record.add(str(key), _text(value))
    return to_spectrum(record)


def as_spectra(given: Any, rejects: Rejects | None = None) -> Iterator[Spectrum]:
    """Yield one spectrum or several as `Spectrum`, in their order.

    Parameters
    ----------
    given : Spectrum, matchms spectrum, or iterable of them
    rejects : list or callable of (where, reason), optional
        Gets each spectrum that cannot be used. Without it, the first of them raises.

    Raises
    ------
    SpectrumError
        An object is no spectrum at all; or a spectrum cannot be used, and there are no `rejects`.

    Examples
    --------
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "a")
    >>> [each.identifier for each in as_spectra([one, one])]
    ['a', 'a']
    """
    report = None if rejects is None else reporter(rejects)
    for number, spectrum in enumerate(_several(given), 1):
        where = f"spectrum {number}"
        if isinstance(spectrum, Spectrum):
            yield spectrum
            continue
        try:
            yield from_matchms(spectrum, where, f"record {number}")
        except SpectrumError as error:
            if report is None or not is_spectrum(spectrum):
                raise SpectrumError(f"{where}: {error}") from error
            report(where, str(error))


def _several(given: Any) -> Iterable[Any]:
    if is_spectrum(given) or not isinstance(given, Iterable):
        return [given]
    return given


def _text(value: Any) -> str:
    """Text of a metadata value; of (m/z, intensity, charge) the first, as MGF's PEPMASS has it."""
    if isinstance(value, list | tuple):
        return next((str(each) for each in value if each is not None), "")
    return "" if value is None else str(value)
