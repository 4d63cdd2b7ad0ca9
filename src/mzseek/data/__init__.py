"""Data sets: reading, building, checking and preparing them."""

from mzseek.data.cache import CandidateLists, Prepared
from mzseek.data.candidates import read_candidates
from mzseek.data.dataset import DatasetFiles, find_dataset, read_table
from mzseek.data.prepare import Options, prepare

__all__ = [
    "CandidateLists",
    "DatasetFiles",
    "Options",
    "Prepared",
    "find_dataset",
    "prepare",
    "read_candidates",
    "read_table",
]
