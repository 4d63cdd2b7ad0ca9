import pytest
import torch

from mzseek.tensors import query_index, spread


@pytest.mark.parametrize("shape", [(4,), (4, 3)])
def test_it_is_indexing_with_gradients(shape: tuple[int, ...]) -> None:
    values = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    counts = torch.tensor([2, 0, 3, 1])
    assert torch.equal(spread(values, counts), values[query_index(counts)])
    assert torch.autograd.gradcheck(lambda v: spread(v, counts).square(), values)


def test_no_candidates_at_all() -> None:
    values = torch.randn(2, 3, requires_grad=True)
    spread(values, torch.tensor([0, 0])).sum().backward()
    assert torch.equal(values.grad, torch.zeros(2, 3))


def test_two_threads_give_the_same_gradient_every_time() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        counts = torch.full((64,), 253)
        weights = torch.randn(64 * 253, 256)
        found = []
        for _ in range(5):
            values = torch.ones(64, 256, requires_grad=True)
            (spread(values, counts) * weights).sum().backward()
            found.append(values.grad)
        assert all(torch.equal(found[0], other) for other in found[1:])
    finally:
        torch.set_num_threads(before)
