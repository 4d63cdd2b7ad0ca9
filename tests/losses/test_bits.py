import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array
from torch.autograd import gradcheck

from mzseek.core.errors import LossError
from mzseek.losses import bce, cosine, focal, iou
from mzseek.losses.fingerprint import at_set_bits
from mzseek.tensors import SparseRows

LOSSES = pytest.mark.parametrize("loss", [bce, focal, cosine, iou])
shapes = st.tuples(st.integers(1, 4), st.integers(1, 6))
usual = st.floats(-6, 6, width=32)


@st.composite
def batches(draw, logits=usual):
    """Logits and 0/1 targets, rows without a bit among them."""
    shape = draw(shapes)
    target = draw(arrays(np.float32, shape, elements=st.integers(0, 1)))
    target[draw(arrays(bool, shape[0]))] = 0
    return torch.from_numpy(draw(arrays(np.float32, shape, elements=logits))), target


def both_forms(target: np.ndarray) -> list:
    return [torch.from_numpy(target), SparseRows.from_csr(csr_array(target), binary=True)]


def value_and_gradient(loss, logits: torch.Tensor, target) -> tuple[torch.Tensor, torch.Tensor]:
    logits = logits.clone().requires_grad_()
    value = loss(logits, target)
    return value.detach(), torch.autograd.grad(value, logits)[0]


@LOSSES
@settings(deadline=None)
@given(batches())
def test_sparse_targets_give_what_dense_ones_do(loss, batch) -> None:
    logits, target = batch
    dense, sparse = both_forms(target)
    exact = value_and_gradient(loss, logits.double(), dense.double())
    torch.testing.assert_close(
        value_and_gradient(loss, logits.double(), sparse), exact, rtol=1e-10, atol=1e-12
    )
    for form in (dense, dense.bool(), sparse):
        single = value_and_gradient(loss, logits, form)
        assert single[0].dtype == torch.float32
        torch.testing.assert_close(
            single, tuple(each.float() for each in exact), rtol=1e-5, atol=1e-6
        )


@LOSSES
@pytest.mark.parametrize("form", [0, 1])
def test_gradcheck(loss, form: int) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    target = both_forms(np.array([[1, 0, 1, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], float))
    assert gradcheck(lambda each: loss(each, target[form]), logits)


@LOSSES
@settings(deadline=None)
@given(batches(logits=st.sampled_from([-1e4, -90.0, -50.0, -20.0, 0.0, 20.0, 50.0, 90.0, 1e4])))
def test_extreme_logits_and_zero_rows_stay_finite(loss, batch) -> None:
    logits, target = batch
    for form in both_forms(target):
        value, gradient = value_and_gradient(loss, logits, form)
        assert value.isfinite()
        assert gradient.isfinite().all()


@LOSSES
def test_a_sure_and_right_prediction_costs_nothing_and_a_wrong_one_much(loss) -> None:
    target = np.array([[1, 0, 0, 1], [0, 1, 0, 0]], np.float32)
    sure = torch.from_numpy(target * 60 - 30)
    for form in both_forms(target):
        assert loss(sure, form).item() == pytest.approx(0, abs=1e-6)
        assert loss(-sure, form).item() > 0.9


@LOSSES
def test_the_mean_over_the_batch_is_that_of_its_rows(loss) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 7, generator=generator, dtype=torch.float64)
    target = torch.randint(0, 2, (4, 7), generator=generator).double()
    each = [loss(logits[i : i + 1], target[i : i + 1]) for i in range(4)]
    torch.testing.assert_close(loss(logits, target), torch.stack(each).mean())


@LOSSES
@pytest.mark.parametrize(
    ("logits", "target"),
    [((2, 3), (2, 4)), ((2, 3), (1, 3)), ((2, 3), (2, 1)), ((3,), (3,)), ((2, 3, 1), (2, 3, 1))],
)
def test_shapes_that_would_broadcast_are_refused(loss, logits, target) -> None:
    with pytest.raises(LossError, match=r"logits \(.*\) and target \(.*expected two equal shapes"):
        loss(torch.zeros(logits), torch.zeros(target))


@LOSSES
def test_sparse_targets_of_another_shape_are_refused(loss) -> None:
    with pytest.raises(LossError, match=r"logits \(2, 3\) and target \(2, 4\): expected two equal"):
        loss(torch.zeros(2, 3), SparseRows.from_csr(csr_array((2, 4)), binary=True))


@LOSSES
@pytest.mark.parametrize("shape", [(0, 4), (4, 0)])
def test_empty_input_is_refused(loss, shape) -> None:
    with pytest.raises(LossError, match="logits are empty, expected at least one row and one bit"):
        loss(torch.zeros(shape), torch.zeros(shape))


@LOSSES
def test_whole_numbers_are_no_logits(loss) -> None:
    with pytest.raises(LossError, match=r"logits are torch\.int64, expected floats"):
        loss(torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, 3))


@LOSSES
def test_sparse_values_are_read_as_ones_or_refused(loss) -> None:
    matrix = np.array([[0, 1.0, 0], [1.0, 1.0, 0]])
    logits = torch.zeros(2, 3)
    ones = loss(logits, SparseRows.from_csr(csr_array(matrix)))
    assert ones == loss(logits, SparseRows.from_csr(csr_array(matrix), binary=True))
    with pytest.raises(LossError, match="sparse target holds values other than 1, expected a 0/1"):
        loss(logits, SparseRows.from_csr(csr_array(matrix / 2)))


def test_values_at_set_bits() -> None:
    values = torch.arange(6.0).view(2, 3)
    dense, sparse = both_forms(np.array([[0, 1, 0], [1, 0, 1]], np.float32))
    assert at_set_bits(values, sparse).tolist() == [1, 3, 5]
    assert at_set_bits(values, dense).tolist() == [[0, 1, 0], [3, 0, 5]]
    assert at_set_bits(values, dense / 2).tolist() == [[0, 0.5, 0], [1.5, 0, 2.5]]
