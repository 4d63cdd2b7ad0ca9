"""Similarities of fingerprints: row by row (`rows`), packed (`packed`), with lists (`lists`)."""

from mzseek.similarity.packed import tanimoto_blocks
from mzseek.similarity.rows import (
    bit_agreement_of,
    checked_rows,
    cosine,
    cosine_of,
    f1,
    f1_of,
    minmax_tanimoto,
    overlap,
    soft_tanimoto,
    tanimoto,
    tanimoto_of,
)

__all__ = [
    "bit_agreement_of",
    "checked_rows",
    "cosine",
    "cosine_of",
    "f1",
    "f1_of",
    "minmax_tanimoto",
    "overlap",
    "soft_tanimoto",
    "tanimoto",
    "tanimoto_blocks",
    "tanimoto_of",
]
