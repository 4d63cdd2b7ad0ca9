"""Regrets over a fold: what deciding for one metric loses in another, beside what bounds it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.decision.bounds import Bounds, bounds_under
from mzseek.decision.goals import GOALS
from mzseek.decision.registry import UTILITIES
from mzseek.decision.utilities import expected_of_candidates
from mzseek.evaluation.decoding import list_distribution
from mzseek.evaluation.posteriors import Posterior, calibrate
from mzseek.evaluation.scored import Scoring
from mzseek.files import StrPath
from mzseek.prepared.reader import Prepared
from mzseek.ragged import Ragged
from mzseek.runs.run import Run
from mzseek.tables import Table, Tabular
from mzseek.work.progress import Progress, silent

Floats = npt.NDArray[np.float64]
_ROUNDING = 1e-9


@dataclass(frozen=True)
class BoundCheck:
    """A bound over the lists of a fold, and the regret that it bounds.

    Attributes
    ----------
    judged_by, decoded_for : str
        The utility that counts, and the one decided for; one of the two is "hit".
    regret, bound : float64 arrays, shape (lists,)
    """

    judged_by: str
    decoded_for: str
    regret: Floats
    bound: Floats

    @property
    def holds(self) -> int:
        """Lists in which the regret is not above its bound: all, if the theorem is right."""
        return int((self.regret <= self.bound + _ROUNDING).sum())

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "judged_by": self.judged_by,
            "decoded_for": self.decoded_for,
            "lists": len(self.regret),
            "mean_regret": float(self.regret.mean()),
            "mean_bound": float(self.bound.mean()),
            "holds": self.holds,
        }


@dataclass(frozen=True)
class FoldRegrets(Tabular):
    """Regrets of decisions among the candidates, expected under a posterior, list by list.

    Attributes
    ----------
    regret : dict of str to dict of str to float64 array
        By the utility that counts and the one decided for.
    bounds : dict of str to list of Bounds
        What the theorems say about each list, by similarity.
    molecule : int array
        The true molecule of each list.
    """

    regret: dict[str, dict[str, Floats]]
    bounds: dict[str, list[Bounds]]
    molecule: npt.NDArray[np.int32]

    def checks(self) -> list[BoundCheck]:
        """Both bounds of each similarity beside their regrets."""
        found = []
        for name, of_lists in self.bounds.items():
            first = np.array([each.hit_under_similarity for each in of_lists])
            second = np.array([each.similarity_under_hit for each in of_lists])
            found.append(BoundCheck(name, "hit", self.regret[name]["hit"], first))
            found.append(BoundCheck("hit", name, self.regret["hit"][name], second))
        return found

    def agreements(self) -> dict[str, int]:
        """Lists in which HR@1 and each similarity are sure to agree."""
        return {name: sum(each.agreement for each in of) for name, of in self.bounds.items()}

    def to_table(self) -> Table:
        """One row for each bound, with the mean regret beside it."""
        checks = self.checks()
        return Table(
            {
                "judged by": [UTILITIES[each.judged_by].label for each in checks],
                "decided for": [UTILITIES[each.decoded_for].label for each in checks],
                "mean regret": [float(each.regret.mean()) for each in checks],
                "mean bound": [float(each.bound.mean()) for each in checks],
                "lists": [len(each.regret) for each in checks],
                "bound holds in": [each.holds for each in checks],
            },
            "Regrets among the candidates, and their bounds",
            frozenset({"mean regret", "mean bound"}),
        )

    def to_dict(self) -> dict[str, Any]:
        """Means and counts, as plain data."""
        return {
            "lists": len(self.molecule),
            "mean_regret": {
                judged: {made: float(lost.mean()) for made, lost in by.items()}
                for judged, by in self.regret.items()
            },
            "bounds": [each.to_dict() for each in self.checks()],
            "sure_to_agree": self.agreements(),
        }


def regrets_of(
    run: Run,
    how: Scoring | None = None,
    *,
    data: StrPath | None = None,
    every: int = 1,
    progress: Progress = silent,
) -> FoldRegrets:
    """Regrets and bounds of a run's calibrated posterior, on the fold asked for.

    Parameters
    ----------
    run, how, data, progress
        As in `mzseek.evaluation.evaluate.evaluate`.
    every : int
        Take every so-manieth list.

    Returns
    -------
    FoldRegrets
    """
    found = calibrate(run, how, data=data, progress=progress)
    return fold_regrets(found.asked, run.open_data(data), every=every, progress=progress)


def fold_regrets(
    posterior: Posterior,
    prepared: Prepared,
    utilities: Sequence[str] = tuple(GOALS),
    *,
    every: int = 1,
    progress: Progress = silent,
) -> FoldRegrets:
    """What deciding for each utility loses in each other, and the bounds, list by list.

    Decisions are among the candidates, where alone the theorems hold; values are expected ones,
    under the posterior.

    Parameters
    ----------
    posterior : Posterior
    prepared : Prepared
        The data that it is of.
    utilities : sequence of str
        HR@1 and any similarities; bounds are given for all of the latter.
    every : int
        Take every so-manieth list.
    progress : callable of (stage, done, total)

    Returns
    -------
    FoldRegrets
    """
    names = list(dict.fromkeys(("hit", *utilities)))
    starts = Ragged(posterior.counts).starts
    places = range(0, len(starts), every)
    lost = np.empty((len(places), len(names), len(names)))
    bounds: dict[str, list[Bounds]] = {name: [] for name in names if name != "hit"}
    for row, place in enumerate(places):
        here = slice(starts[place], starts[place] + posterior.counts[place])
        known = list_distribution(
            prepared, posterior.candidates[here], posterior.probabilities[here]
        )
        values = np.array([expected_of_candidates(name, known) for name in names])
        chosen = values.argmax(1)
        lost[row] = values.max(1)[:, None] - values[:, chosen]
        for name, of_lists in bounds.items():
            of_lists.append(bounds_under(name, known))
        progress("regrets", row + 1, len(places))
    regret = {
        judged: {made: lost[:, j, m] for m, made in enumerate(names)}
        for j, judged in enumerate(names)
    }
    return FoldRegrets(regret, bounds, posterior.molecule[::every])
