"""What the wrong decision costs on the lists of a fold, and what the theorems say it may."""

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
from mzseek.decision.distributions import Distribution, expected_of_candidates
from mzseek.decision.utilities import BAND_SIMILARITIES
from mzseek.evaluation.posterior_report import distributions, engine_for, in_parts, opened
from mzseek.evaluation.posteriors import Posterior, calibrate
from mzseek.evaluation.scored import Scoring
from mzseek.io import StrPath
from mzseek.parallel import OpenedOnce, Progress, silent
from mzseek.runs.run import Run

Floats = npt.NDArray[np.float64]
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
        """Of the band."""
        return self.high - self.low

    @property
    def agreed(self) -> npt.NDArray[np.bool_]:
        """Lists in which HR@1's decision is among the best under the similarity."""
        found: npt.NDArray[np.bool_] = self.similarity_lost <= TOLERANCE
        return found

    @property
    def exceeded(self) -> npt.NDArray[np.bool_]:
        """Lists in which a theorem does not hold; there must be none."""
        found: npt.NDArray[np.bool_] = (
            (self.similarity_lost > self.similarity_bound + TOLERANCE)
            | (self.hit_lost > self.hit_bound + TOLERANCE)
            | (self.guaranteed & ~self.agreed)
        )
        return found


def regrets_of(
    run: Run,
    how: Scoring | None = None,
    *,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> dict[str, FoldRegrets]:
    """Regrets and bounds of a run's calibrated posterior, on the fold asked for, by similarity.

    Parameters
    ----------
    run, how, data, progress
        As in `mzseek.evaluation.evaluate.evaluate`.

    Returns
    -------
    dict of str to FoldRegrets
    """
    posterior = calibrate(run, how, data=data, progress=progress).asked
    return fold_regrets(posterior, run.open_data(data), progress=progress)


def fold_regrets(
    posterior: Posterior,
    prepared: Prepared,
    similarities: Sequence[str] = BAND_SIMILARITIES,
    *,
    processes: int | None = None,
    progress: Progress = silent,
) -> dict[str, FoldRegrets]:
    """Regrets and bounds of every list of a posterior.

    Parameters
    ----------
    posterior : Posterior
        It stands for the distribution of the truth.
    prepared : Prepared
        The data that it is of.
    similarities : sequence of str
    processes : int, optional
        By default as many as there are cores, where there are enough lists.
    progress : callable of (stage, done, total)

    Returns
    -------
    dict of str to FoldRegrets
        By similarity.
    """
    for name in similarities:
        check_name(BAND_SIMILARITIES, name, "similarity", RunError)
    count, jobs = len(posterior.counts), list(in_parts(posterior))
    work = OpenedOnce(
        partial(_regrets_job, tuple(similarities)), opened, prepared.folder,
        str(prepared.manifest["key"]),
    )  # fmt: skip
    parts: list[Floats] = []
    for part in engine_for(count, len(jobs), processes).results(work, jobs):
        parts.append(part)
        progress("regrets", sum(map(len, parts)), count)
    joined = np.concatenate(parts)  # (lists, similarities, numbers)
    return {name: _of_columns(joined[:, place]) for place, name in enumerate(similarities)}


def _regrets_job(similarities: tuple[str, ...], prepared: Prepared, part: Posterior) -> Floats:
    return np.array(
        [
            [_regrets(name, known) for name in similarities]
            for known in distributions(prepared, part)
        ]
    )


def _regrets(similarity: str, known: Distribution) -> tuple[float, ...]:
    """The numbers of one list, in the order of `FoldRegrets`."""
    values, p = expected_of_candidates(similarity, known), known.probabilities
    bounds = bounds_under(similarity, known)
    return (
        bounds.low,
        bounds.high,
        bounds.p_star,
        float(values.max() - values[np.argmax(p)]),
        bounds.hit_under_similarity,
        bounds.p_star - bounds.p_similarity,
        bounds.similarity_under_hit,
        float(bounds.agreement),
    )


def _of_columns(found: Floats) -> FoldRegrets:
    columns: dict[str, Any] = {
        field.name: found[:, place] for place, field in enumerate(fields(FoldRegrets))
    }
    return FoldRegrets(**columns | {"guaranteed": columns["guaranteed"] > 0})
