"""Data sets: reading, getting, building, splitting and checking them."""

from mzseek.datasets.candidates import read_candidates
from mzseek.datasets.table import DatasetFiles, find_dataset, read_table

__all__ = [
    "DatasetFiles",
    "find_dataset",
    "read_candidates",
    "read_table",
]
