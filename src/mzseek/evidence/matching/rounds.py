"""Scores by which decoys are drawn, such that a blind scorer fitted on the lists learns nothing.

The first scorer is fitted on truths against all that may stand in their lists. Lists are drawn by
it, and a fresh one is fitted on those: where it still tells the truths of lists that it has not
seen, what it learned is added to the scores, and lists are drawn again.
"""

from dataclasses import dataclass, field

import numpy as np

from mzseek.evidence.blind import Blind, Floats, Ints
from mzseek.evidence.matching.drawing import draw_list, probabilities
from mzseek.evidence.matching.lists import BlindLists, Flags, best_strength, cross_fitted
from mzseek.work import Progress, silent

MOST_ROUNDS = 3
# A list of more is cut for fitting: the weights that are estimated are the same.
_TAUGHT = 128
_SURE = 2.0  # standard errors


@dataclass(frozen=True, eq=False)
class Roles:
    """What lists are for.

    Attributes
    ----------
    groups : int64 array, shape (lists,)
        See `mzseek.evidence.matching.lists.structure_groups`.
    teaches : bool array, shape (lists,)
        Scorers learn from these.
    held_out : bool array, shape (lists,)
        Penalties are chosen on these, which are like none that scorers learn from then.
    """

    groups: Ints
    teaches: Flags
    held_out: Flags

    @classmethod
    def of(cls, groups: Ints, teaches: Flags, chosen_on: Flags) -> "Roles":
        """Roles of lists: penalties are chosen on some, or where there are none on a group."""
        held_out = chosen_on & (groups < 0)
        return cls(groups, teaches, held_out if held_out.any() else groups == 0)

    def tuned(self, lists: BlindLists, which: Ints, progress: Progress = silent) -> Blind:
        """A scorer of those that teach, by the penalty that suits those that were held out best.

        Parameters
        ----------
        lists : BlindLists
        which : int64 array, shape (lists,)
            Their places among all that have a role.
        progress : callable of (stage, done, total)
        """
        held_out = self.held_out[which]
        taught = lists.only(np.flatnonzero(self.teaches[which] & ~held_out))
        return best_strength(taught, lists.only(np.flatnonzero(held_out)), progress=progress)

    def can_test(self, which: Ints) -> bool:
        """Whether a scorer can be fitted on some lists, for every group, and tried on others."""
        held_out = self.held_out[which]
        groups = self.groups[which][self.teaches[which] & ~held_out]
        return bool(held_out.any()) and len(np.unique(groups)) > 1

    def scores(self, pool: BlindLists, lists: BlindLists, which: Ints, tuned: Blind) -> Floats:
        """Scores of what the pool has, cross-fitted on lists, with a tuned scorer's penalty."""
        taught = np.flatnonzero(self.teaches[which])
        own, groups = lists.only(taught), self.groups[which][taught]
        whole = own.fit(tuned.l2) if self.held_out[which][taught].any() else tuned
        return cross_fitted(pool, self.groups, own, groups, whole)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Lists that were drawn.

    Attributes
    ----------
    which : int64 array
        Those of the pool's lists that have one.
    candidates : int64 array
        Places of their members among the pool's candidates, list after list.
    reasons : dict of str to int
        How many have none, and why.
    """

    which: Ints
    candidates: Ints
    reasons: dict[str, int] = field(default_factory=dict)


def draw_all(lists: BlindLists, scores: Floats, numbers: Ints, seed: int, most: int) -> Drawn:
    """A list for each molecule that one can be drawn for.

    Parameters
    ----------
    lists : BlindLists
        What each list is drawn from.
    scores : float64 array, shape (candidates of all lists,)
    numbers : int array, shape (lists,)
        Seeds each list's draw, beside ``seed``: no list depends on the others.
    seed : int
    most : int
        Members of a list at the most.
    """
    which, candidates = [], [np.empty(0, np.int64)]
    reasons: dict[str, int] = {}
    starts = lists.ragged.starts.tolist()
    for place, (start, count) in enumerate(zip(starts, lists.counts.tolist(), strict=True)):
        here = slice(start, start + count)
        rng = np.random.default_rng([seed, int(numbers[place])])
        truth = int(np.flatnonzero(lists.labels[here])[0])
        found = draw_list(probabilities(scores[here]), truth, rng, most)
        if isinstance(found, str):
            reasons[found] = reasons.get(found, 0) + 1
            continue
        which.append(place)
        candidates.append(start + found)
    return Drawn(np.array(which, np.int64), np.concatenate(candidates), reasons)


@dataclass(frozen=True, eq=False)
class Matched:
    """Lists, and what a blind scorer makes of them.

    Attributes
    ----------
    drawn : Drawn
    lists : BlindLists
        The drawn ones.
    scores : float64 array
        What they were drawn by: of the pool's candidates.
    fresh : Blind or None
        A scorer fitted on them; None where there are too few lists to fit one and to test it.
    l2 : float
        Penalty of the first scorer.
    rounds : int
    """

    drawn: Drawn
    lists: BlindLists
    scores: Floats
    fresh: Blind | None
    l2: float
    rounds: int


def matched_lists(
    pool: BlindLists,
    roles: Roles,
    numbers: Ints,
    *,
    seed: int = 0,
    most: int = 256,
    progress: Progress = silent,
) -> Matched:
    """Lists drawn from pools, until a blind scorer fitted on them learns nothing that holds.

    Parameters
    ----------
    pool : BlindLists
        For each molecule all that its list is drawn from.
    roles : Roles
    numbers, seed, most
        As in `draw_all`.
    progress : callable of (stage, done, total)
    """
    everything = np.arange(len(pool))
    taught = pool.at_most(_TAUGHT, seed)
    tuned = roles.tuned(taught, everything, progress)
    scores = roles.scores(pool, taught, everything, tuned)
    for number in range(1, MOST_ROUNDS + 1):
        progress("drawing", number, MOST_ROUNDS)
        drawn = draw_all(pool, scores, numbers, seed, most)
        lists = pool.only(drawn.which, drawn.candidates)
        fresh = roles.tuned(lists, drawn.which) if roles.can_test(drawn.which) else None
        if fresh is None or number == MOST_ROUNDS or not _tells(fresh, lists, roles, drawn.which):
            break
        scores = scores + roles.scores(pool, lists, drawn.which, fresh)
    return Matched(drawn, lists, scores, fresh, tuned.l2, number)


def _tells(fresh: Blind, lists: BlindLists, roles: Roles, which: Ints) -> bool:
    """Whether a scorer makes truths that it has not seen likelier than chance, beyond doubt."""
    held_out = lists.only(np.flatnonzero(roles.held_out[which]))
    gain = held_out.log_p(fresh) + np.log(held_out.counts)
    return bool(gain.mean() > _SURE * gain.std() / np.sqrt(len(gain)))
