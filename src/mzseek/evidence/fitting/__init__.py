"""Fitting: cross-fitted features of channels, the ranker over them, and the run that they make."""
