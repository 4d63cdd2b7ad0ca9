"""Similarities of fingerprints: their only home.

`rows` compares matrices row by row, `blocks` all rows with all others, and `formulas` has each
similarity once, over what both count.
"""

from mzseek.similarity.packed import tanimoto_blocks
from mzseek.similarity.rows import (
    SIMILARITIES,
    bit_agreement_of,
    checked_rows,
    cosine,
    cosine_of,
    f1,
    f1_of,
    minmax_of,
    minmax_tanimoto,
    overlap,
    similarity,
    soft_tanimoto,
    tanimoto,
    tanimoto_of,
)

__all__ = [
    "SIMILARITIES",
    "bit_agreement_of",
    "checked_rows",
    "cosine",
    "cosine_of",
    "f1",
    "f1_of",
    "minmax_of",
    "minmax_tanimoto",
    "overlap",
    "similarity",
    "soft_tanimoto",
    "tanimoto",
    "tanimoto_blocks",
    "tanimoto_of",
]
