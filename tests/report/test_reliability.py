import warnings

import pytest

from mzseek.decision import Reliability, reliability
from mzseek.export.figures import drawn_labels, reliability_svg

from .conftest import ODD_NAMES, drawn_texts


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def curve(confidence: float = 0.75) -> Reliability:
    """Right in three of four, and so sure."""
    p = [confidence, 1 - confidence] * 4
    return reliability(p, [2] * 4, [1, 0, 1, 0, 1, 0, 0, 1])


def test_every_model_is_named_with_its_error() -> None:
    svg = reliability_svg({"emb-cos": curve(), "R&D": curve(0.95)})
    assert svg.startswith("<svg")
    assert svg.rstrip().endswith("</svg>")
    assert ">emb-cos (error 0.0)</text>" in svg
    assert ">R&amp;D (error 20.0)</text>" in svg
    assert ">probability of the first answer, %</text>" in svg


@pytest.mark.parametrize("count", [0, 1, 12])
def test_few_and_many_models_make_a_picture(count: int) -> None:
    svg = reliability_svg({f"run {n}": curve() for n in range(count)})
    assert svg.count("(error 0.0)</text>") == count
    assert svg == reliability_svg({f"run {n}": curve() for n in range(count)})


def test_names_are_drawn_as_they_are() -> None:
    texts = drawn_texts(reliability_svg({name: curve() for name in ODD_NAMES}))
    for label in drawn_labels(ODD_NAMES):
        assert f"{label} (error 0.0)" in texts
