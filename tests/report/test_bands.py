import warnings

import numpy as np
import pytest

from mzseek.decision import Bands
from mzseek.export.figures import bands_svg


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def bands(low: list[float], high: list[float]) -> Bands:
    return Bands(np.array(low), np.array(high))


def test_every_fingerprint_has_its_medians() -> None:
    found = {
        "morgan2": bands([0.1, 0.2, 0.3, np.nan], [0.5, 0.61, 0.7, np.nan]),
        "<rdkit>": bands([0.0, 0.35], [1.0, 1.0]),
    }
    svg = bands_svg(found, "cosine")
    assert svg.startswith("<svg")
    assert svg.rstrip().endswith("</svg>")
    for text in (
        "morgan2",
        "&lt;rdkit&gt;",
        "σ min",
        "σ max",
        "σ max − σ min",
        "cosine similarity",
    ):
        assert f">{text}</text>" in svg
    for each in found.values():
        for median in each.medians().values():
            assert f">median {median:.3f}</text>" in svg
    assert svg == bands_svg(found, "cosine")  # the same every time


@pytest.mark.parametrize(
    "found", [bands([0.0], [0.0]), bands([1.0], [1.0]), bands([0.5] * 9, [0.5] * 9)], ids=str
)
def test_odd_bands_make_a_picture(found: Bands) -> None:
    assert bands_svg({"maccs": found}).count(">median ") == 3
