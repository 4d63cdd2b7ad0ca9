import numpy as np
import pytest

from mzseek.core.errors import DecisionError
from mzseek.core.ragged import Ragged
from mzseek.decision.calibration import checked_labels, checked_lists, list_weights, merge_answers


def test_lists_start_where_the_one_before_ends() -> None:
    values, lists = checked_lists([1, 2, 3, 4, 5, 6], [2, 1, 3], "scores")
    assert values.dtype == np.float64
    assert (lists.counts.tolist(), lists.starts.tolist()) == ([2, 1, 3], [0, 2, 3])


@pytest.mark.parametrize(
    ("values", "counts", "reason"),
    [
        ([1.0, np.nan], [2], "scores hold a value that is not finite"),
        ([1.0, -np.inf], [2], "scores hold a value that is not finite"),
        ([1.0, 2.0], [3], "counts sum to 3, but there are 2 scores"),
        ([1.0, 2.0], [2, 0], "list 1 has no candidates"),
        ([1.0, 2.0], [3, -1], "list 1 has no candidates"),
        ([], np.array([], int), "no lists, expected at least one"),
        ([[1.0, 2.0]], [2], "must be one-dimensional"),
        ([1.0, 2.0], 2, "must be one-dimensional"),
        ([1.0, 2.0], [2.0], "counts whole numbers"),
        (["a", "b"], [2], "scores are no numbers"),
        ([[1.0], [1.0, 2.0]], [2], "scores are no numbers"),
    ],
)
def test_what_are_no_lists_is_refused_in_one_line(values, counts, reason: str) -> None:
    with pytest.raises(DecisionError, match=reason) as caught:
        checked_lists(values, counts, "scores")
    assert "\n" not in str(caught.value)


def test_labels_are_flags_of_candidates() -> None:
    lists = Ragged(np.array([2, 1]))
    assert checked_labels([0, 1, 1], lists).tolist() == [False, True, True]
    with pytest.raises(DecisionError, match="list 1 has no labelled candidate"):
        checked_labels([0, 1, 0], lists)
    with pytest.raises(DecisionError, match=r"labels have shape \(2,\), expected \(3,\)"):
        checked_labels([0, 1], lists)


def test_each_group_weighs_one() -> None:
    assert list_weights(None, 3).tolist() == [1, 1, 1]
    assert list_weights(["a", "b", "a", "a"], 4) == pytest.approx([1 / 3, 1, 1 / 3, 1 / 3])
    with pytest.raises(DecisionError, match=r"groups have shape \(2,\), expected \(3,\)"):
        list_weights([1, 2], 3)


def test_groups_of_several_types_are_refused() -> None:
    with pytest.raises(DecisionError, match="groups"):
        list_weights(np.array(["a", None], dtype=object), 2)


def test_equal_answers_are_one_in_each_list() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 9, size=40)
    p = rng.random(counts.sum())
    answers = rng.integers(0, 4, size=len(p))  # the same number in another list is another answer
    merged, lengths, labels = merge_answers(p, counts, answers, answers == 2)
    wanted: list[tuple[float, bool]] = []
    sizes = []
    for end, count in zip(np.cumsum(counts), counts, strict=True):
        here = slice(end - count, end)
        sums: dict[int, float] = {}
        for answer, each in zip(answers[here].tolist(), p[here], strict=True):
            sums[answer] = sums.get(answer, 0.0) + each
        wanted += [(total, answer == 2) for answer, total in sums.items()]
        sizes.append(len(sums))
    assert lengths.tolist() == sizes
    assert merged == pytest.approx([total for total, _ in wanted])
    assert labels.tolist() == [label for _, label in wanted]


@pytest.mark.parametrize(
    "answers", [[3, 1, 2, 0], [b"d", b"b", b"c", b"a"]], ids=["numbers", "keys"]
)
def test_different_answers_stay_as_they_are(answers) -> None:
    p, flags = np.array([0.1, 0.9, 0.4, 0.6]), np.array([True, False, False, True])
    merged, counts, labels = merge_answers(p, np.array([2, 2]), np.array(answers), flags)
    assert merged.tolist() == p.tolist()
    assert counts.tolist() == [2, 2]
    assert labels.tolist() == flags.tolist()
