import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array, csr_matrix

from mzseek.core.errors import MetricError, MzseekError
from mzseek.metrics import binarise, bit_accuracy, tanimoto

FORMS = [np.asarray, csr_array, csr_matrix]
pairs = st.tuples(st.integers(1, 4), st.integers(1, 7)).flatmap(
    lambda shape: st.tuples(*[arrays(np.uint8, shape, elements=st.integers(0, 1))] * 2)
)


@given(pairs, st.tuples(*[st.sampled_from(FORMS)] * 2))
def test_bits_are_compared_as_sets(pair, forms) -> None:
    one, other = forms[0](pair[0]), forms[1](pair[1])
    for i, (a, b) in enumerate(zip(*pair, strict=True)):
        union = int((a | b).sum())
        common = int((a & b).sum())
        assert tanimoto(one, other)[i] == pytest.approx(common / union if union else 1)
        assert bit_accuracy(one, other)[i] == pytest.approx(np.mean(a == b))


def test_the_threshold_itself_is_not_above_it() -> None:
    predicted = np.array([[0.5, np.nextafter(0.5, 1), 0.0, 1.0]])
    assert binarise(predicted).tolist() == [[0, 1, 0, 1]]
    assert binarise(predicted, 0.0).tolist() == [[1, 1, 0, 1]]
    assert binarise(predicted[0]).shape == (1, 4)


@given(arrays(float, (3, 5), elements=st.floats(0, 1)), st.floats(0, 1))
def test_sparse_predictions_stay_sparse(predicted: np.ndarray, threshold: float) -> None:
    sparse = csr_array(predicted)
    got = binarise(sparse, threshold)
    assert got.toarray().tolist() == binarise(predicted, threshold).tolist()
    assert got.dtype == np.uint8
    assert (got.data == 1).all()
    assert (sparse.toarray() == predicted).all(), "the argument is left as it was"


@pytest.mark.parametrize("metric", [tanimoto, bit_accuracy])
@pytest.mark.parametrize("form", FORMS)
def test_probabilities_are_no_bits(metric, form) -> None:
    bits = form(np.array([[0.0, 1.0], [1.0, 1.0]]))
    probabilities = form(np.array([[0.0, 1.0], [1.0, 0.25]]))
    with pytest.raises(MetricError, match=r"predicted bits hold 0\.25 in row 1.*binarise"):
        metric(probabilities, bits)
    with pytest.raises(MetricError, match=r"true bits hold 0\.25 in row 1"):
        metric(bits, probabilities)


def test_what_is_refused() -> None:
    with pytest.raises(MetricError, match="NaN"):
        binarise([[0.1, np.nan]])
    with pytest.raises(MetricError, match="at least 0 for sparse rows"):
        binarise(csr_array([[0.0, 1.0]]), -0.5)
    with pytest.raises(MzseekError, match="expected the same"):
        bit_accuracy(np.zeros((2, 3)), np.zeros((2, 4)))


@pytest.mark.shared
def test_tanimoto_as_published(published) -> None:
    arrays, wanted, _, truths = published
    got = tanimoto(binarise(arrays["pred_fp"]), truths)
    np.testing.assert_allclose(got, wanted["tanimoto_binarised"], rtol=1e-6)
