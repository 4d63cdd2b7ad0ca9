"""Names that users choose among and several rooms know, where no library has to be loaded."""

from typing import Literal, get_args

FOLDS = ("train", "val", "test")

# Data sets that can be downloaded.
PUBLIC_SETS = ("massspecgym",)

# What equal scores mean for a hit, and when a candidate is the truth.
Ties = Literal["expected", "optimistic", "pessimistic"]
TIES: tuple[Ties, ...] = get_args(Ties)
IDENTITIES = ("fingerprint", "inchikey")

# What spectra may have in common that are scored together.
TOGETHER = ("molecule",)

# What a molecule and its candidates are equal in: lists are drawn, and negatives mined, by it.
EQUAL_IN = ("mass", "formula")
# Which of the mined negatives are kept.
MINED = ("hardest", "random")

# Similarities of a predicted fingerprint that candidates can be ranked by.
RANKED_BY = ("cosine", "tanimoto", "soft-tanimoto", "minmax-tanimoto")
