import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import coo_array, csr_array, csr_matrix

from mzseek import similarity as similarities
from mzseek.core.errors import MzseekError, SimilarityError
from mzseek.similarity import bit_agreement_of, cosine_of, f1_of, rows, tanimoto_of

from .conftest import SIMILARITIES

FORMS = [np.asarray, csr_array, csr_matrix, coo_array]
bits = st.integers(0, 1)
probabilities = st.integers(0, 64).map(lambda n: n / 64)  # sums of them are exact
shapes = st.tuples(st.integers(1, 5), st.integers(1, 8))


@st.composite
def pairs(draw, one=bits, other=bits):
    shape = draw(shapes)
    return draw(arrays(float, shape, elements=one)), draw(arrays(float, shape, elements=other))


def by_hand(name: str, a: np.ndarray, b: np.ndarray) -> float:
    """Each similarity as it is defined, for one pair."""
    if not a.any() or not b.any():
        return float(not a.any() and not b.any())
    if name == "cosine":
        return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))
    if name == "soft-tanimoto":
        return a @ b / (a.sum() + b.sum() - a @ b)
    if name == "minmax-tanimoto":
        return np.minimum(a, b).sum() / np.maximum(a, b).sum()
    one, other = set(np.flatnonzero(a)), set(np.flatnonzero(b))
    if name == "f1":
        return 2 * len(one & other) / (len(one) + len(other))
    return len(one & other) / len(one | other)


@pytest.mark.parametrize("name", SIMILARITIES)
@given(pair=pairs(probabilities, probabilities), forms=st.tuples(*[st.sampled_from(FORMS)] * 2))
def test_every_form_gives_what_the_definition_says(name: str, pair, forms) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_DENSE_ROWS", 2)
        patch.setattr(rows, "_SPARSE_ROWS", 3)
        got = SIMILARITIES[name](forms[0](pair[0]), forms[1](pair[1]))
    assert got.dtype == np.float64
    assert got.shape == (len(pair[0]),)
    np.testing.assert_allclose(got, [by_hand(name, *row) for row in zip(*pair, strict=True)], 1e-14)


@pytest.mark.parametrize("name", SIMILARITIES)
@pytest.mark.parametrize("form", FORMS)
def test_two_zero_rows_have_one_and_a_single_one_has_zero(name: str, form) -> None:
    a = form(np.array([[0, 0], [0, 0], [0, 1]]))
    b = form(np.array([[0, 0], [1, 0], [0, 0]]))
    assert SIMILARITIES[name](a, b).tolist() == [1, 0, 0]


@given(pairs(probabilities))
def test_minmax_is_the_product_form_where_one_row_is_binary(pair) -> None:
    np.testing.assert_allclose(
        similarities.minmax_tanimoto(*pair), similarities.soft_tanimoto(*pair), 1e-14
    )
    np.testing.assert_allclose(
        similarities.minmax_tanimoto(*pair[::-1]), similarities.soft_tanimoto(*pair[::-1]), 1e-14
    )


@pytest.mark.parametrize("name", ["cosine", "tanimoto", "minmax-tanimoto", "f1"])
@given(pair=pairs(probabilities, probabilities))
def test_a_row_has_exactly_one_with_itself(name: str, pair) -> None:
    assert (SIMILARITIES[name](pair[0], pair[0]) == 1).all()


@pytest.mark.parametrize("name", SIMILARITIES)
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
@given(pair=pairs())
def test_the_type_of_the_numbers_does_not_matter(name: str, dtype, pair) -> None:
    many = np.ones((1, 1000), dtype)  # whose sum no small integer holds
    assert SIMILARITIES[name](many, csr_array(many)).tolist() == [1]
    wanted = SIMILARITIES[name](*pair)
    one, other = (each.astype(dtype) for each in pair)
    assert SIMILARITIES[name](one, other).tolist() == wanted.tolist()
    assert SIMILARITIES[name](csr_array(one), csr_array(other)).tolist() == wanted.tolist()


def test_entries_given_twice_or_as_zero_are_what_they_sum_to() -> None:
    twice = csr_array((np.array([0.25, 0.25, 0.0]), np.array([1, 1, 2]), np.array([0, 3])), (1, 3))
    dense = np.array([[0.0, 0.5, 0.0]])
    other = np.array([[0.5, 0.5, 1.0]])
    for function in SIMILARITIES.values():
        assert function(twice, csr_array(other)).tolist() == function(dense, other).tolist()
        assert function(twice, other).tolist() == function(dense, other).tolist()
    assert twice.nnz == 3, "the argument is left as it was"


def test_single_rows_no_rows_negative_values_and_overlaps() -> None:
    assert similarities.tanimoto([1, 1, 0], csr_array([[0, 1, 1]])) == pytest.approx([1 / 3])
    assert similarities.cosine([[1.0, -1.0]], [[-1.0, 1.0]]) == pytest.approx(-1)
    for form in (np.asarray, csr_array):
        for function in SIMILARITIES.values():
            assert function(form(np.empty((0, 4))), np.empty((0, 4))).shape == (0,)
    found = similarities.overlap(np.array([[0.2, 0, 3]]), csr_array([[1, 1, 0]]))
    assert [values.tolist() for values in found] == [[1], [2], [2]]


@pytest.mark.parametrize("name", SIMILARITIES)
def test_other_shapes_are_refused_in_one_line(name: str) -> None:
    with pytest.raises(SimilarityError, match=r"\(2, 3\) and others \(2, 4\), expected the same"):
        SIMILARITIES[name](np.zeros((2, 3)), csr_array((2, 4)))
    with pytest.raises(ValueError, match="expected the same"):
        SIMILARITIES[name](np.zeros((1, 3)), np.zeros((2, 3)))
    with pytest.raises(MzseekError, match="others have 3 dimensions"):
        SIMILARITIES[name](np.zeros((1, 3)), np.zeros((1, 3, 1)))
    with pytest.raises(MzseekError, match="expected numbers"):
        SIMILARITIES[name](["CCO"], ["CCO"])


@pytest.mark.parametrize("formula", [tanimoto_of, cosine_of, f1_of])
def test_formulas_take_zeros_small_integers_and_broadcast(formula) -> None:
    assert formula([0, 0, 0], [0, 0, 3], [0, 2, 0]).tolist() == [1, 0, 0]
    sizes = np.array([200], dtype=np.uint8)
    assert formula(sizes, sizes, sizes).tolist() == [1]
    dot = np.array([[1, 0], [2, 0]], dtype=np.float32)
    found = formula(dot, np.float32([[1], [2]]), np.float32([[2, 0]]))
    assert found.dtype == np.float32
    expected = [[formula(dot[i, j], [1, 2][i], [2, 0][j]) for j in (0, 1)] for i in (0, 1)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_formulas_by_hand() -> None:
    # 110 against 011
    assert tanimoto_of(1, 2, 2) == pytest.approx(1 / 3)
    assert cosine_of(1, 2, 2) == pytest.approx(1 / 2)
    assert f1_of(1, 2, 2) == pytest.approx(1 / 2)
    assert bit_agreement_of(1, 2, 2, bits=3) == pytest.approx(1 / 3)
    assert bit_agreement_of([0, 0], [0, 0], [0, 5], bits=5).tolist() == [1, 0]
    assert bit_agreement_of([0], [0], [0], bits=0).tolist() == [1]


@pytest.mark.shared
def test_minmax_as_published(published) -> None:
    arrays, wanted, _, truths = published
    got = similarities.minmax_tanimoto(arrays["pred_fp"], truths)
    np.testing.assert_allclose(got, wanted["continuous_iou_minmax"], rtol=1e-9)
