"""All that `mzseek.decision` offers."""

from mzseek.decision.bands import (
    Band,
    Bands,
    bands_of_lists,
    similarity_band,
)
from mzseek.decision.bounds import (
    Bounds,
    agreement_guaranteed,
    bound_hit_under_similarity,
    bound_similarity_under_hit,
    regret_bounds,
    regrets_from_similarities,
    tight_similarities,
)
from mzseek.decision.confidence.calibration import (
    BINS,
    FULL_BIN,
    Calibration,
    Reliability,
    calibration_error,
    first_places,
    fit_calibration,
    fit_temperature,
    posterior,
    reliability,
)
from mzseek.decision.confidence.combining import Combination, fit_combination
from mzseek.decision.confidence.pooling import Pooled, Pooling, fit_pooling, pool_scores
from mzseek.decision.confidence.selective import RiskCoverage, abstention_threshold, risk_coverage
from mzseek.decision.confidence.sets import (
    coverage_range,
    fit_set_threshold,
    molecules_needed,
    prediction_sets,
)
from mzseek.decision.decide import (
    Decision,
    Decomposition,
    bayes_decision,
    decompose,
    regret,
    top_k,
)
from mzseek.decision.distributions import Distribution, distribution
from mzseek.decision.registry import BAND_SIMILARITIES, UTILITIES, utility_named
from mzseek.decision.utilities import expected_utility
from mzseek.decision.utility import WITHIN, Utility
from mzseek.decision.worst import WorstCase, worst_case

__all__ = [
    "BAND_SIMILARITIES",
    "BINS",
    "FULL_BIN",
    "UTILITIES",
    "WITHIN",
    "Band",
    "Bands",
    "Bounds",
    "Calibration",
    "Combination",
    "Decision",
    "Decomposition",
    "Distribution",
    "Pooled",
    "Pooling",
    "Reliability",
    "RiskCoverage",
    "Utility",
    "WorstCase",
    "abstention_threshold",
    "agreement_guaranteed",
    "bands_of_lists",
    "bayes_decision",
    "bound_hit_under_similarity",
    "bound_similarity_under_hit",
    "calibration_error",
    "coverage_range",
    "decompose",
    "distribution",
    "expected_utility",
    "first_places",
    "fit_calibration",
    "fit_combination",
    "fit_pooling",
    "fit_set_threshold",
    "fit_temperature",
    "molecules_needed",
    "pool_scores",
    "posterior",
    "prediction_sets",
    "regret",
    "regret_bounds",
    "regrets_from_similarities",
    "reliability",
    "risk_coverage",
    "similarity_band",
    "tight_similarities",
    "top_k",
    "utility_named",
    "worst_case",
]
