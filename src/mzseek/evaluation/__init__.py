"""Runs measured: scored lists, validation, posteriors, decisions and how sure they are."""
