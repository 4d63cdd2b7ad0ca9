import pytest
import torch

from mzseek.models.configs import ENCODERS, MlpOptions
from mzseek.models.encoders import BinnedMlp

from ..conftest import flat_spec


@pytest.mark.parametrize("blocks", [0, 1, 2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_the_dense_equation(blocks, seed, make_batch, assert_equals_twin) -> None:
    spec = flat_spec(scorer="emb-cos", bins=50, width=16, bits=8, projected=4, blocks=blocks)
    batch = make_batch(spec, [1, 1, 1, 1], seed=seed)
    assert_equals_twin(spec, batch, outputs=("embedding",))


@pytest.mark.parametrize("blocks", [2, 3])
def test_the_paper_s_layers(blocks: int) -> None:
    with torch.device("meta"):
        encoder = BinnedMlp(bins=10_050, **vars(MlpOptions(blocks=blocks)))
    matrices = [tuple(p.shape) for p in encoder.parameters() if p.ndim == 2]
    assert matrices == [(10_050, 1024)] + [(1024, 1024)] * blocks
    biases_and_norms = (blocks + 1) * 1024 + blocks * 2 * 1024
    assert sum(p.numel() for p in encoder.parameters()) == (
        10_050 * 1024 + blocks * 1024**2 + biases_and_norms
    )


def test_the_equation_s_three_blocks_are_the_default() -> None:
    assert repr(BinnedMlp(bins=5, **vars(MlpOptions(width=4)))).count("rate=0.25") == 3


def test_it_says_what_it_reads() -> None:
    kind = ENCODERS["mlp"]
    assert kind.network is BinnedMlp
    assert BinnedMlp.kind is kind
    assert (kind.reads, kind.sees_spectrum, kind.repeats) == ("bins", True, "blocks")


def test_dropout_acts_in_training_alone(make_batch) -> None:
    spectra = make_batch(flat_spec(bins=50, bits=8), [1, 1]).spectra
    encoder = BinnedMlp(bins=50, width=16, blocks=3, dropout=0.25).eval()
    assert torch.equal(encoder(spectra), encoder(spectra))
    encoder.train()
    assert not torch.equal(encoder(spectra), encoder(spectra))
