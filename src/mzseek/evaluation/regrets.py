"""Regrets of decisions for another metric on the lists of a fold, and their bounds."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import RunError
from mzseek.core.registry import check_name
from mzseek.datasets.prepared import Prepared
from mzseek.decision.bounds import bounds_under
from mzseek.decision.distributions import expected_of_candidates
from mzseek.decision.utilities import BAND_SIMILARITIES
from mzseek.evaluation.posterior_report import distributions, map_lists
from mzseek.evaluation.posteriors import Posterior, calibrate
from mzseek.evaluation.scored import Floats, Scoring
from mzseek.io import StrPath
from mzseek.parallel import Progress, silent
from mzseek.runs.run import Run

TOLERANCE = 1e-9  # of sums over a few hundred candidates, in double precision


@dataclass(frozen=True)
class FoldRegrets:
    """Regrets and bounds under one similarity, for each list of a posterior.

    Decisions are made within the candidates, of which equal fingerprints are one; the band is that
    of all pairs, as the theorems need it.

    Attributes
    ----------
    low, high : float64 arrays, shape (lists,)
        The band; NaN where there is only one fingerprint.
    p_star : float64 array
        Probability of the most probable fingerprint.
    similarity_lost, similarity_bound : float64 arrays
        What HR@1's decision loses in the similarity, and the most that it can (theorem 4.2).
    hit_lost, hit_bound : float64 arrays
        What the similarity's decision loses in HR@1, and the most that it can (theorem 4.3).
    guaranteed : bool array
        Lists in which HR@1's decision is sure to be among the best under the similarity.
    """

    low: Floats
    high: Floats
    p_star: Floats
    similarity_lost: Floats
    similarity_bound: Floats
    hit_lost: Floats
    hit_bound: Floats
    guaranteed: npt.NDArray[np.bool_]

    @property
    def width(self) -> Floats:
        """Width of the band."""
        return self.high - self.low

    @property
    def agreed(self) -> npt.NDArray[np.bool_]:
        """Lists in which HR@1's decision is among the best under the similarity."""
        flags: npt.NDArray[np.bool_] = self.similarity_lost <= TOLERANCE
        return flags

    @property
    def exceeded(self) -> npt.NDArray[np.bool_]:
        """Lists in which a theorem does not hold; there must be none."""
        flags: npt.NDArray[np.bool_] = (
            (self.similarity_lost > self.similarity_bound + TOLERANCE)
            | (self.hit_lost > self.hit_bound + TOLERANCE)
            | (self.guaranteed & ~self.agreed)
        )
        return flags


def regrets_of(
    run: Run,
    how: Scoring | None = None,
    *,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> dict[str, FoldRegrets]:
    """Compute regrets and bounds of a run's calibrated posterior on a fold, by similarity.

    Parameters are those of `mzseek.evaluation.evaluate.evaluate`.
    """
    posterior = calibrate(run, how, data=data, progress=progress).evaluated
    return fold_regrets(posterior, run.open_data(data), progress=progress)


def fold_regrets(
    posterior: Posterior,
    prepared: Prepared,
    similarities: Sequence[str] = BAND_SIMILARITIES,
    *,
    processes: int | None = None,
    progress: Progress = silent,
) -> dict[str, FoldRegrets]:
    """Compute regrets and bounds of every list of a posterior, by similarity.

    The posterior stands for the distribution of the truth. ``processes`` are as many as there are
    cores by default, where there are enough lists.
    """
    for name in similarities:
        check_name(BAND_SIMILARITIES, name, "similarity", RunError)
    values = map_lists(
        partial(_list_regrets, tuple(similarities)), posterior, prepared, processes, progress,
        "regrets",
    )  # fmt: skip
    results = {}
    for s, name in enumerate(similarities):
        columns: dict[str, Any] = {
            field.name: values[:, s, column] for column, field in enumerate(fields(FoldRegrets))
        }
        results[name] = FoldRegrets(**columns | {"guaranteed": columns["guaranteed"] > 0})
    return results


def _list_regrets(
    similarities: tuple[str, ...], prepared: Prepared, posterior: Posterior
) -> Floats:
    """Compute the numbers of each list, shape (lists, similarities, fields of `FoldRegrets`)."""
    rows = []
    for distribution in distributions(prepared, posterior):
        p = distribution.probabilities
        row = []
        for similarity in similarities:
            values = expected_of_candidates(similarity, distribution)
            bounds = bounds_under(similarity, distribution)
            row.append(
                (
                    bounds.low,
                    bounds.high,
                    bounds.p_star,
                    float(values.max() - values[np.argmax(p)]),
                    bounds.hit_under_similarity,
                    bounds.p_star - bounds.p_similarity,
                    bounds.similarity_under_hit,
                    float(bounds.agreement),
                )
            )
        rows.append(row)
    return np.array(rows)
