"""The cosine of the predicted fingerprint and the candidate's; it has no parameters."""

from mzseek.models.scorers.kind import ScorerKind

SCORER = ScorerKind(
    "fp-cos", "mzseek.models.scorers.fp_cos.network:FpCos", reads_fingerprint=True,
    maps_candidates=False, similarity="cosine",
)  # fmt: skip
