"""Decisions from probabilities: Bayes decoders, bands, regret, calibration, prediction sets.

Pure functions. Fingerprints are 0/1 arrays or scipy CSR, rows are candidates; lists of candidates
are 1-D arrays over all candidates of all queries, with counts.
"""

from typing import TYPE_CHECKING

from mzseek.core.registry import lazy_package

if TYPE_CHECKING:
    from mzseek.decision.public import *  # noqa: F403

__getattr__ = lazy_package("mzseek.decision")
