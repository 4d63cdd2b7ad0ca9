import torch

from mzseek.runs.device import device


def test_it_is_one_that_torch_has() -> None:
    assert device() == ("cuda" if torch.cuda.is_available() else "cpu")
    assert torch.zeros(1, device=device()).device.type == device()
