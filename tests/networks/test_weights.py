import numpy as np
import pytest

from mzseek.errors import ModelError
from mzseek.networks.weights import Weights


def test_weights_are_taken_by_name_as_float32() -> None:
    weights = Weights({"a.b": np.ones((2, 3)), "c": np.ones(1, np.float16)})
    taken = weights.under("a").take("b", (2, 3))
    assert (taken.dtype, taken.tolist()) == (np.float32, [[1, 1, 1]] * 2)
    assert weights.take("c", (1,)).dtype == np.float32
    weights.check_all_taken()


def test_what_is_missing_of_another_shape_or_no_number_is_refused_by_its_full_name() -> None:
    weights = Weights({"a.b": np.ones((2, 3)), "a.n": np.ones(2, np.int64)}).under("a")
    with pytest.raises(ModelError, match=r"^it lacks a\.c$"):
        weights.take("c", (1,))
    with pytest.raises(ModelError, match=r"^a\.b is float64 of \(2, 3\), expected .* of \(3, 2\)$"):
        weights.take("b", (3, 2))
    with pytest.raises(ModelError, match=r"^a\.n is int64 of \(2,\), expected numbers of \(2,\)$"):
        weights.take("n", (2,))


def test_what_nobody_took_is_refused() -> None:
    weights = Weights({"a": np.ones(1), "b.c": np.ones(1)})
    weights.take("a", (1,))
    with pytest.raises(ModelError, match=r"^it holds b\.c$"):
        weights.check_all_taken()
