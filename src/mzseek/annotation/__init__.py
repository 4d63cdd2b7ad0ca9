"""Annotation: a file of spectra in, ranked molecules with reasons and honest confidence out."""
