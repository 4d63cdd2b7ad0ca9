"""Formats of spectra, one module each, which split a stream into records and check none."""
