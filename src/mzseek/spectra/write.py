"""Writing spectra, for other programs and for `read_spectra`."""

from collections.abc import Iterable
from pathlib import Path

from mzseek.files import StrPath, atomic_file
from mzseek.spectra.spectrum import Spectrum

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
