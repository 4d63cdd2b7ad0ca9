import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from mzseek.core.errors import DecisionError, MzseekError
from mzseek.decision import distribution, top_k

from .conftest import FORMS, candidate_sets


@given(candidate_sets())
def test_equal_rows_become_one_and_keep_their_probability(found) -> None:
    rows, p = found
    known = distribution(rows, p)
    kept = [tuple(known.bits_of(i)) for i in range(len(known))]
    assert kept == list(dict.fromkeys(map(tuple, rows.tolist()))), "in the order of the first"
    for bits, probability, row in zip(kept, known.probabilities, known.rows, strict=True):
        mine = np.flatnonzero((rows == bits).all(1))
        assert probability == pytest.approx(p[mine].sum(), abs=1e-12)
        assert probability <= 1
        assert row == mine[np.argmax(p[mine])], "the most probable, of several the first"


@given(candidate_sets())
def test_the_statistics_are_what_counting_says(found) -> None:
    rows, p = found
    known = distribution(rows, p)
    dense = np.array([known.bits_of(i) for i in range(len(known))])
    q = known.probabilities
    assert known.sizes.tolist() == dense.sum(1).tolist()
    assert known.marginals == pytest.approx(p @ rows, abs=1e-12)
    assert known.probability_of_zero == pytest.approx(p[rows.sum(1) == 0].sum(), abs=1e-12)
    assert known.used.tolist() == rows.any(0).tolist()
    assert known.overlaps.tolist() == (dense.astype(int) @ dense.T).tolist()
    assert dict(zip(*map(np.ndarray.tolist, known.by_size), strict=True)) == pytest.approx(
        {size: q[dense.sum(1) == size].sum() for size in dense.sum(1)}
    )
    assert known.sums_over_bits(known.marginals) == pytest.approx(dense @ (p @ rows), abs=1e-12)


@given(candidate_sets(), st.data())
def test_a_fingerprint_is_found_among_the_rows_or_not_at_all(found, data) -> None:
    known = distribution(*found)
    bits = np.array(data.draw(st.lists(st.integers(0, 1), min_size=known.width,
                                       max_size=known.width)), np.uint8)  # fmt: skip
    place = known.place_of(bits)
    kept = [known.bits_of(i).tolist() for i in range(len(known))]
    assert (place is None) == (bits.tolist() not in kept)
    assert place is None or kept[place] == bits.tolist()
    assert [known.place_of(known.bits_of(i)) for i in range(len(known))] == list(range(len(known)))


@pytest.mark.parametrize("form", FORMS)
@given(found=candidate_sets())
def test_every_form_of_the_same_bits_gives_the_same(form: str, found) -> None:
    rows, p = found
    given = FORMS[form](rows)
    before = copy.deepcopy(given)
    one, other = distribution(rows, p), distribution(given, p.tolist())
    assert one.width == other.width
    for name in ("indptr", "indices", "probabilities", "rows"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    for name in ("data", "indices", "indptr"):  # the arguments are left as they were
        if hasattr(given, "indptr"):
            assert getattr(given, name).tolist() == getattr(before, name).tolist()


def test_a_bit_set_twice_in_flags_is_set() -> None:
    twice = csr_array((np.ones(3, bool), np.array([1, 1, 0]), np.array([0, 2, 3])), (2, 3))
    assert twice.toarray().tolist() == [[False, True, False], [True, False, False]]
    assert top_k(twice, [0.4, 0.6], k=2).tolist() == [1, 0]


def test_sums_that_are_nearly_one_become_one() -> None:
    assert distribution([[1], [0]], [0.5, 0.5 + 9e-7]).probabilities.sum() == pytest.approx(
        1, 1e-15
    )


@pytest.mark.parametrize(
    ("rows", "p", "reason"),
    [
        ([[1, 0], [0, 1]], [0.5, np.nan], "hold a value that is not finite"),
        ([[1, 0], [0, 1]], [0.5, np.inf], "hold a value that is not finite"),
        ([[1, 0], [0, 1]], [1.5, -0.5], "probability -0.5 is negative"),
        ([[1, 0], [0, 1]], [0.5, 0.6], r"sum to 1.1, expected 1"),
        ([[1, 0], [0, 1]], [0.0, 0.0], "sum to 0, expected 1"),
        ([[1, 0], [0, 1]], [1.0], r"shape \(1,\), expected \(2,\)"),
        ([[1, 0], [0, 1]], [[0.5, 0.5]], r"shape \(1, 2\), expected \(2,\)"),
        ([[1, 0], [0, 1]], ["a", "b"], "probabilities are no numbers"),
        ([[1, 0], [0, 1]], [[0.5], [0.2, 0.3]], "probabilities are no numbers"),
        (np.zeros((0, 3)), [], "no candidates"),
        (csr_array((0, 3)), [], "no candidates"),
        ([[1, 2]], [1.0], "hold 2, expected 0 or 1"),
        ([[1, -1]], [1.0], "hold -1, expected 0 or 1"),
        ([[0.5, 1]], [1.0], "hold 0.5, expected 0 or 1"),
        ([[np.nan, 1]], [1.0], "hold nan, expected 0 or 1"),
        (csr_array([[0.5, 1]]), [1.0], "hold 0.5, expected 0 or 1"),
        (csr_array([[np.nan, 1]]), [1.0], "hold nan, expected 0 or 1"),
        (csr_array(([1, 1], [0, 0], [0, 2]), (1, 2)), [1.0], "hold 2, expected 0 or 1"),
        (np.zeros((1, 2, 3)), [1.0], "3 dimensions"),
        ([["C", "O"]], [1.0], "expected numbers"),
        ([[1, 0], [1]], [0.5, 0.5], "fingerprints"),
    ],
)
def test_what_is_no_distribution_is_refused_in_one_line(rows, p, reason: str) -> None:
    with pytest.raises(DecisionError, match=reason) as caught:
        distribution(rows, p)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, MzseekError)
