"""The paper's model once more: dense, in float64, one line an equation, and slow."""

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.sparse import csr_array
from torch import Tensor, nn

from mzseek.models import ENCODERS, SCORERS, ModelSpec, Output, Retriever, build
from mzseek.tensors import SparseRows

# The paper's model, with the options of all parts side by side.
PAPER = {
    "encoder": "mlp", "scorer": "fp-cos", "bins": 10_050, "bits": 4096, "width": 1024,
    "projected": 256, "blocks": 3, "dropout": 0.25,
}  # fmt: skip


def flat_spec(**changes) -> ModelSpec:
    """The paper's model with some options changed, whichever part has them."""
    given = PAPER | changes
    kinds = {"encoder": ENCODERS[given["encoder"]], "scorer": SCORERS[given["scorer"]]}
    options = {
        part: {
            field.name: given[field.name] for field in fields(kind.options) if field.name in given
        }
        for part, kind in kinds.items()
    }
    return ModelSpec.of(given["encoder"], given["scorer"], given["bins"], given["bits"], **options)


@dataclass(frozen=True)
class Batch:
    """Spectra and the candidates of each."""

    spectra: SparseRows
    candidates: SparseRows
    counts: Tensor


class DenseTwin(nn.Module):
    """What a model of that make-up computes, without dropout."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec
        widths = [spec.bins] + [spec.width] * (spec.repeats + 1)
        self.w = nn.ModuleList(map(nn.Linear, widths[:-1], widths[1:]))
        self.norms = nn.ModuleList(nn.LayerNorm(spec.width) for _ in range(spec.repeats))
        if spec.scorer.name.startswith("fp-"):
            self.w_out = nn.Linear(spec.width, spec.bits)
            read = spec.bits
        else:
            read = spec.scorer.options.projected
            self.w_sp = nn.Linear(spec.width, read)
            self.w_c = nn.Linear(spec.bits, read)
        if spec.scorer.name.endswith("-mlp"):
            widths = [3 * read, 3 * read // 8, 3 * read // 16, 1]
            self.mlp_w = nn.ModuleList(map(nn.Linear, widths[:-1], widths[1:]))
            self.mlp_norms = nn.ModuleList(map(nn.LayerNorm, widths[1:-1]))
        self.double()

    def forward(self, batch: Batch) -> Output:
        """Embeddings, logits, scores."""
        embedding = self.w[0](batch.spectra.dense(torch.float64))
        for norm, w in zip(self.norms, self.w[1:], strict=True):
            embedding = w(norm(F.gelu(embedding)))
        candidates = batch.candidates.dense(torch.float64)
        if self.spec.scorer.name.startswith("fp-"):
            logits = self.w_out(embedding)
            a, b = torch.sigmoid(logits), candidates
        else:
            logits = None
            a, b = self.w_sp(embedding), self.w_c(candidates)
        a = a.repeat_interleave(batch.counts, 0)
        if self.spec.scorer.name.endswith("-cos"):
            return Output(embedding, logits, F.cosine_similarity(a, b))
        hidden = self.mlp_w[0](torch.cat([a, b, a * b], 1))
        for norm, w in zip(self.mlp_norms, self.mlp_w[1:], strict=True):
            hidden = w(norm(F.gelu(hidden)))
        return Output(embedding, logits, hidden.squeeze(1))


def as_dense(values: dict[str, Tensor], spec: ModelSpec) -> dict[str, Tensor]:
    """What a sparse model's parameters (or their gradients) are called in its twin."""
    values = {name: each.to_dense().double() for name, each in values.items()}
    renamed = {}

    def move(source: str, target: str) -> None:
        for part in ("weight", "bias"):
            renamed[f"{target}.{part}"] = values.pop(f"{source}.{part}")

    move("encoder.first", "w.0")
    renamed["w.0.weight"] = renamed["w.0.weight"].T
    for n in range(spec.repeats):
        move(f"encoder.rest.{2 * n}.norm", f"norms.{n}")
        move(f"encoder.rest.{2 * n + 1}", f"w.{n + 1}")
    if spec.scorer.name.startswith("fp-"):
        move("head", "w_out")
    else:
        move("scorer.spectrum", "w_sp")
        move("scorer.candidate", "w_c")
        renamed["w_c.weight"] = renamed["w_c.weight"].T
    if spec.scorer.name == "emb-mlp":
        move("scorer.first", "mlp_w.0")
    if spec.scorer.name == "fp-mlp":
        move("scorer.predicted", "mlp_w.0")
        parts = [values.pop(f"scorer.{name}").T for name in ("candidate", "common")]
        renamed["mlp_w.0.weight"] = torch.cat([renamed["mlp_w.0.weight"], *parts], 1)
    if spec.scorer.name.endswith("-mlp"):
        for n in range(2):
            move(f"scorer.rest.{2 * n}.norm", f"mlp_norms.{n}")
            move(f"scorer.rest.{2 * n + 1}", f"mlp_w.{n + 1}")
    assert not values, "parameters that the paper's equations do not have"
    return renamed


def close(got: Tensor, wanted: Tensor, what: str) -> None:
    """Equal to 1e-5 of the largest entry."""
    got, wanted = got.detach(), wanted.detach()
    assert got.shape == wanted.shape, what
    scale = float(wanted.abs().max())
    error = float((got.double() - wanted).abs().max())
    assert error <= 1e-5 * scale, f"{what}: error {error:.2e}, largest entry {scale:.2e}"


def random_rows(rng: np.random.Generator, rows: int, width: int, entries: int) -> csr_array:
    """Rows with about that many entries, the first without any."""
    sizes = rng.integers(1, 2 * entries, rows)
    sizes[0] = 0
    indices = [np.sort(rng.choice(width, min(n, width), replace=False)) for n in sizes]
    indptr = np.concatenate([[0], np.cumsum([len(each) for each in indices])])
    columns = np.concatenate(indices)
    return csr_array((rng.random(len(columns)).astype(np.float32), columns, indptr), (rows, width))


@pytest.fixture
def make_batch() -> Callable[..., Batch]:
    """Random spectra and candidates; the first spectrum has no peak, the first candidate no bit."""

    def make(spec: ModelSpec, counts: list[int], entries: int = 8, seed: int = 0) -> Batch:
        rng = np.random.default_rng(seed)
        spectra = random_rows(rng, len(counts), spec.bins, entries)
        candidates = random_rows(rng, sum(counts), spec.bits, entries)
        return Batch(
            SparseRows.from_csr(spectra),
            SparseRows.from_csr(candidates, binary=True),
            torch.tensor(counts),
        )

    return make


@pytest.fixture
def assert_equals_twin() -> Callable[..., None]:
    """Outputs and gradients of all parameters are those of the dense twin."""

    def check(spec: ModelSpec, batch: Batch, *, outputs: tuple[str, ...]) -> None:
        model: Retriever = build(spec, seed=0).eval()
        twin = DenseTwin(spec)
        twin.load_state_dict(as_dense(dict(model.named_parameters()), spec))
        results = model(batch.spectra, batch.candidates, batch.counts), twin(batch)
        generator = torch.Generator().manual_seed(0)
        totals = [torch.zeros(()), torch.zeros((), dtype=torch.float64)]
        for name in outputs:
            got, wanted = (getattr(result, name) for result in results)
            close(got, wanted, name)
            weights = torch.randn(wanted.shape, generator=generator)
            totals = [totals[0] + (got * weights).sum(), totals[1] + (wanted * weights).sum()]
        for total in totals:
            total.backward()
        parameters = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
        untouched = {
            n: torch.zeros_like(p) for n, p in model.named_parameters() if n not in parameters
        }
        gradients = as_dense(parameters | untouched, spec)
        for name, parameter in twin.named_parameters():
            wanted = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
            close(gradients[name], wanted, f"gradient of {name}")

    return check
