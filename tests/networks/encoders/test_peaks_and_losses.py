from collections.abc import Callable

import pytest


@pytest.mark.parametrize("sizes", [[5, 0, 12], [1], [0], [30] * 7])
@pytest.mark.parametrize("intensities", ["sqrt", "log", "linear"])
def test_embeddings_are_those_of_torch(
    assert_encodes_alike: Callable[..., None], sizes: list[int], intensities: str
) -> None:
    assert_encodes_alike("peaks-and-losses", sizes, 1, intensities=intensities)


@pytest.mark.parametrize(
    "options", [{"precursor_bin": 0.0}, {"highest": 300.0}, {"bin_width": 0.03}, {"blocks": 0}]
)
def test_options_are_read_as_by_torch(
    assert_encodes_alike: Callable[..., None], options: dict[str, float]
) -> None:
    assert_encodes_alike("peaks-and-losses", [5, 0, 12], 2, **options)
