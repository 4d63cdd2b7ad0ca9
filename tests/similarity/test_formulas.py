import numpy as np
import pytest

from mzseek.similarity import bit_agreement_of, cosine_of, f1_of, minmax_of, tanimoto_of


@pytest.mark.parametrize("formula", [tanimoto_of, cosine_of, f1_of])
def test_two_zero_vectors_are_equal_and_one_has_nothing_in_common(formula) -> None:
    assert formula([0, 0, 0], [0, 0, 3], [0, 2, 0]).tolist() == [1, 0, 0]


def test_zero_vectors_under_the_other_statistics() -> None:
    assert minmax_of([0, 5], [0, 5]).tolist() == [1, 0]
    assert bit_agreement_of([0, 0], [0, 0], [0, 5], bits=5).tolist() == [1, 0]
    assert bit_agreement_of([0], [0], [0], bits=0).tolist() == [1]


@pytest.mark.parametrize("formula", [tanimoto_of, cosine_of, f1_of])
def test_arguments_broadcast_and_float32_stays(formula) -> None:
    dot = np.array([[1, 0], [2, 0]], dtype=np.float32)
    got = formula(dot, np.float32([[1], [2]]), np.float32([[2, 0]]))
    assert got.dtype == np.float32
    for i in range(2):
        for j in range(2):
            assert got[i, j] == pytest.approx(formula(dot[i, j], [1, 2][i], [2, 0][j]).item())


def test_small_integers_do_not_overflow() -> None:
    sizes = np.array([200], dtype=np.uint8)
    assert tanimoto_of(sizes, sizes, sizes).tolist() == [1]
    assert f1_of(sizes, sizes, sizes).tolist() == [1]
    assert cosine_of(sizes, sizes, sizes).tolist() == [1]


def test_values_by_hand() -> None:
    # 110 against 011
    assert tanimoto_of(1, 2, 2) == pytest.approx(1 / 3)
    assert cosine_of(1, 2, 2) == pytest.approx(1 / 2)
    assert f1_of(1, 2, 2) == pytest.approx(1 / 2)
    assert bit_agreement_of(1, 2, 2, bits=3) == pytest.approx(1 / 3)
    assert minmax_of(4, 2) == pytest.approx(1 / 3)
