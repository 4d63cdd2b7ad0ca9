from collections.abc import Callable

import pytest


@pytest.mark.parametrize("sizes", [[5, 0, 12], [1], [0], [30] * 7])
@pytest.mark.parametrize("seed", range(3))
def test_embeddings_are_those_of_torch(
    assert_encodes_alike: Callable[..., None], sizes: list[int], seed: int
) -> None:
    assert_encodes_alike("mlp", sizes, seed)


@pytest.mark.parametrize("blocks", [0, 1, 4])
def test_any_number_of_blocks(assert_encodes_alike: Callable[..., None], blocks: int) -> None:
    assert_encodes_alike("mlp", [3, 9], blocks=blocks)
