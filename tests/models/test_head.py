import pytest
import torch
import torch.nn.functional as F

from mzseek.core.errors import ModelError
from mzseek.models import FingerprintHead


def test_logits_are_a_linear_layer() -> None:
    head = FingerprintHead(5, 9)
    x = torch.randn(4, 5)
    torch.testing.assert_close(head(x), F.linear(x, head.weight, head.bias))


def test_an_untrained_head_starts_at_the_base_rates() -> None:
    head = FingerprintHead(5, 4)
    weight = head.weight.detach().clone()
    frequency = torch.tensor([0.02, 0.5, 0.25, 0.9], dtype=torch.float64)
    head.start_at(frequency, molecules=1000)
    torch.testing.assert_close(torch.sigmoid(head(torch.zeros(1, 5)))[0], frequency.float())
    assert torch.equal(head.weight, weight)
    assert head.bias.requires_grad


def test_rates_keep_half_a_count_from_never_and_always() -> None:
    head = FingerprintHead(5, 4)
    head.start_at(torch.tensor([0.0, 1.0, 0.01, 0.5]), molecules=10)
    got = torch.sigmoid(head.bias.detach())
    torch.testing.assert_close(got, torch.tensor([0.05, 0.95, 0.05, 0.5]))


def test_another_number_of_bits_is_refused() -> None:
    with pytest.raises(ModelError, match="3 bit frequencies, expected one for each of 4 bits"):
        FingerprintHead(5, 4).start_at(torch.zeros(3), molecules=10)
