"""The prepared folder: sparse arrays on disk, their one writer, their one reader, and batches."""

from mzseek.prepared.reader import CandidateLists, Prepared
from mzseek.prepared.writer import PrepareOptions, prepare

__all__ = [
    "CandidateLists",
    "PrepareOptions",
    "Prepared",
    "prepare",
]
