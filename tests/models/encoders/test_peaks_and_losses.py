from typing import Any

import pytest
import torch

from mzseek.core.errors import ModelError
from mzseek.models import ModelSpec
from mzseek.models.configs import ENCODERS
from mzseek.models.encoders import BELOW, PeaksAndLosses, bin_counts
from mzseek.tensors import PeakLists


def make(**options: Any) -> PeaksAndLosses:
    torch.manual_seed(0)
    usual: dict[str, Any] = {
        "width": 6, "blocks": 1, "dropout": 0.0, "bin_width": 0.5, "highest": 400.0,
        "intensities": "sqrt", "precursor_bin": 0.0, "peak_dropout": 0.0,
    }  # fmt: skip
    return PeaksAndLosses(**(usual | options))


def one(mz: list[float], intensities: list[float], precursor: float) -> PeakLists:
    places = torch.tensor([mz])
    return PeakLists(
        places, torch.tensor([intensities]), places > 0, torch.tensor([precursor])
    )  # fmt: skip


def test_it_is_found_by_name() -> None:
    assert ENCODERS["peaks-and-losses"].network is PeaksAndLosses
    assert PeaksAndLosses.kind is ENCODERS["peaks-and-losses"]


def test_every_peak_has_a_bin_and_a_bin_of_its_loss() -> None:
    encoder = make()
    rows = encoder.rows(one([100.2, 150.7], [0.25, 1.0], 200.9))
    of_peaks = encoder.counts[0]
    losses = [of_peaks + int((200.9 - mz + BELOW) / 0.5) for mz in (100.2, 150.7)]
    assert rows.indices.tolist() == [200, 301, *losses]
    assert rows.values.tolist() == [0.5, 1.0, 0.5, 1.0]
    assert rows.shape == (1, sum(encoder.counts))


def test_what_is_beyond_the_bins_is_in_the_outermost() -> None:
    encoder = make()
    rows = encoder.rows(one([390.0, 2000.0], [1.0, 1.0], 900.0))
    of_peaks, of_losses, _ = encoder.counts
    assert rows.indices.tolist() == [780, of_peaks - 1, of_peaks + of_losses - 1, of_peaks]


@pytest.mark.parametrize(
    ("intensities", "wanted"), [("sqrt", 0.1), ("log", 0.150191), ("linear", 0.01)]
)
def test_what_is_read_of_an_intensity(intensities: str, wanted: float) -> None:
    encoder = make(intensities=intensities)
    values = encoder.rows(one([100.0, 120.0], [0.01, 1.0], 200.0)).values
    torch.testing.assert_close(values, torch.tensor([wanted, 1.0] * 2), rtol=1e-4, atol=0)


def test_the_precursor_has_a_wide_bin_where_it_is_wanted() -> None:
    encoder = make(precursor_bin=50.0)
    rows = encoder.rows(one([100.0], [1.0], 222.2))
    assert encoder.counts[2] == 9
    assert rows.indices.tolist()[-1] == encoder.counts[0] + encoder.counts[1] + 4
    assert rows.values.tolist()[-1] == 1.0
    near, far = (encoder(one([100.0], [1.0], mz)) for mz in (222.2, 222.3))
    torch.testing.assert_close(near, far)  # one bin of each: it is no key to a molecule


def test_a_spectrum_without_peaks_is_read() -> None:
    assert make().rows(one([0.0], [0.0], 200.0)).indptr.tolist() == [0, 0]
    assert make()(one([0.0], [0.0], 200.0)).isfinite().all()


def test_peaks_are_left_out_with_their_losses_in_training_alone() -> None:
    encoder = make(peak_dropout=0.5)
    peaks = one([100.0 + n for n in range(200)], [1.0] * 200, 350.0)
    assert len(encoder.eval().rows(peaks).indices) == 400
    encoder.train()
    indices = encoder.rows(peaks).indices
    assert 120 < len(indices) < 280
    of_peaks = encoder.counts[0]
    kept, lost = indices[indices < of_peaks], indices[indices >= of_peaks] - of_peaks
    assert torch.equal(700 - kept + 20, lost)  # of each that is kept, the loss


def test_which_peaks_are_left_out_is_torch_s_seed() -> None:
    encoder = make(peak_dropout=0.5).train()
    peaks = one([100.0 + n for n in range(50)], [1.0] * 50, 350.0)
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(encoder.rows(peaks).indices)
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_narrower_bins_are_more() -> None:
    assert bin_counts(0.05, 1000.0, 0.0)[0] == 20_001


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"intensities": "cube"}, "intensities"),
        ({"peak_dropout": 1.0}, "peak_dropout"),
        ({"bin_width": 0.0}, "bin_width"),
        ({"precursor_bin": -1.0}, "precursor_bin"),
    ],
)
def test_an_option_out_of_its_range_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        ModelSpec.of("peaks-and-losses", "emb-cos", encoder=options)
