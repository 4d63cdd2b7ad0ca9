import numpy as np
import pytest
from scipy.sparse import csr_array

from mzseek.chem import fingerprints
from mzseek.core.errors import EvidenceError
from mzseek.evidence.decoys import DecoyLists, cross_fit_scores, structure_groups, tune_penalty
from mzseek.similarity import tanimoto_blocks

from ...molecules import MOLECULES
from .conftest import with_other_truths


def taken_apart(lists: DecoyLists) -> list[list[tuple[list[float], bool]]]:
    """Features and label of each candidate, list by list, by a plain loop."""
    found, place = [], 0
    for count in lists.counts.tolist():
        span = range(place, place + count)
        found.append(
            [(lists.rows[[lists.members[n]]].toarray()[0].tolist(), bool(lists.labels[n]))
             for n in span]
        )  # fmt: skip
        place += count
    return found


def small_lists() -> DecoyLists:
    rows = csr_array(np.arange(12.0).reshape(6, 2))
    members, labels = np.array([0, 1, 2, 3, 1, 5, 0]), np.array([1, 0, 0, 1, 0, 0, 1], bool)
    return DecoyLists(rows, members, np.array([3, 3, 1]), labels)


def test_some_lists_are_what_they_were() -> None:
    lists = small_lists()
    whole = taken_apart(lists)
    for which in ([0, 1, 2], [1], [2, 0], []):
        found = lists.only(np.array(which, np.int64))
        assert taken_apart(found) == [whole[n] for n in which]
        assert found.rows.shape[0] == len({lists.members[n] for n in lists.candidates(
            np.array(which, np.int64)).tolist()})  # fmt: skip


def test_some_candidates_of_some_lists() -> None:
    lists = small_lists()
    found = lists.only(np.array([1, 0]), np.array([5, 3, 0, 2]))
    whole = taken_apart(lists)
    assert taken_apart(found) == [[whole[1][2], whole[1][0]], [whole[0][0], whole[0][2]]]


def test_cut_lists_keep_their_truths(simulate) -> None:
    lists = simulate(0, lists=50).lists
    cut = lists.at_most(8, 0)
    assert cut.counts.tolist() == [8] * 50
    assert (cut.ragged.sum(cut.labels, np.int64) == 1).all()
    assert lists.at_most(1000, 0).counts.tolist() == lists.counts.tolist()
    before, after = taken_apart(lists), taken_apart(cut)
    assert all(each in all_of for all_of, some in zip(before, after, strict=True) for each in some)
    assert taken_apart(lists.at_most(8, 0)) == after != taken_apart(lists.at_most(8, 1))


def test_cut_lists_teach_the_same(simulate) -> None:
    simulated = simulate(1, lists=1500)
    blind = simulated.lists.at_most(15, 0).fit(1e-3)
    assert np.corrcoef(simulated.lists.scores(blind), simulated.prior)[0, 1] > 0.95


def test_the_penalty_is_the_best_for_others(simulate) -> None:
    lists = simulate(2, lists=200).lists
    taught, others = lists.only(np.arange(80)), lists.only(np.arange(80, 200))
    strengths = (1.0, 0.1, 0.01, 1e-3, 1e-4)
    values = [others.log_p(taught.fit(l2)).mean() for l2 in strengths]
    assert 0 < int(np.argmax(values)) < len(strengths) - 1
    assert tune_penalty(taught, others, strengths).l2 == strengths[int(np.argmax(values))]
    with pytest.raises(EvidenceError, match="no strength"):
        tune_penalty(taught, others, ())


def test_no_list_is_scored_by_what_learned_from_its_group(simulate) -> None:
    """Other truths in a group change no score of that group's lists, and change all others."""
    lists = simulate(3, lists=60).lists
    groups = np.repeat([-1, 0, 1, 2], 15)
    taught = lists.only(np.arange(15, 60))

    def scores(changed: int | None) -> np.ndarray:
        given = with_other_truths(taught, np.flatnonzero(groups[15:] == changed))
        return cross_fit_scores(lists, groups, given, groups[15:], given.fit(0.03))

    plain, owner = scores(None), groups[lists.ragged.list_index]
    for group in (0, 1, 2):
        other = scores(group)
        assert (other[owner == group] == plain[owner == group]).all()
        for rest in {-1, 0, 1, 2} - {group}:
            assert not np.allclose(other[owner == rest], plain[owner == rest])


def test_groups_part_no_two_that_are_alike() -> None:
    rows = fingerprints(MOLECULES[:300], "morgan2")
    teaches = np.arange(300) % 3 > 0
    groups = structure_groups(rows, teaches)
    alike = np.vstack([block for _, block in tanimoto_blocks(rows, rows)]) >= 0.6
    assert alike[~np.eye(300, dtype=bool)].any()
    for one, other in zip(*np.nonzero(alike), strict=True):
        assert groups[one] == groups[other]
    assert set(groups[teaches].tolist()) == {0, 1, 2, 3, 4}
    assert (groups[~teaches] == -1).any()
    # A molecule that teaches nothing itself may be like one that does.
    near = alike[:, teaches].any(axis=1)
    assert ((groups >= 0) >= near).all()


def test_what_is_all_alike_cannot_be_parted() -> None:
    rows = csr_array(np.ones((4, 8), np.int32))
    with pytest.raises(EvidenceError, match="4 molecules to learn from, in 1 structure cluster"):
        structure_groups(rows, np.ones(4, bool))
    with pytest.raises(EvidenceError, match="0 molecules to learn from"):
        structure_groups(rows, np.zeros(4, bool))
    two = csr_array(np.array([[1, 1, 0, 0], [0, 0, 1, 1]], np.int32))
    assert sorted(structure_groups(two, np.ones(2, bool)).tolist()) == [0, 1]
