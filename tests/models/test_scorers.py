import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from mzseek.models import SCORERS
from mzseek.models.scorers import EmbCos, EmbMlp, FpCos, FpMlp, Scorer
from mzseek.tensors import SparseRows

from .conftest import flat_spec

BITS, WIDTH = 32, 12


def small(name: str) -> tuple[Scorer, int]:
    """A scorer without dropout, and the length of what it reads."""
    torch.manual_seed(0)
    scorer = {
        "fp-cos": lambda: FpCos(),
        "emb-cos": lambda: EmbCos(WIDTH, BITS, 16),
        "fp-mlp": lambda: FpMlp(BITS, 0.25),
        "emb-mlp": lambda: EmbMlp(WIDTH, BITS, 16, 0.25),
    }[name]()
    return scorer.eval(), BITS if scorer.kind.reads_fingerprint else WIDTH


@pytest.fixture
def candidates() -> csr_array:
    """Ten, the fourth without bits."""
    bits = np.random.default_rng(0).random((10, BITS)) < 0.2
    bits[3] = False
    return csr_array(bits)


def sparse(matrix) -> SparseRows:
    return SparseRows.from_csr(csr_array(matrix), binary=True)


@pytest.mark.parametrize("name", SCORERS)
@pytest.mark.parametrize("counts", [[10], [3, 1, 6], [1] * 10, [0, 10, 0]])
def test_a_score_depends_on_its_own_list_alone(name: str, counts, candidates) -> None:
    scorer, width = small(name)
    spectra = torch.rand(len(counts), width)
    together = scorer(spectra, sparse(candidates), torch.tensor(counts))
    assert together.shape == (10,)
    queries = np.repeat(np.arange(len(counts)), counts)
    alone = [
        scorer(spectra[q : q + 1], sparse(candidates[[i]]), torch.tensor([1]))
        for i, q in enumerate(queries)
    ]
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", SCORERS)
def test_candidates_without_bits_have_scores_and_gradients(name: str) -> None:
    scorer, width = small(name)
    spectra = torch.rand(2, width, requires_grad=True)
    scores = scorer(spectra, sparse(np.zeros((3, BITS))), torch.tensor([1, 2]))
    assert scores.isfinite().all()
    scores.sum().backward()
    for each in (spectra, *scorer.parameters()):
        assert each.grad.isfinite().all()


@pytest.mark.parametrize("name", ["fp-cos", "emb-cos"])
def test_cosines_lie_within_one(name: str, candidates) -> None:
    scorer, width = small(name)
    scores = scorer(torch.rand(1, width), sparse(candidates), torch.tensor([10]))
    assert scores.abs().max() <= 1 + 1e-6


def test_a_candidate_that_is_the_prediction_has_cosine_one(candidates) -> None:
    rows = sparse(candidates)
    scores = FpCos()(rows.dense(), rows, torch.ones(10, dtype=torch.int64))
    torch.testing.assert_close(scores, torch.ones(10))


@pytest.mark.parametrize("name", ["emb-mlp", "fp-mlp"])
def test_dropout_acts_in_training_alone(name: str, candidates) -> None:
    scorer, width = small(name)
    arguments = torch.rand(1, width), sparse(candidates), torch.tensor([10])
    assert torch.equal(scorer(*arguments), scorer(*arguments))
    scorer.train()
    assert not torch.equal(scorer(*arguments), scorer(*arguments))


@pytest.mark.parametrize("name", SCORERS)
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_the_dense_equation(name, seed, make_batch, assert_equals_twin) -> None:
    spec = flat_spec(scorer=name, bins=40, bits=BITS, width=WIDTH, projected=16)
    outputs = ("embedding", "scores") if name.startswith("emb-") else ("logits", "scores")
    batch = make_batch(spec, [4, 1, 7, 2, 1], seed=seed)
    assert_equals_twin(spec, batch, outputs=outputs)


def test_the_paper_s_layers() -> None:
    shapes = {
        name: [tuple(p.shape) for n, p in scorer.named_parameters() if p.ndim == 2]
        for name, scorer in {
            "fp-mlp": FpMlp(4096, 0.25),
            "emb-mlp": EmbMlp(1024, 4096, 256, 0.25),
            "emb-cos": EmbCos(1024, 4096, 256),
        }.items()
    }
    # The first layer of Fp-MLP, 12,288 → 1,536, in its three parts of 4,096.
    fp_first = [(4096, 1536), (4096, 1536), (1536, 4096)]
    assert sorted(shapes["fp-mlp"]) == sorted([*fp_first, (768, 1536), (1, 768)])
    projections = [(256, 1024), (4096, 256)]
    assert sorted(shapes["emb-cos"]) == sorted(projections)
    assert sorted(shapes["emb-mlp"]) == sorted([*projections, (96, 768), (48, 96), (1, 48)])
    assert list(FpCos().parameters()) == []


def test_the_first_layer_s_parts_start_as_one_layer_would() -> None:
    torch.manual_seed(0)
    scorer, whole = FpMlp(64, 0.25), torch.nn.Linear(3 * 64, 24)
    for part in (scorer.predicted.weight, scorer.candidate, scorer.common):
        assert part.abs().max() <= (3 * 64) ** -0.5
        assert part.std().item() == pytest.approx(whole.weight.std().item(), rel=0.05)


@pytest.mark.parametrize("name", SCORERS)
def test_what_is_read_follows_from_the_name(name: str) -> None:
    assert SCORERS[name].reads_fingerprint == name.startswith("fp-")
    assert SCORERS[name].network.kind is SCORERS[name]
