from collections.abc import Callable

import pytest


@pytest.mark.parametrize("sizes", [[5, 0, 12], [1], [0], [30] * 7])
@pytest.mark.parametrize("seed", range(3))
def test_embeddings_are_those_of_torch(
    assert_encodes_alike: Callable[..., None], sizes: list[int], seed: int
) -> None:
    assert_encodes_alike("transformer", sizes, seed)


@pytest.mark.parametrize("layers", [1, 4])
@pytest.mark.parametrize("heads", [1, 8])
def test_any_number_of_layers_and_heads(
    assert_encodes_alike: Callable[..., None], layers: int, heads: int
) -> None:
    assert_encodes_alike("transformer", [3, 0, 40], layers=layers, heads=heads)
