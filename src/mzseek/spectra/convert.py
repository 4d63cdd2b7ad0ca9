"""Convert spectra of other packages (matchms), and write MGF."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mzseek.core.errors import SpectrumError
from mzseek.io import StrPath, atomic_file
from mzseek.io.skipped import Rejects, reporter
from mzseek.spectra.parsing import MAX_MZ, clean_peaks, measurable
from mzseek.spectra.records import SKIPPED_PEAKS, Record, to_spectrum
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


def from_matchms(
    given: Any, where: str = "spectrum", fallback_name: str = "", *, skip_bad_peaks: bool = False
) -> Spectrum:
    """Return a matchms spectrum as a `Spectrum`, by the rules that records of files go through.

    Parameters
    ----------
    given : object
        With ``mz`` and ``intensities`` (its own, or those of ``peaks``) and ``metadata``.
    where : str
        What messages call it.
    fallback_name : str
        Identifier, where the metadata have none.
    skip_bad_peaks : bool
        As `mzseek.spectra.read_spectra` takes it.

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
    return to_spectrum(record, skip_bad_peaks=skip_bad_peaks)


def as_spectra(
    given: Any, rejects: Rejects | None = None, *, skip_bad_peaks: bool = False
) -> Iterator[Spectrum]:
    """Yield one spectrum or several as `Spectrum`, in their order.

    Parameters
    ----------
    given : Spectrum, matchms spectrum, or iterable of them
    rejects : list or callable of (where, reason), optional
        Gets each spectrum that cannot be used. Without it, the first of them raises.
    skip_bad_peaks : bool
        Check objects of mzseek as well, and skip peaks that no instrument can have measured, as
        `mzseek.spectra.read_spectra` does. By default these objects are taken as they are.

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
        if isinstance(spectrum, Spectrum) and not skip_bad_peaks:
            yield spectrum
            continue
        try:
            if isinstance(spectrum, Spectrum):
                yield _checked(spectrum)
            else:
                yield from_matchms(
                    spectrum, where, f"record {number}", skip_bad_peaks=skip_bad_peaks
                )
        except SpectrumError as error:
            if report is None or not is_spectrum(spectrum):
                raise SpectrumError(f"{where}: {error}") from error
            report(where, str(error))


def _checked(spectrum: Spectrum) -> Spectrum:
    """Return a spectrum less the peaks that cannot be; the same object if it is sound."""
    if not 0 < spectrum.precursor_mz <= MAX_MZ:
        raise SpectrumError(
            f"precursor m/z {spectrum.precursor_mz:g} is not between 0 and {MAX_MZ:,.0f}"
        )
    mz, intensities, skipped = spectrum.mz, spectrum.intensities, 0
    if np.shape(mz) == np.shape(intensities):
        kept = measurable(mz, intensities)
        if kept.any() and not kept.all():
            skipped = int(kept.size - kept.sum())
            mz, intensities = np.asarray(mz)[kept], np.asarray(intensities)[kept]
    cleaned = clean_peaks(mz, intensities)
    if np.array_equal(cleaned[0], spectrum.mz):
        return spectrum
    metadata = spectrum.metadata | ({SKIPPED_PEAKS: str(skipped)} if skipped else {})
    return replace(spectrum, mz=cleaned[0], intensities=cleaned[1], metadata=metadata)


def _several(given: Any) -> Iterable[Any]:
    if is_spectrum(given) or not isinstance(given, Iterable):
        return [given]
    return given


def _text(value: Any) -> str:
    """Text of a metadata value; of (m/z, intensity, charge) the first, as MGF's PEPMASS has it."""
    if isinstance(value, list | tuple):
        return next((str(each) for each in value if each is not None), "")
    return "" if value is None else str(value)


_NAMES = {"compound_name": "NAME", "ms_level": "MSLEVEL"}


def write_mgf(path: StrPath, spectra: Iterable[Spectrum]) -> int:
    """Write spectra as MGF; returns how many there were.

    Reading the file back gives the same peaks, precursor, adduct and metadata, but for white space
    and for the few names that MGF cannot hold.
    """
    path = Path(path)
    count = 0
    with atomic_file(path) as partial, partial.open("w", encoding="utf-8") as stream:
        for spectrum in spectra:
            count += 1
            lines = ["BEGIN IONS", f"SPECTRUM_ID={spectrum.identifier}"]
            lines.append(f"PEPMASS={spectrum.precursor_mz!r}")
            if spectrum.charge is not None:
                lines.append(f"CHARGE={abs(spectrum.charge)}{'+' if spectrum.charge > 0 else '-'}")
            if spectrum.adduct is not None:
                lines.append(f"ADDUCT={spectrum.adduct}")
            for name, value in spectrum.metadata.items():
                key = _NAMES.get(name, name.upper())
                key = key if key[:1].isalpha() else f"X_{key}"  # a digit would begin a peak
                lines.append(f"{key.replace('=', '_')}={' '.join(value.split())}")
            for mz, intensity in zip(
                spectrum.mz.tolist(), spectrum.intensities.tolist(), strict=True
            ):
                lines.append(f"{mz!r} {intensity!r}")
            stream.write("\n".join(lines) + "\nEND IONS\n\n")
    return count
