"""Convert spectra of other packages (matchms), and write MGF."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mzseek.core.errors import SpectrumError
from mzseek.io import StrPath, atomic_file
from mzseek.io.skipped import SkipTarget, reporter
from mzseek.spectra.records import SKIPPED_PEAKS, Record, to_spectrum
from mzseek.spectra.spectrum import MAX_MZ, Spectrum, clean_peaks, is_spectrum, measurable_peaks

# matchms keeps the peak count of the file, which is not that of a filtered spectrum.
_OUTDATED = frozenset({"num_peaks", "numpeaks", "num peaks"})


def from_matchms(
    spectrum: Any, where: str = "spectrum", fallback_name: str = "", *, skip_bad_peaks: bool = False
) -> Spectrum:
    """Convert a matchms spectrum, by the rules that records of files go through.

    Parameters
    ----------
    spectrum : object
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
    if not is_spectrum(spectrum):
        raise SpectrumError(
            f"is a {type(spectrum).__name__}, expected a Spectrum or a matchms spectrum",
            "malformed",
        )
    peaks = getattr(spectrum, "peaks", spectrum)
    mz, intensities = np.asarray(peaks.mz), np.asarray(peaks.intensities)
    record = Record(where, mz=mz, intensities=intensities, fallback_name=fallback_name)
    for key, value in dict(spectrum.metadata).items():
        if isinstance(value, list | tuple):  # (m/z, intensity, charge), as MGF's PEPMASS has it
            value = next((part for part in value if part is not None), None)
        if str(key).lower() not in _OUTDATED and value is not None:
            record.add(str(key), str(value))
    return to_spectrum(record, skip_bad_peaks=skip_bad_peaks)


def as_spectra(
    spectra: Any, rejects: SkipTarget | None = None, *, skip_bad_peaks: bool = False
) -> Iterator[Spectrum]:
    """Yield one spectrum or several as `Spectrum`, in their order.

    Parameters
    ----------
    spectra : Spectrum, matchms spectrum, or iterable of them
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
    >>> spectrum = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "a")
    >>> [spectrum.identifier for spectrum in as_spectra([spectrum, spectrum])]
    ['a', 'a']
    """
    is_single = is_spectrum(spectra) or not isinstance(spectra, Iterable)
    for number, spectrum in enumerate([spectra] if is_single else spectra, 1):
        where = f"spectrum {number}"
        try:
            if not isinstance(spectrum, Spectrum):
                yield from_matchms(
                    spectrum, where, f"record {number}", skip_bad_peaks=skip_bad_peaks
                )
            elif skip_bad_peaks:
                yield _checked(spectrum)
            else:
                yield spectrum
        except SpectrumError as error:
            if rejects is None or not is_spectrum(spectrum):
                raise SpectrumError(f"{where}: {error}") from error
            reporter(rejects)(where, error.reason)


def _checked(spectrum: Spectrum) -> Spectrum:
    """Return a spectrum less the peaks that cannot be; the same object if it is sound."""
    if not 0 < spectrum.precursor_mz <= MAX_MZ:
        raise SpectrumError(
            f"precursor m/z {spectrum.precursor_mz:g} is not between 0 and {MAX_MZ:,.0f}",
            "bad-number",
        )
    mz, intensities, skipped = measurable_peaks(spectrum.mz, spectrum.intensities)
    mz, intensities = clean_peaks(mz, intensities)
    if np.array_equal(mz, spectrum.mz):
        return spectrum
    metadata = spectrum.metadata | ({SKIPPED_PEAKS: str(skipped)} if skipped else {})
    return replace(spectrum, mz=mz, intensities=intensities, metadata=metadata)


_NAMES = {"compound_name": "NAME", "ms_level": "MSLEVEL"}


def write_mgf(path: StrPath, spectra: Iterable[Spectrum]) -> int:
    """Write spectra as MGF, and return how many there were.

    Reading the file back gives the same peaks, precursor, adduct and metadata, but for white space
    and for the few names that MGF cannot hold.
    """
    count = 0
    with atomic_file(Path(path)) as partial, partial.open("w", encoding="utf-8") as stream:
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
            peaks = zip(spectrum.mz.tolist(), spectrum.intensities.tolist(), strict=True)
            lines += [f"{mz!r} {intensity!r}" for mz, intensity in peaks]
            stream.write("\n".join(lines) + "\nEND IONS\n\n")
    return count
