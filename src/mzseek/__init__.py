"""mzseek finds the molecule behind a tandem mass spectrum.

The rooms of the package are listed in ARCHITECTURE.md; import what you need from them::

    from mzseek.spectra import read_spectra, bin_spectra
    from mzseek.chem import fingerprints, precursor_mz
"""

__version__ = "0.1.0"
