import math

import pytest
import torch

from mzseek.models.encoders import FourierFeatures


def test_features_are_sines_and_cosines_at_rising_frequencies() -> None:
    features = FourierFeatures(waves=3, longest=100.0, shortest=1.0)
    got = features(torch.tensor([12.5]))
    angles = [2 * math.pi * 12.5 / length for length in (100, 10, 1)]
    wanted = [*map(math.sin, angles), *map(math.cos, angles)]
    assert got[0].tolist() == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("shape", [(), (3,), (2, 4), (2, 0)])
def test_features_are_added_at_the_end(shape) -> None:
    features = FourierFeatures()
    got = features(torch.rand(shape) * 1000)
    assert got.shape == (*shape, features.width) == (*shape, 128)
    assert got.dtype == torch.float32


def test_every_pair_is_on_the_circle() -> None:
    sines, cosines = FourierFeatures()(torch.linspace(10, 1005, 50)).chunk(2, dim=-1)
    torch.testing.assert_close(sines**2 + cosines**2, torch.ones(50, 64))


def test_large_masses_keep_their_phase() -> None:
    mz = torch.tensor([1004.987], dtype=torch.float32)
    features = FourierFeatures()
    lengths = 1000 * (0.02 / 1000) ** (torch.arange(64, dtype=torch.float64) / 63)
    angles = 2 * math.pi * mz.double() / lengths
    torch.testing.assert_close(features(mz)[0, :64], angles.sin().float(), rtol=0, atol=1e-5)


def test_it_is_no_part_of_a_model_s_weights() -> None:
    assert FourierFeatures().state_dict() == {}
