"""Spectra: reading what users have, cleaning it, and binning it to sparse rows."""

from mzseek.spectra.binning import BINS, bin_peaks, bin_spectra
from mzseek.spectra.formats.mgf import write_mgf
from mzseek.spectra.read import as_spectra, known_formats, read_spectra
from mzseek.spectra.spectrum import Spectrum, clean_peaks

__all__ = [
    "BINS",
    "Spectrum",
    "as_spectra",
    "bin_peaks",
    "bin_spectra",
    "clean_peaks",
    "known_formats",
    "read_spectra",
    "write_mgf",
]
