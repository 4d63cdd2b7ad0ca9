"""Lists of several settings as one."""

import numpy as np

from mzseek.datasets.prepared import Prepared
from mzseek.evidence.fitting import joined_from
from mzseek.evidence.queries import lists_from, spectra_from, with_lists


def test_the_rows_of_a_setting_are_its_lists(small: Prepared) -> None:
    queries = small.in_fold("val")[::-1]
    joined = joined_from(small, queries, ["mass", "formula"], spectra_from(small, queries), jobs=1)
    named = np.array(joined.lists.molecules.smiles)
    for setting in ("mass", "formula"):
        usable = with_lists(small, queries, setting, "fingerprint")
        here = np.flatnonzero(np.isin(queries, usable))
        rows, counts = joined.rows(setting, here)
        lists, _ = lists_from(small, queries[here], setting, jobs=1)
        assert np.array_equal(counts, lists.counts)
        expected = np.array(lists.molecules.smiles)[lists.candidates]
        assert named[joined.lists.candidates[rows]].tolist() == expected.tolist()
        owner = np.repeat(here, counts)
        assert np.array_equal(joined.lists.ragged.list_index[rows], owner)


def test_what_lists_share_is_there_once(small: Prepared) -> None:
    queries = small.in_fold("val")[:3]
    one = joined_from(small, queries, ["mass"], spectra_from(small, queries), jobs=1)
    two = joined_from(small, queries, ["mass", "mass"], spectra_from(small, queries), jobs=1)
    assert two.lists.members.tolist() == one.lists.members.tolist()
    for start, end in zip(one.lists.pointers[:-1], one.lists.pointers[1:], strict=True):
        own = one.lists.members[start:end]
        assert len(np.unique(own)) == len(own)
