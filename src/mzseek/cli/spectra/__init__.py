"""Spectra on a terminal."""
