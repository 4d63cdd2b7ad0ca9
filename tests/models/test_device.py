import pytest
import torch

from mzseek.models.layers import device, machine, threads_set


def test_it_is_one_that_torch_has() -> None:
    assert device() == ("cuda" if torch.cuda.is_available() else "cpu")
    assert torch.zeros(1, device=device()).device.type == device()


def test_a_run_says_where_it_was_made() -> None:
    assert machine() == {"threads": torch.get_num_threads(), "device": device()}


def test_threads_are_set_inside_alone() -> None:
    before = torch.get_num_threads()
    with threads_set(2):
        with threads_set(1):
            assert torch.get_num_threads() == 1
            with threads_set(None):
                assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        with pytest.raises(KeyError), threads_set(1):
            raise KeyError
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == before
