import pytest
import torch

from mzseek.models.configs import ENCODERS
from mzseek.models.encoders import DeepSets
from mzseek.tensors import PeakLists


@pytest.fixture
def encoder() -> DeepSets:
    torch.manual_seed(0)
    return DeepSets(width=6, hidden=10, dropout=0.25).eval()


def test_it_is_found_by_name() -> None:
    assert ENCODERS["deepsets"].network is DeepSets
    assert DeepSets.kind is ENCODERS["deepsets"]


def test_peaks_weigh_by_their_share_of_the_intensity(encoder, peaks) -> None:
    """Of equal peaks with a share each, what counts is the peak."""
    mz = torch.tensor([[100.0, 100.0], [100.0, 0.0]])
    intensities = torch.tensor([[0.5, 0.5], [0.5, 0.0]])
    two_and_one = PeakLists(mz, intensities, mz > 0, torch.tensor([200.0, 200.0]))
    torch.testing.assert_close(*encoder(two_and_one), rtol=1e-5, atol=1e-5)
