"""The channels: one file each, and a line each in `mzseek.evidence.registry`."""
