"""The model bundle: ranker, channels, confidence, reference spectra and molecules in one folder."""

from mzseek.bundle.bundle import Bundle

__all__ = ["Bundle"]
