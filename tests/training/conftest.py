"""What the tests of training share; the small prepared folder is in the conftest above."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from mzseek.models import ModelSpec, Retriever, build
from mzseek.training.kept import spec_for


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    """A run sets torch's threads for the process; other tests get them back."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def small_spec(small, small_options) -> Any:
    """The make-up of a model for the small folder."""

    def make(loss: str = "bce", **changes: Any) -> ModelSpec:
        return spec_for(small, small_options(loss, **changes))

    return make


@pytest.fixture
def small_model(small_spec) -> Any:
    """A model for the small folder, with fresh weights."""

    def make(loss: str = "bce", seed: int = 0, **changes: Any) -> Retriever:
        return build(small_spec(loss, **changes), seed=seed)

    return make
