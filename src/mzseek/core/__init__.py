"""Shared basics: errors, registries, ragged arrays, compiled functions, result tables."""
