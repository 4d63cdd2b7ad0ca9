"""Rankers that were fitted without some molecules, to be asked about these."""

from collections.abc import Sequence

import numpy as np

from mzseek.errors import EvidenceError
from mzseek.evidence.channel import Features
from mzseek.evidence.fitting.crossfit import Groups, Taught
from mzseek.evidence.known import Questions
from mzseek.evidence.ranker import Ranker, fit_ranker


def fit_rankers(
    taught: Sequence[Taught],
    features: Sequence[Features],
    asked: Questions,
    groups: Groups,
    number: int,
    *,
    l2: float = 1e-3,
    by_molecule: bool = True,
) -> dict[int | None, Ranker]:
    """A ranker fitted on all questions, under None, and one without each group.

    Parameters
    ----------
    taught : sequence of Taught
        The channels.
    features : sequence of float32 arrays, shapes (rows, features of the channel)
        Of each, as `Taught.features` gives them: from what has not learned from the molecules.
    asked : Questions
    groups : Groups
        Of all molecules that are asked about.
    number : int
        How many groups they were dealt into.
    l2, by_molecule
        As in `mzseek.evidence.ranker.fit_ranker`.

    Raises
    ------
    EvidenceError
        All molecules are of one group.
    """
    labels = [each.channel.label for each in taught]
    names = [each.channel.feature_names for each in taught]
    group = groups.group[groups.places(asked.blocks)]
    rankers: dict[int | None, Ranker] = {}
    for each in (None, *range(number)):
        own = np.flatnonzero(group != each) if each is not None else np.arange(len(asked))
        if not len(own):
            raise EvidenceError(
                "all molecules to fit on are alike: none are left to cross-fit with; fit on more"
            )
        rows = asked.rows(own)
        rankers[each] = fit_ranker(
            labels, names, [values[rows] for values in features], asked.only(own),
            l2=l2, by_molecule=by_molecule,
        )  # fmt: skip
    return rankers
