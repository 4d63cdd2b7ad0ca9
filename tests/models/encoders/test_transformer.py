import pytest
import torch

from mzseek.models.configs import ENCODERS
from mzseek.models.encoders import PeakTransformer


@pytest.fixture
def encoder() -> PeakTransformer:
    torch.manual_seed(0)
    return PeakTransformer(width=6, tokens=16, layers=2, heads=4, dropout=0.25).eval()


def test_it_is_found_by_name() -> None:
    assert ENCODERS["transformer"].network is PeakTransformer
    assert PeakTransformer.kind is ENCODERS["transformer"]


def test_the_precursor_is_marked_as_such(encoder, peaks) -> None:
    """The last feature is one for it alone, so that its weights learn."""
    encoder(peaks).square().sum().backward()
    assert encoder.embed.weight.grad[:, -1].any()
