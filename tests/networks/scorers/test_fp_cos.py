from collections.abc import Callable

import pytest


@pytest.mark.parametrize("counts", [[4, 1, 9], [1], [3, 0, 2], [0], [50] * 5])
@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_torch(
    assert_scores_alike: Callable[..., None], counts: list[int], seed: int
) -> None:
    assert_scores_alike("fp-cos", counts, seed)
