"""Similarities of fingerprints: their only home.

`rows` compares matrices row by row, `blocks` all rows with all others, and `formulas` has each
similarity once, over what both count.
"""

from mzseek.similarity.blocks import tanimoto_blocks
from mzseek.similarity.formulas import (
    bit_agreement_of,
    cosine_of,
    f1_of,
    minmax_of,
    tanimoto_of,
)
from mzseek.similarity.rows import (
    SIMILARITIES,
    Overlap,
    checked_rows,
    cosine,
    f1,
    minmax_tanimoto,
    overlap,
    similarity,
    soft_tanimoto,
    tanimoto,
)

__all__ = [
    "SIMILARITIES",
    "Overlap",
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
