"""The golden numbers: what the paper's published code returns for random inputs."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from mzseek.tensors import SparseRows

BITS = 4096


@dataclass(frozen=True)
class Golden:
    """Inputs and outputs, in float64."""

    arrays: dict[str, np.ndarray]
    values: dict[str, dict[str, float]]
    candidates: SparseRows
    truths: dict[str, Tensor | SparseRows]  # by form: dense, sparse

    def __getitem__(self, name: str) -> Tensor:
        return torch.from_numpy(self.arrays[name])

    @property
    def lists(self) -> tuple[Tensor, Tensor]:
        """Counts and labels."""
        return self["candidate_counts"], self["labels"]

    def logits(self, embeddings: Tensor) -> Tensor:
        """Of the predicted fingerprints."""
        return F.linear(embeddings, self["w_out"], self["b_out"])

    def assert_equals(self, name: str, loss_of: Callable[[Tensor], Tensor]) -> None:
        """The loss and its gradient for the embeddings are those of that name."""
        embeddings = self["embeddings"].requires_grad_()
        loss = loss_of(embeddings)
        assert loss.item() == pytest.approx(self.values[name]["loss"], rel=1e-9)
        (gradient,) = torch.autograd.grad(loss, embeddings)
        self.assert_close(gradient, f"grad_{name}")
        assert gradient.norm().item() == pytest.approx(
            self.values[name]["grad_embeddings_norm"], rel=1e-9
        )

    def assert_close(self, got: Tensor, name: str) -> None:
        """The array is the one of that name."""
        wanted = self[name]
        scale = float(wanted.abs().max())
        torch.testing.assert_close(got.detach(), wanted, rtol=1e-9, atol=1e-12 * scale)


@pytest.fixture(scope="session")
def golden(published) -> Golden:
    arrays, values, candidates, truths = published
    rows = SparseRows.from_csr(truths, binary=True)
    forms = {"dense": rows.dense(torch.float64), "sparse": rows}
    return Golden(arrays, values, SparseRows.from_csr(candidates, binary=True), forms)
