"""A fixed prior term in the softmax of the training objective.

Measured molecules differ from their decoys in ways that need no spectrum to see, and a listwise
loss learns these first. With the score of a blind scorer standing beside that of the network, the
loss is small where the blind scorer is right already, and what the network learns is the rest. The
offset is there in training alone: a network's own score does without.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import RunError
from mzseek.core.ragged import gather, pointers
from mzseek.datasets.layout import SAME_FINGERPRINT
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.decoys import GROUPS, DecoyLists, cross_fit_scores, tune_penalty
from mzseek.evidence.fitting import structure_groups_from
from mzseek.evidence.prepared_queries import queries_with_truth
from mzseek.evidence.prior import PENALTIES, prior_features
from mzseek.parallel.engine import Progress, silent

Ints = npt.NDArray[np.int64]
_MAX_FITTED = 64  # candidates of a list that the scorer is fitted on; more change it little


@dataclass(frozen=True, eq=False)
class Offsets:
    """A log-odds term for every candidate of the training lists.

    Attributes
    ----------
    list_index : int64 array, shape (molecules of the folder,)
        The list of each measured molecule, -1 where it has none.
    pointers : int64 array, shape (lists + 1,)
    values : float32 array
        List after list, candidates in the order of the prepared folder.
    metadata : dict
        What made them, for ``run.json``.
    """

    list_index: Ints
    pointers: Ints
    values: npt.NDArray[np.float32]
    metadata: dict[str, Any]

    def of(self, molecules: npt.NDArray[np.integer]) -> npt.NDArray[np.float32]:
        """Those of the lists of some molecules, concatenated as in a batch."""
        _, (values,) = gather(self.pointers, (self.values,), self.list_index[molecules])
        return np.asarray(values)


def prior_offsets(
    prepared: Prepared,
    setting: str,
    progress: Progress = silent,
    *,
    strengths: Sequence[float] = PENALTIES,
) -> Offsets:
    """Score how much each candidate looks like a measured molecule, without its spectrum.

    The scorer is `mzseek.evidence.prior`, on the bits of fingerprints and their number. It is
    fitted on the train fold, where every molecule counts once, and cross-fitted: the scorer of a
    list has learned from no molecule of the structure group of its truth. The penalty is that of
    ``strengths`` under which the truths of one group are most probable for a fit on the others.

    Raises
    ------
    RunError
        All molecules of the train fold are alike, so that nothing is left to learn from.
    """
    molecules, groups = offset_groups(prepared, setting)
    lists = _lists(prepared, setting, molecules)
    fitted = lists.at_most(_MAX_FITTED, seed=0)
    first = groups == groups.min()
    tuned = tune_penalty(
        fitted.only(np.flatnonzero(~first)), fitted.only(np.flatnonzero(first)), strengths, progress
    )
    values = cross_fit_scores(lists, groups, fitted, groups, tuned)
    list_index = np.full(len(prepared.candidates(setting).list_of), -1, np.int64)
    list_index[molecules] = np.arange(len(molecules))
    metadata = {
        "by": "prior", "l2": tuned.l2, "molecules": len(molecules),
        "groups": len(np.unique(groups)), "in_predictions": False,
    }  # fmt: skip
    return Offsets(list_index, pointers(lists.counts), values.astype(np.float32), metadata)


def offset_groups(prepared: Prepared, setting: str) -> tuple[Ints, Ints]:
    """Return train molecules whose list contains them, and their structure groups (two or more)."""
    queries = queries_with_truth(prepared, prepared.in_fold("train"), setting, "fingerprint")
    molecules = np.unique(prepared.molecule[queries]).astype(np.int64)
    dealt = structure_groups_from(prepared, molecules, GROUPS)
    groups = dealt.groups_of(prepared.inchikey14[molecules])
    if len(np.unique(groups)) < 2:
        raise RunError(
            f"{prepared.folder}: --offset prior is learned from molecules of another structure "
            "cluster, and all of the train fold are in one"
        )
    return molecules, groups


def _lists(prepared: Prepared, setting: str, molecules: Ints) -> DecoyLists:
    """Return the lists of molecules, all candidates."""
    stored = prepared.candidates(setting)
    numbers = np.asarray(stored.list_of)[molecules]
    ends, (members, identity) = gather(stored.indptr, (stored.molecules, stored.identity), numbers)
    table, index = np.unique(members, return_inverse=True)
    bits = prepared.fingerprint_rows(table)
    return DecoyLists(
        rows=prior_features(bits, np.empty((len(table), 0))),
        members=index.astype(np.int64),
        counts=np.diff(ends).astype(np.int64),
        labels=(np.asarray(identity) & SAME_FINGERPRINT) > 0,
    )
