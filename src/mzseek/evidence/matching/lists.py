"""Lists of molecules, without their spectra, for blind scorers to be fitted on, cross-fitted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.datasets.split import assign_folds, structure_clusters
from mzseek.errors import EvidenceError
from mzseek.evidence.blind import STRENGTHS, Blind, Floats, Ints, fit_blind, log_probability
from mzseek.ragged import Ragged, places
from mzseek.work import Progress, silent

Flags = npt.NDArray[np.bool_]
GROUPS = 5


@dataclass(frozen=True, eq=False)
class BlindLists:
    """Candidates of lists, strung together.

    Attributes
    ----------
    rows : CSR, shape (molecules, features)
        See `mzseek.evidence.blind.blind_rows`.
    members : int64 array, shape (candidates of all lists,)
        The row of each candidate.
    counts : int64 array, shape (lists,)
        Candidates in each list.
    labels : bool array, shape (candidates of all lists,)
        The truth, in each list once.
    """

    rows: csr_array
    members: Ints
    counts: Ints
    labels: Flags

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def ragged(self) -> Ragged:
        """The lengths, to sum up with."""
        return Ragged(self.counts)

    def candidates(self, lists: Ints) -> Ints:
        """Places of the candidates of some lists among all."""
        starts = self.ragged.starts
        return places(np.append(starts, starts[-1:] + self.counts[-1:]), lists)[1]

    def only(self, lists: Ints, candidates: Ints | None = None) -> "BlindLists":
        """Some of the lists, or some candidates of them; no other molecules.

        Parameters
        ----------
        lists : int64 array
        candidates : int64 array, optional
            Places among all, list after list; by default all that the lists have.
        """
        taken = self.candidates(lists) if candidates is None else candidates
        counts = np.bincount(self.ragged.owner[taken], minlength=len(self))[lists]
        used, members = np.unique(self.members[taken], return_inverse=True)
        return BlindLists(csr_array(self.rows[used]), members, counts, self.labels[taken])

    def at_most(self, size: int, seed: int) -> "BlindLists":
        """The lists, long ones cut to their truths and others drawn at random.

        A logit that is fitted on such a draw estimates the same weights.
        """
        order = np.random.default_rng(seed).random(len(self.members))
        order[self.labels] = -1.0
        sorted_ = np.lexsort((order, self.ragged.owner))
        within = np.arange(len(sorted_)) - self.ragged.spread(self.ragged.starts)
        return self.only(np.arange(len(self)), np.sort(sorted_[within < size]))

    def fit(self, l2: float) -> Blind:
        """The scorer of these lists."""
        return fit_blind(self.rows, self.counts, self.labels, members=self.members, l2=l2)

    def scores(self, blind: Blind) -> Floats:
        """A scorer's word on every candidate."""
        return blind.score(self.rows)[self.members]

    def log_p(self, blind: Blind) -> Floats:
        """Log p of the truth of each list under a scorer."""
        return log_probability(self.scores(blind), self.counts, self.labels)


def best_strength(
    taught: BlindLists,
    held_out: BlindLists,
    strengths: Sequence[float] = STRENGTHS,
    progress: Progress = silent,
) -> Blind:
    """The scorer of some lists, with the penalty under which others' truths are most probable.

    Parameters
    ----------
    taught, held_out : BlindLists
        The second with no molecules like the truths of the first.
    strengths : sequence of float
        Of the penalty; strong ones first, and no weaker ones once a weaker one did worse.
    progress : callable of (stage, done, total)
    """
    best, value = None, -np.inf
    for done, l2 in enumerate(strengths):
        progress("fitting", done, len(strengths))
        blind = taught.fit(l2)
        found = float(held_out.log_p(blind).mean())
        if found <= value:
            break
        best, value = blind, found
    if best is None:
        raise EvidenceError("no strength of the penalty to choose among")
    return best


def cross_fitted(
    lists: BlindLists, groups: Ints, taught: BlindLists, taught_groups: Ints, whole: Blind
) -> Floats:
    """Scores of all candidates, each by a scorer that learned nothing from its list, or its like.

    Parameters
    ----------
    lists : BlindLists
    groups : int64 array, shape (lists,)
        See `structure_groups`.
    taught : BlindLists
        Lists to learn from.
    taught_groups : int64 array, shape (lists to learn from,)
    whole : Blind
        The scorer of all that teaches, for what is like none of it; others get its penalty.

    Returns
    -------
    float64 array, shape (candidates of all lists,)
    """
    scores = np.empty(len(lists.members))
    for group in np.unique(groups).tolist():
        others = np.flatnonzero(taught_groups != group)
        blind = whole if group < 0 else taught.only(others).fit(whole.l2)
        here = lists.candidates(np.flatnonzero(groups == group))
        scores[here] = blind.score(lists.rows)[lists.members[here]]
    return scores


def structure_groups(
    rows: csr_array, teaches: Flags, number: int = GROUPS, alike: float = 0.6
) -> Ints:
    """Groups of molecules for cross-fitting, no two alike in different ones.

    Parameters
    ----------
    rows : CSR of 0/1, shape (molecules, bits)
    teaches : bool array, shape (molecules,)
        Those that scorers learn from.
    number : int
        Groups at the most.
    alike : float
        Tanimoto at which molecules are linked.

    Returns
    -------
    int64 array, shape (molecules,)
        The group; -1 for a molecule that is like none that teaches.

    Raises
    ------
    EvidenceError
        All that teach are alike.
    """
    clusters = structure_clusters(rows, alike)
    taught, own = np.unique(clusters[teaches], return_inverse=True)
    if len(taught) < 2:
        raise EvidenceError(
            f"{int(teaches.sum()):,} molecules to learn from, in {len(taught)} structure clusters; "
            "expected two at least"
        )
    names = [str(group) for group in range(min(number, len(taught)))]
    dealt = np.array(assign_folds(own, dict.fromkeys(names, 1 / len(names))), np.int64)
    of_cluster = np.full(int(clusters.max()) + 1, -1, np.int64)
    of_cluster[clusters[teaches]] = dealt
    return of_cluster[clusters]
