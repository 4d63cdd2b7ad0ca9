"""Lists of several settings as one."""

import numpy as np

from mzseek.datasets.prepared import Prepared
from mzseek.evidence.fitting import MergedLists
from mzseek.evidence.queries import queries_from, queries_with_truth, spectra_from


def test_the_rows_of_a_setting_are_its_lists(small: Prepared) -> None:
    queries = small.in_fold("val")[::-1]
    joined = MergedLists.of(
        small, queries, ["mass", "formula"], spectra_from(small, queries), jobs=1
    )
    named = np.array(joined.lists.molecules.smiles)
    for setting in ("mass", "formula"):
        usable = queries_with_truth(small, queries, setting, "fingerprint")
        here = np.flatnonzero(np.isin(queries, usable))
        rows, counts = joined.rows(setting, here)
        lists, _ = queries_from(small, queries[here], setting, jobs=1)
        assert np.array_equal(counts, lists.counts)
        expected = np.array(lists.molecules.smiles)[lists.candidates]
        assert named[joined.lists.candidates[rows]].tolist() == expected.tolist()
        owner = np.repeat(here, counts)
        assert np.array_equal(joined.lists.ragged.list_index[rows], owner)


def test_what_lists_share_is_there_once(small: Prepared) -> None:
    queries = small.in_fold("val")[:3]
    one = MergedLists.of(small, queries, ["mass"], spectra_from(small, queries), jobs=1)
    two = MergedLists.of(small, queries, ["mass", "mass"], spectra_from(small, queries), jobs=1)
    assert two.lists.members.tolist() == one.members.tolist()
    for start, end in zip(one.pointers[:-1], one.pointers[1:], strict=True):
        own = one.members[start:end]
        assert len(np.unique(own)) == len(own)
