"""Names that users choose among and several rooms know, where no library has to be loaded."""

from typing import Literal, get_args

FOLDS = ("train", "val", "test")

# What equal scores mean for a hit, and when a candidate is the truth.
Ties = Literal["expected", "optimistic", "pessimistic"]
TIES: tuple[Ties, ...] = get_args(Ties)
IDENTITIES = ("fingerprint", "inchikey")

# What negatives are mined by, and which are kept.
MINED_BY = ("mass", "formula")
MINED = ("hardest", "random")

# Similarities of a predicted fingerprint that candidates can be ranked by.
RANKED_BY = ("cosine", "tanimoto", "soft-tanimoto", "minmax-tanimoto")
