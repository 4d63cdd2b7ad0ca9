from dataclasses import fields

import torch

from mzseek.tensors import PeakLists


def test_another_device_gets_everything_in_its_place() -> None:
    peaks = PeakLists(
        mz=torch.ones(2, 3),
        intensities=torch.full((2, 3), 0.5),
        real=torch.ones(2, 3, dtype=torch.bool),
        precursor_mz=torch.tensor([100.0, 200.0]),
    )
    moved = peaks.to("meta")
    for field in fields(PeakLists):
        before, after = getattr(peaks, field.name), getattr(moved, field.name)
        assert after.device.type == "meta"
        assert (after.shape, after.dtype) == (before.shape, before.dtype)
    assert torch.equal(peaks.to("cpu").intensities, peaks.intensities)
