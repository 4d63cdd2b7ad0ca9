"""Data sets: reading, getting, building, splitting and checking them."""

from mzseek.datasets.files import DatasetFiles, find_dataset, read_candidates, read_table

__all__ = [
    "DatasetFiles",
    "find_dataset",
    "read_candidates",
    "read_table",
]
