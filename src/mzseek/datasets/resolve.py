"""Candidate lists as rows of the molecule table, and which candidates are the truth."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.datasets.collect import RawLists
from mzseek.datasets.molecules import MoleculeTable
from mzseek.ragged import Ragged


@dataclass(frozen=True)
class ResolvedLists:
    """Candidates whose SMILES, and whose list's key, could be parsed; in the file's order.

    Attributes
    ----------
    truth : int64, one a list
        The molecule that the key stands for, or -1.
    owner, member, target : int64, one a candidate
        Its list, its molecule, and its list's truth.
    same_fingerprint, same_block : bool, one a candidate
        Whether it is, in that sense, the truth.
    """

    truth: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int64]
    member: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    same_fingerprint: npt.NDArray[np.bool_]
    same_block: npt.NDArray[np.bool_]

    @property
    def has_truth(self) -> npt.NDArray[np.bool_]:
        """Whether each list holds its truth, in one sense or the other."""
        has = np.zeros(len(self.truth), dtype=bool)
        has[self.owner[self.same_fingerprint | self.same_block]] = True
        return has

    def is_first(self, molecules: int) -> npt.NDArray[np.bool_]:
        """Whether each candidate stands in its list for the first time."""
        first = np.zeros(len(self.member), dtype=bool)
        first[np.unique(self.owner * molecules + self.member, return_index=True)[1]] = True
        return first


def resolve(lists: RawLists, table: MoleculeTable) -> ResolvedLists:
    """Look the lists' SMILES up in the table."""
    truth = table.index[np.frombuffer(lists.keys, dtype=np.int32)].astype(np.int64)
    counts = np.frombuffer(lists.counts, dtype=np.int32)
    owner = Ragged(counts.astype(np.int64)).owner
    member = table.index[np.frombuffer(lists.members, dtype=np.int32)].astype(np.int64)
    valid = (member >= 0) & (truth[owner] >= 0)
    owner, member = owner[valid], member[valid]
    target = truth[owner]
    prints, blocks = table.fingerprint_classes, table.block_classes
    return ResolvedLists(
        truth, owner, member, target,
        prints[member] == prints[target],
        blocks[member] == blocks[target],
    )  # fmt: skip
