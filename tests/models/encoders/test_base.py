"""What holds for every encoder that reads peak lists."""

from dataclasses import replace

import pytest
import torch

from mzseek.models.encoders import DeepSets, Encoder, PeaksAndLosses, PeakTransformer
from mzseek.tensors import PeakLists

READERS = {
    "deepsets": lambda: DeepSets(width=6, hidden=10, dropout=0.25),
    "peaks-and-losses": lambda: PeaksAndLosses(
        width=6, blocks=1, dropout=0.25, bin_width=0.01, highest=1000.0, intensities="sqrt",
        precursor_bin=0.0, peak_dropout=0.2,
    ),
    "transformer": lambda: PeakTransformer(width=6, tokens=16, layers=2, heads=4, dropout=0.25),
}  # fmt: skip


@pytest.fixture(params=list(READERS))
def encoder(request: pytest.FixtureRequest) -> Encoder:
    torch.manual_seed(0)
    return READERS[request.param]().eval()


def test_an_encoder_must_say_how_it_reads() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Encoder(width=3)


def value_and_gradients(encoder, peaks: PeakLists) -> list[torch.Tensor]:
    out = encoder(peaks)
    weights = torch.linspace(-1, 2, out.numel()).view_as(out)
    gradients = torch.autograd.grad((out * weights).sum(), list(encoder.parameters()))
    return [out.detach(), *gradients]


def assert_same(encoder, peaks: PeakLists, same: PeakLists) -> None:
    for wanted, got in zip(*[value_and_gradients(encoder, p) for p in (peaks, same)], strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5 * float(wanted.abs().max()))


def test_an_embedding_a_spectrum(encoder, peaks) -> None:
    assert encoder(peaks).shape == (3, encoder.width) == (3, 6)
    assert (encoder.kind.reads, encoder.kind.sees_spectrum) == ("peaks", True)


def test_the_order_of_peaks_does_not_matter(encoder, peaks, reordered) -> None:
    assert_same(encoder, peaks, reordered(peaks))


def test_padding_does_not_matter(encoder, peaks, padded) -> None:
    assert_same(encoder, peaks, padded(peaks))
    assert_same(encoder, peaks, padded(padded(peaks)))


def test_a_spectrum_is_read_apart_from_its_batch(encoder, peaks) -> None:
    together = encoder(peaks)
    for n, length in enumerate([5, 2, 0]):
        alone = PeakLists(
            peaks.mz[n : n + 1, :length],
            peaks.intensities[n : n + 1, :length],
            peaks.real[n : n + 1, :length],
            peaks.precursor_mz[n : n + 1],
        )
        torch.testing.assert_close(encoder(alone)[0], together[n], rtol=1e-5, atol=1e-5)


def test_without_gradients_the_embeddings_are_the_same(encoder, peaks, padded) -> None:
    wanted = encoder(peaks).detach()
    with torch.no_grad():
        for same in (peaks, padded(peaks)):
            torch.testing.assert_close(encoder(same), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        lambda p: replace(p, mz=torch.where(p.real, p.mz + 0.01, 0)),
        lambda p: replace(p, intensities=p.intensities**2),
        lambda p: replace(p, precursor_mz=p.precursor_mz + 0.01),
    ],
    ids=["mz", "intensities", "precursor"],
)
def test_whatever_a_peak_list_says_is_read(encoder, peaks, change) -> None:
    difference = (encoder(change(peaks)) - encoder(peaks)).abs()[:2].amax(1)
    assert (difference > 1e-4).all()


def test_dropout_acts_in_training_alone(encoder, peaks) -> None:
    assert torch.equal(encoder(peaks), encoder(peaks))
    encoder.train()
    assert not torch.equal(encoder(peaks), encoder(peaks))
