"""Decisions from probabilities: Bayes decoders, bands, regret, calibration, prediction sets.

Pure functions. Fingerprints are 0/1 arrays or scipy CSR, rows are candidates; lists of candidates
are 1-D arrays over all candidates of all queries, with counts.
"""

from typing import TYPE_CHECKING

from mzseek.core.registry import lazy_names

if TYPE_CHECKING:
    from mzseek.decision.bounds import *  # noqa: F403
    from mzseek.decision.calibration import *  # noqa: F403
    from mzseek.decision.conformal import *  # noqa: F403
    from mzseek.decision.decide import *  # noqa: F403
    from mzseek.decision.distributions import *  # noqa: F403
    from mzseek.decision.utilities import *  # noqa: F403

# Each name is imported from its module when it is first used: annotating needs no bounds.
__getattr__ = lazy_names(
    "mzseek.decision",
    {
        "utilities": "BAND_SIMILARITIES UTILITIES WITHIN Utility utility_named",
        "distributions": "Distribution distribution expected_utility",
        "decide": "Decision Decomposition bayes_decision decompose regret top_k",
        "bounds": "Band Bands Bounds WorstCase agreement_guaranteed bands_of_lists "
        "bound_hit_under_similarity bound_similarity_under_hit regret_bounds row_bounds "
        "similarity_band worst_case",
        "calibration": "BINS FULL_BIN Calibration Combination Pooled Pooling Reliability "
        "calibration_error first_places fit_calibration fit_combination fit_pooling "
        "fit_temperature pool_scores posterior reliability",
        "conformal": "RiskCoverage abstention_threshold coverage_range fit_set_threshold "
        "molecules_needed prediction_sets risk_coverage",
    },
)
