"""Numbers that are reported: hit rates, fingerprint quality, intervals. Pure functions.

Each returns one value for each query, so that means, intervals and paired comparisons come after.
"""

from mzseek.metrics.definitions import METRICS, Metric, metric
from mzseek.metrics.fingerprint import binarise, bit_accuracy, cosine, soft_tanimoto, tanimoto
from mzseek.metrics.hits import (
    RankCounts,
    expected_rank,
    hit_rate,
    hit_rate_from_counts,
    rank_counts,
)
from mzseek.metrics.intervals import Interval, bootstrap, bootstrap_difference
from mzseek.metrics.mces import mces_at_1

__all__ = [
    "METRICS",
    "Interval",
    "Metric",
    "RankCounts",
    "binarise",
    "bit_accuracy",
    "bootstrap",
    "bootstrap_difference",
    "cosine",
    "expected_rank",
    "hit_rate",
    "hit_rate_from_counts",
    "mces_at_1",
    "metric",
    "rank_counts",
    "soft_tanimoto",
    "tanimoto",
]
