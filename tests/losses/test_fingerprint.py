from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array
from torch.autograd import gradcheck

from mzseek.core.errors import LossError
from mzseek.losses import bce, cosine, focal, iou
from mzseek.tensors import SparseRows

LOSSES = pytest.mark.parametrize("loss", [bce, focal, cosine, iou])
FORMS = pytest.mark.parametrize("form", ["dense", "sparse"])
GAMMAS = pytest.mark.parametrize("gamma", [0, 0.5, 1, 2, 5])
PUBLISHED = {
    "bce": bce, "cosine": cosine, "iou": iou,
    **{f"focal_gamma{gamma}": partial(focal, gamma=gamma) for gamma in (0.5, 2.0, 5.0)},
}  # fmt: skip
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


def empty_rows(*shape: int) -> SparseRows:
    return SparseRows.from_csr(csr_array(shape), binary=True)


@LOSSES
@pytest.mark.parametrize(
    ("logits", "target", "message"),
    [
        (
            torch.zeros(2, 3),
            torch.zeros(2, 4),
            r"logits \(2, 3\) and target \(2, 4\): expected two",
        ),
        (torch.zeros(2, 3), torch.zeros(1, 3), "expected two equal shapes"),
        (torch.zeros(3), torch.zeros(3), "expected two equal shapes"),
        (torch.zeros(2, 3), empty_rows(2, 4), "expected two equal shapes"),
        (torch.zeros(0, 4), torch.zeros(0, 4), "logits are empty, expected at least one row"),
        (torch.zeros(4, 0), torch.zeros(4, 0), "logits are empty"),
        (torch.zeros(2, 3).long(), torch.zeros(2, 3), r"logits are torch\.int64, expected floats"),
    ],
)
def test_what_is_refused(loss, logits, target, message: str) -> None:
    with pytest.raises(LossError, match=message):
        loss(logits, target)


@pytest.mark.parametrize("loss", [cosine, iou])
@pytest.mark.parametrize(("logit", "cost"), [(0.0, 1), (-1e4, 0)])
def test_a_truth_without_bits_is_like_no_bits_alone(loss, logit: float, cost: int) -> None:
    logits = torch.full((1, 3), logit, requires_grad=True)
    value = loss(logits, torch.zeros(1, 3))
    assert value.item() == cost
    value.backward()
    assert logits.grad.tolist() == [[0, 0, 0]]


@LOSSES
def test_sparse_values_are_read_as_ones_or_refused(loss) -> None:
    matrix = np.array([[0, 1.0, 0], [1.0, 1.0, 0]])
    logits = torch.zeros(2, 3)
    ones = loss(logits, SparseRows.from_csr(csr_array(matrix)))
    assert ones == loss(logits, SparseRows.from_csr(csr_array(matrix), binary=True))
    with pytest.raises(LossError, match="sparse target holds values other than 1, expected a 0/1"):
        loss(logits, SparseRows.from_csr(csr_array(matrix / 2)))


@GAMMAS
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@FORMS
def test_extreme_logits_have_finite_gradients(gamma: float, dtype, form: str) -> None:
    logits = torch.tensor([[-1e4, -1e4, 1e4, 1e4, 0.0, 0.0]], dtype=dtype, requires_grad=True)
    bits = np.array([[0.0, 1, 0, 1, 0, 1]])
    target = (
        torch.from_numpy(bits).to(dtype)
        if form == "dense"
        else SparseRows.from_csr(csr_array(bits), binary=True)
    )
    focal(logits, target, gamma).backward()
    assert logits.grad.isfinite().all()
    # Right and sure costs nothing more; wrong and sure costs as much as in BCE.
    assert logits.grad[0, :4].tolist() == pytest.approx([0, -1 / 6, 1 / 6, 0])


@pytest.mark.parametrize("gamma", [-0.5, float("nan")])
def test_gamma_must_not_be_negative(gamma: float) -> None:
    with pytest.raises(LossError, match=f"gamma is {gamma:g}, expected 0 or more"):
        focal(torch.zeros(1, 2), torch.zeros(1, 2), gamma)


@pytest.mark.shared
@FORMS
@pytest.mark.parametrize("name", PUBLISHED)
def test_as_published(golden, name: str, form: str) -> None:
    golden.assert_equals(name, lambda e: PUBLISHED[name](golden.logits(e), golden.truths[form]))


def by_definition(name: str, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The losses as torch has them, or in plain products."""
    predicted = torch.sigmoid(logits)
    cost = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    if name == "cosine":
        return 1 - F.cosine_similarity(predicted, target).mean()
    if name == "iou":
        common = (predicted * target).sum(1)
        return 1 - (common / (predicted.sum(1) + target.sum(1) - common)).mean()
    return ((1 - torch.exp(-cost)) ** float(name) * cost).mean()


@pytest.mark.parametrize("name", ["cosine", "iou", "0", "0.5", "1", "2", "5"])
@FORMS
def test_equals_its_definition(name: str, form: str) -> None:
    """A number stands for γ of the focal loss; without it, the loss is bce."""
    generator = torch.Generator().manual_seed(0)
    logits = 4 * torch.randn(3, 20, generator=generator, dtype=torch.float64)
    logits.requires_grad_()
    target = torch.randint(0, 2, (3, 20), generator=generator).double()
    read = dict(zip(("dense", "sparse"), both_forms(target.numpy()), strict=True))[form]
    wanted = by_definition(name, logits, target)
    losses = {"cosine": [cosine], "iou": [iou], "0": [bce, partial(focal, gamma=0)], "2": [focal]}
    for loss in losses.get(name, [partial(focal, gamma=float(name if name[0].isdigit() else 0))]):
        got = loss(logits, read)
        torch.testing.assert_close(got, wanted, rtol=1e-10, atol=0)
        gradients = [
            torch.autograd.grad(each, logits, retain_graph=True)[0] for each in (got, wanted)
        ]
        torch.testing.assert_close(*gradients, rtol=1e-8, atol=1e-14)


def test_bce_takes_probabilities_as_targets() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 8 * torch.randn(3, 20, generator=generator, dtype=torch.float64)
    target = torch.rand(3, 20, generator=generator, dtype=torch.float64)
    wanted = F.binary_cross_entropy_with_logits(logits, target)
    torch.testing.assert_close(bce(logits, target), wanted, rtol=1e-12, atol=0)
