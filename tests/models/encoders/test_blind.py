import torch
from scipy.sparse import csr_array

from mzseek.models import build
from mzseek.models.configs import ENCODERS
from mzseek.models.encoders import BlindEncoder
from mzseek.tensors import SparseRows

from ..conftest import flat_spec

SIZES = {"encoder": "blind", "bins": 40, "bits": 32, "width": 16, "projected": 16}
SPEC = flat_spec(**SIZES)


def test_the_spectrum_is_not_seen(make_batch) -> None:
    encoder = BlindEncoder(width=16)
    outs = [encoder(make_batch(SPEC, [1] * 3, seed=seed).spectra) for seed in (0, 1)]
    assert outs[0].shape == (3, 16)
    assert torch.equal(*outs)
    assert torch.equal(outs[0], encoder.constant.expand(3, 16))


def test_scores_are_those_of_the_candidates_alone(make_batch) -> None:
    one, other = (make_batch(SPEC, [4, 4], seed=seed) for seed in (0, 1))
    for scorer in ("fp-cos", "emb-cos", "emb-mlp", "fp-mlp"):
        model = build(flat_spec(**SIZES, scorer=scorer), seed=0).eval()
        scores = [model(batch.spectra, one.candidates, one.counts).scores for batch in (one, other)]
        assert torch.equal(*scores)
        assert len(scores[0].unique()) > 1


def test_every_spectrum_adds_to_the_gradient() -> None:
    encoder = BlindEncoder(width=2)
    spectra = SparseRows.from_csr(csr_array((3, 5)))
    (encoder(spectra) * torch.tensor([[1.0, 2], [3, 4], [5, 6]])).sum().backward()
    assert encoder.constant.grad.tolist() == [9, 12]


def test_it_says_that_it_is_a_control() -> None:
    kind = ENCODERS["blind"]
    assert kind.network is BlindEncoder
    assert BlindEncoder.kind is kind
    assert (kind.reads, kind.sees_spectrum) == ("bins", False)
