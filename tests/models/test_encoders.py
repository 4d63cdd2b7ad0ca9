import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from mzseek.models import ENCODERS, build
from mzseek.models.encoders import (
    BELOW,
    BinnedMlp,
    BlindEncoder,
    DeepSets,
    Encoder,
    FourierFeatures,
    PeaksAndLosses,
    PeakTransformer,
    PrecursorMlp,
    bin_counts,
)
from mzseek.tensors import PeakLists

from .conftest import flat_spec

READERS: dict[str, Callable[[], Encoder]] = {
    "deepsets": lambda: DeepSets(width=6, hidden=10, dropout=0.25),
    "peaks-and-losses": lambda: PeaksAndLosses(
        width=6, blocks=1, dropout=0.25, bin_width=0.01, highest=1000.0, intensities="sqrt",
        precursor_bin=0.0, peak_dropout=0.2,
    ),
    "transformer": lambda: PeakTransformer(width=6, tokens=16, layers=2, heads=4, dropout=0.25),
}  # fmt: skip


@pytest.fixture
def peaks() -> PeakLists:
    """Three spectra of five, two and no peaks."""
    generator = torch.Generator().manual_seed(0)
    real = torch.arange(5) < torch.tensor([5, 2, 0])[:, None]
    mz = 50 + 900 * torch.rand(3, 5, generator=generator)
    intensities = torch.rand(3, 5, generator=generator)
    return PeakLists(mz * real, intensities * real, real, torch.tensor([300.1, 500.2, 999.9]))


def reordered(peaks: PeakLists) -> PeakLists:
    """The same peaks from last to first, padding before them."""
    return PeakLists(
        peaks.mz.flip(1), peaks.intensities.flip(1), peaks.real.flip(1), peaks.precursor_mz
    )


def padded(peaks: PeakLists) -> PeakLists:
    """The same peaks with three more columns, and garbage wherever there is no peak."""
    more = peaks.mz.new_zeros(len(peaks.mz), 3)
    real = torch.cat([peaks.real, more.bool()], 1)
    mz = torch.cat([peaks.mz, more], 1).masked_fill(~real, 777.0)
    intensities = torch.cat([peaks.intensities, more], 1).masked_fill(~real, 0.9)
    return PeakLists(mz, intensities, real, peaks.precursor_mz)


@pytest.mark.parametrize(
    ("name", "network", "reads", "sees"),
    [
        ("mlp", BinnedMlp, "bins", True),
        ("peaks-and-losses", PeaksAndLosses, "peaks", True),
        ("transformer", PeakTransformer, "peaks", True),
        ("deepsets", DeepSets, "peaks", True),
        ("precursor", PrecursorMlp, "peaks", False),
        ("blind", BlindEncoder, "bins", False),
    ],
)
def test_encoders_are_found_by_name(name: str, network: type, reads: str, sees: bool) -> None:
    kind = ENCODERS[name]
    assert kind.network is network
    assert network.kind is kind
    assert (kind.reads, kind.sees_spectrum) == (reads, sees)


# Every encoder that reads peak lists.


@pytest.fixture(params=list(READERS))
def encoder(request: pytest.FixtureRequest) -> Encoder:
    torch.manual_seed(0)
    return READERS[request.param]().eval()


def value_and_gradients(encoder, peaks: PeakLists) -> list[torch.Tensor]:
    out = encoder(peaks)
    weights = torch.linspace(-1, 2, out.numel()).view_as(out)
    gradients = torch.autograd.grad((out * weights).sum(), list(encoder.parameters()))
    return [out.detach(), *gradients]


def test_order_and_padding_of_peaks_do_not_matter(encoder, peaks) -> None:
    assert encoder(peaks).shape == (3, encoder.width) == (3, 6)
    for same in (reordered(peaks), padded(peaks), padded(padded(peaks))):
        both = [value_and_gradients(encoder, p) for p in (peaks, same)]
        for wanted, got in zip(*both, strict=True):
            atol = 1e-5 * float(wanted.abs().max())
            torch.testing.assert_close(got, wanted, rtol=1e-5, atol=atol)


def test_a_spectrum_is_read_independently_of_its_batch(encoder, peaks) -> None:
    together = encoder(peaks)
    for n, length in enumerate([5, 2, 0]):
        alone = PeakLists(
            peaks.mz[n : n + 1, :length],
            peaks.intensities[n : n + 1, :length],
            peaks.real[n : n + 1, :length],
            peaks.precursor_mz[n : n + 1],
        )
        torch.testing.assert_close(encoder(alone)[0], together[n], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        lambda p: replace(p, mz=torch.where(p.real, p.mz + 0.01, 0)),
        lambda p: replace(p, intensities=p.intensities**2),
        lambda p: replace(p, precursor_mz=p.precursor_mz + 0.01),
    ],
    ids=["mz", "intensities", "precursor"],
)
def test_every_part_of_a_peak_list_is_read(encoder, peaks, change) -> None:
    difference = (encoder(change(peaks)) - encoder(peaks)).abs()[:2].amax(1)
    assert (difference > 1e-4).all()


@pytest.mark.parametrize("name", [*READERS, "mlp"])
def test_dropout_acts_in_training_alone(name: str, peaks, make_batch) -> None:
    torch.manual_seed(0)
    if name == "mlp":
        encoder: Encoder = BinnedMlp(bins=50, width=16, blocks=3, dropout=0.25)
        spectra: Any = make_batch(flat_spec(bins=50, bits=8), [1, 1]).spectra
    else:
        encoder, spectra = READERS[name](), peaks
    encoder.eval()
    assert torch.equal(encoder(spectra), encoder(spectra))
    encoder.train()
    assert not torch.equal(encoder(spectra), encoder(spectra))


# The paper's MLP.


@pytest.mark.parametrize("blocks", [0, 1, 2, 3])
def test_the_mlp_equals_the_dense_equation(blocks, make_batch, assert_equals_twin) -> None:
    spec = flat_spec(scorer="emb-cos", bins=50, width=16, bits=8, projected=4, blocks=blocks)
    for seed in (0, 1):
        batch = make_batch(spec, [1, 1, 1, 1], seed=seed)
        assert_equals_twin(spec, batch, outputs=("embedding",))


# Peaks and losses.


def peaks_and_losses(**options: Any) -> PeaksAndLosses:
    torch.manual_seed(0)
    usual: dict[str, Any] = {
        "width": 6, "blocks": 1, "dropout": 0.0, "bin_width": 0.5, "highest": 400.0,
        "intensities": "sqrt", "precursor_bin": 0.0, "peak_dropout": 0.0,
    }  # fmt: skip
    return PeaksAndLosses(**(usual | options))


def spectrum(mz: list[float], intensities: list[float], precursor: float) -> PeakLists:
    masses = torch.tensor([mz])
    return PeakLists(masses, torch.tensor([intensities]), masses > 0, torch.tensor([precursor]))


def test_every_peak_has_a_bin_and_a_bin_of_its_loss() -> None:
    encoder = peaks_and_losses()
    rows = encoder.rows(spectrum([100.2, 150.7], [0.25, 1.0], 200.9))
    of_peaks = encoder.counts[0]
    losses = [of_peaks + int((200.9 - mz + BELOW) / 0.5) for mz in (100.2, 150.7)]
    assert rows.indices.tolist() == [200, 301, *losses]
    assert rows.values.tolist() == [0.5, 1.0, 0.5, 1.0]
    assert rows.shape == (1, sum(encoder.counts))


def test_what_is_beyond_the_bins_is_in_the_outermost() -> None:
    encoder = peaks_and_losses()
    rows = encoder.rows(spectrum([390.0, 2000.0], [1.0, 1.0], 900.0))
    of_peaks, of_losses, _ = encoder.counts
    assert rows.indices.tolist() == [780, of_peaks - 1, of_peaks + of_losses - 1, of_peaks]
    assert bin_counts(0.05, 1000.0, 0.0)[0] == 20_001


@pytest.mark.parametrize(
    ("intensities", "wanted"), [("sqrt", 0.1), ("log", 0.150191), ("linear", 0.01)]
)
def test_intensities_are_scaled(intensities: str, wanted: float) -> None:
    encoder = peaks_and_losses(intensities=intensities)
    values = encoder.rows(spectrum([100.0, 120.0], [0.01, 1.0], 200.0)).values
    torch.testing.assert_close(values, torch.tensor([wanted, 1.0] * 2), rtol=1e-4, atol=0)


def test_the_precursor_has_a_wide_bin_where_it_is_asked_for() -> None:
    encoder = peaks_and_losses(precursor_bin=50.0)
    rows = encoder.rows(spectrum([100.0], [1.0], 222.2))
    assert encoder.counts[2] == 9
    assert rows.indices.tolist()[-1] == encoder.counts[0] + encoder.counts[1] + 4
    assert rows.values.tolist()[-1] == 1.0
    one, other = (encoder(spectrum([100.0], [1.0], mz)) for mz in (222.2, 222.3))
    torch.testing.assert_close(one, other)  # one bin of each: it is no key to a molecule


def test_a_spectrum_without_peaks_is_read() -> None:
    empty = spectrum([0.0], [0.0], 200.0)
    assert peaks_and_losses().rows(empty).indptr.tolist() == [0, 0]
    assert peaks_and_losses()(empty).isfinite().all()


def test_peaks_are_left_out_with_their_losses_in_training_alone() -> None:
    encoder = peaks_and_losses(peak_dropout=0.5)
    peaks = spectrum([100.0 + n for n in range(200)], [1.0] * 200, 350.0)
    assert len(encoder.eval().rows(peaks).indices) == 400
    encoder.train()
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(encoder.rows(peaks).indices)
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    assert 120 < len(drawn[0]) < 280
    of_peaks = encoder.counts[0]
    left, losses = drawn[0][drawn[0] < of_peaks], drawn[0][drawn[0] >= of_peaks] - of_peaks
    assert torch.equal(700 - left + 20, losses)


# Others.


def test_the_transformer_marks_the_precursor(peaks) -> None:
    """The last feature is one for it alone, so that its weights learn."""
    encoder = READERS["transformer"]().eval()
    encoder(peaks).square().sum().backward()
    assert encoder.embed.weight.grad[:, -1].any()


def test_deepsets_weighs_peaks_by_their_share_of_the_intensity() -> None:
    """Of equal peaks with a share each, what counts is the peak."""
    mz = torch.tensor([[100.0, 100.0], [100.0, 0.0]])
    intensities = torch.tensor([[0.5, 0.5], [0.5, 0.0]])
    two_and_one = PeakLists(mz, intensities, mz > 0, torch.tensor([200.0, 200.0]))
    torch.testing.assert_close(*READERS["deepsets"]().eval()(two_and_one), rtol=1e-5, atol=1e-5)


def test_the_precursor_encoder_reads_the_precursor_alone(peaks) -> None:
    torch.manual_seed(0)
    encoder = PrecursorMlp(width=6, dropout=0.25).eval()
    wanted = encoder(peaks)
    assert wanted.shape == (3, encoder.width) == (3, 6)
    nothing = replace(
        peaks, mz=peaks.mz[:, :0], intensities=peaks.mz[:, :0], real=peaks.real[:, :0]
    )
    for other in (padded(peaks), replace(peaks, mz=peaks.mz + 1), nothing):
        assert torch.equal(encoder(other), wanted)
    moved = replace(peaks, precursor_mz=peaks.precursor_mz + 0.01)
    assert ((encoder(moved) - wanted).abs().amax(1) > 1e-3).all()


BLIND = {"encoder": "blind", "bins": 40, "bits": 32, "width": 16, "projected": 16}


def test_scores_of_a_blind_model_are_those_of_the_candidates_alone(make_batch) -> None:
    first, second = (make_batch(flat_spec(**BLIND), [4, 4], seed=seed) for seed in (0, 1))
    for scorer in ("fp-cos", "emb-cos", "emb-mlp", "fp-mlp"):
        model = build(flat_spec(**BLIND, scorer=scorer), seed=0).eval()
        outputs = [
            model(batch.spectra, first.candidates, first.counts) for batch in (first, second)
        ]
        assert torch.equal(outputs[0].embedding, model.encoder.constant.expand(2, 16))
        assert torch.equal(outputs[0].scores, outputs[1].scores)
        assert len(outputs[0].scores.unique()) > 1


def test_fourier_features_are_sines_and_cosines_at_rising_frequencies() -> None:
    features = FourierFeatures(waves=3, longest=100.0, shortest=1.0)
    angles = [2 * math.pi * 12.5 / length for length in (100, 10, 1)]
    wanted = [*map(math.sin, angles), *map(math.cos, angles)]
    assert features(torch.tensor([12.5]))[0].tolist() == pytest.approx(wanted, abs=1e-5)
    assert features.state_dict() == {}


def test_large_masses_keep_their_phase() -> None:
    mz = torch.tensor([1004.987], dtype=torch.float32)
    lengths = 1000 * (0.02 / 1000) ** (torch.arange(64, dtype=torch.float64) / 63)
    angles = 2 * math.pi * mz.double() / lengths
    got = FourierFeatures()(mz)[0, :64]
    torch.testing.assert_close(got, angles.sin().float(), rtol=0, atol=1e-5)
