import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from mzseek.models import SCORERS
from mzseek.models.scorers import EmbCos, EmbMlp, FpCos, FpMlp, Scorer
from mzseek.tensors import SparseRows

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


def test_the_first_layer_s_parts_start_as_one_layer_would() -> None:
    torch.manual_seed(0)
    scorer, whole = FpMlp(64, 0.25), torch.nn.Linear(3 * 64, 24)
    for part in (scorer.predicted.weight, scorer.candidate, scorer.common):
        assert part.abs().max() <= (3 * 64) ** -0.5
        assert part.std().item() == pytest.approx(whole.weight.std().item(), rel=0.05)
