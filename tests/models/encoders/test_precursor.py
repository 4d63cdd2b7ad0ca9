from dataclasses import replace

import pytest
import torch

from mzseek.models.configs import ENCODERS
from mzseek.models.encoders import PrecursorMlp


@pytest.fixture
def encoder() -> PrecursorMlp:
    torch.manual_seed(0)
    return PrecursorMlp(width=6, dropout=0.25).eval()


def test_peaks_are_not_seen(encoder, peaks, padded) -> None:
    wanted = encoder(peaks)
    assert wanted.shape == (3, encoder.width) == (3, 6)
    nothing = replace(
        peaks, mz=peaks.mz[:, :0], intensities=peaks.mz[:, :0], real=peaks.real[:, :0]
    )
    for other in (padded(peaks), replace(peaks, mz=peaks.mz + 1), nothing):
        assert torch.equal(encoder(other), wanted)


def test_precursors_are_told_apart_at_a_hundredth(encoder, peaks) -> None:
    moved = replace(peaks, precursor_mz=peaks.precursor_mz + 0.01)
    assert ((encoder(moved) - encoder(peaks)).abs().amax(1) > 1e-3).all()


def test_it_says_that_it_is_a_control() -> None:
    kind = ENCODERS["precursor"]
    assert kind.network is PrecursorMlp
    assert PrecursorMlp.kind is kind
    assert (kind.reads, kind.sees_spectrum) == ("peaks", False)
