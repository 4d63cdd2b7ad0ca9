"""Experiments as data: one file each, and the scales they can be run at."""
