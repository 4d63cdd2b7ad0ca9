"""The prepared folder: sparse arrays on disk, their one writer, their one reader, and batches."""

from mzseek.prepared.reader import CandidateLists, Prepared
from mzseek.prepared.writer import Options, prepare

__all__ = [
    "CandidateLists",
    "Options",
    "Prepared",
    "prepare",
]
