"""Cross-fitting: what is fitted on a molecule comes from channels that never learned from its like.

Molecules that are alike (linked by a Tanimoto similarity of 0.6 or more) are a cluster, and
clusters are dealt into groups. What a channel says of a molecule that it may have learned from is
asked of a state that learned without that molecule's whole group. `check_unseen` holds every set
of features against this before anything is fitted on it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.datasets.split import assign_folds, join_clusters, structure_clusters
from mzseek.errors import EvidenceError
from mzseek.evidence.channel import Channel, Features, Learned
from mzseek.evidence.known import Blocks, Lessons
from mzseek.evidence.lists import Ints, Lists
from mzseek.work.progress import Progress, silent

ALIKE = 0.6


@dataclass(frozen=True, eq=False)
class Groups:
    """Known molecules by cluster and group.

    Attributes
    ----------
    blocks : bytes array, rising
        First InChIKey blocks, each once.
    cluster, group : int64 arrays
        Of each.
    """

    blocks: Blocks
    cluster: Ints
    group: Ints

    @classmethod
    def of(cls, blocks: Blocks, rows: csr_array, number: int, alike: float = ALIKE) -> "Groups":
        """Deal molecules into groups, whole clusters at a time.

        Parameters
        ----------
        blocks : bytes array, shape (molecules,)
            May repeat: molecules of one block are in one cluster.
        rows : CSR of 0/1, shape (molecules, bits)
        number : int
            Groups to make.
        alike : float
            Tanimoto similarity from which on two molecules are in one cluster.
        """
        order = np.argsort(blocks, kind="stable")  # no order of molecules shows
        distinct, skeleton = np.unique(blocks[order], return_inverse=True)
        clusters = join_clusters(structure_clusters(rows[order], alike), skeleton)
        _, first = np.unique(skeleton, return_index=True)
        own = clusters[first]
        dealt = assign_folds(own, {str(each): 1 / number for each in range(number)})
        return cls(distinct, own, np.array(dealt, np.int64))

    def __len__(self) -> int:
        return len(self.blocks)

    def places(self, blocks: Blocks) -> Ints:
        """Places of molecules, which must all be known."""
        found = np.searchsorted(self.blocks, blocks)
        found = np.minimum(found, max(len(self) - 1, 0))
        if len(blocks) and (not len(self) or (self.blocks[found] != blocks).any()):
            raise EvidenceError("a molecule is in no group, expected one of those that were dealt")
        return np.asarray(found, np.int64)

    def seen(self, learned: Learned, blocks: Blocks) -> npt.NDArray[np.bool_]:
        """Whether what was learned is about each of the molecules, or about one of its cluster."""
        about = self.cluster[np.isin(self.blocks, learned.blocks)]
        return np.isin(blocks, learned.blocks) | np.isin(self.cluster[self.places(blocks)], about)


def check_unseen(channel: Channel, learned: Learned, blocks: Blocks, groups: Groups) -> None:
    """Refuse features of molecules that a channel learned from, or from their like.

    Raises
    ------
    EvidenceError
        One of them was seen.
    """
    seen = groups.seen(learned, blocks)
    if seen.any():
        molecules = len(np.unique(blocks[seen]))
        raise EvidenceError(
            f"{channel.label} has learned from {molecules:,} of the molecules that the ranker "
            "would be fitted on, or from their like; fit on molecules that it has not seen "
            "(--fit-on val)"
        )


class Taught:
    """A channel with what it learned: from all lessons, and without each group where needed.

    Parameters
    ----------
    channel : Channel
    lessons : Lessons
    groups : Groups
        Of all molecules that features will be fitted on.
    progress : callable of (stage, done, total)

    Attributes
    ----------
    whole : Learned
        What new spectra are asked of.
    """

    def __init__(
        self, channel: Channel, lessons: Lessons, groups: Groups, progress: Progress = silent
    ) -> None:
        self.channel, self._lessons, self._groups = channel, lessons, groups
        self._progress = progress
        self.whole = channel.learn(lessons, progress)
        self._without: dict[int, Learned] = {}

    def features(self, lists: Lists, blocks: Blocks, *, to_fit: bool = True) -> Features:
        """Features of lists whose answers may have been among the lessons, cross-fitted.

        Parameters
        ----------
        lists : Lists
        blocks : bytes array, shape (spectra,)
            Of the true molecules.
        to_fit : bool
            Something will be fitted on them: none may come from what was learned from a molecule's
            like. Without it, a channel that has learned elsewhere may say what it says.

        Raises
        ------
        EvidenceError
            The channel has learned from one of them, and cannot do without.
        """
        found = np.zeros((lists.ragged.total, len(self.channel.feature_names)), np.float32)
        group = self._groups.group[self._groups.places(blocks)]
        # Where nothing alike was learned from, what is said is what is said of new spectra.
        needed = self._groups.seen(self.whole, blocks) & self.channel.learns
        for each in (None, *np.unique(group[needed]).tolist()):
            own = np.flatnonzero(~needed if each is None else needed & (group == each))
            if not len(own):
                continue
            learned = self.whole if each is None else self._state(each)
            if to_fit or self.channel.learns:
                check_unseen(self.channel, learned, blocks[own], self._groups)
            found[np.isin(lists.ragged.owner, own)] = self.channel.features(
                learned, lists.only(own)
            )
        return found

    def _state(self, group: int) -> Learned:
        """What is learned without a group."""
        if group not in self._without:
            lessons = self._lessons.without(self._groups.blocks[self._groups.group == group])
            if not len(lessons.spectra):
                raise EvidenceError(
                    f"{self.channel.label} would have nothing to learn from: all molecules of the "
                    "train fold are alike; fit on molecules that it has not seen (--fit-on val)"
                )
            self._without[group] = self.channel.learn(lessons, self._progress)
        return self._without[group]
