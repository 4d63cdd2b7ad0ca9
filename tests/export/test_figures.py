"""Figures are SVG that can stand in a page, the same every time."""

import warnings

import numpy as np
import pytest

from mzseek.decision import Bands, Reliability, reliability
from mzseek.export.figures import (
    bands_svg,
    curves_svg,
    drawn_labels,
    histogram_svg,
    molecule_svg,
    reliability_svg,
)

from .conftest import ODD_NAMES, drawn_texts


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_figures_are_svg_alone() -> None:
    for svg in (
        histogram_svg({"a": np.array([1, 2, 2]), "b": []}, "x", "y"),
        molecule_svg("CCO"),
        curves_svg({"a": ([1, 2], [3, 4]), "b": ([1], [2])}, "x", "y"),
        curves_svg({}, "x", "y"),
    ):
        assert svg.startswith("<svg")
        assert svg.rstrip().endswith("</svg>")


def test_more_curves_than_colours_are_all_named() -> None:
    svg = curves_svg({f"run {n}": ([0, 1], [n, n]) for n in range(12)}, "epoch", "HR@1, %")
    for text in (*(f"run {n}" for n in range(12)), "epoch", "HR@1, %"):
        assert f">{text}</text>" in svg


def test_names_are_drawn_as_they_are() -> None:
    for svg in (
        curves_svg({name: ([0, 1], [0, 1]) for name in ODD_NAMES}, "x", "y"),
        histogram_svg({name: [1, 2] for name in ODD_NAMES}, "x", "y"),
        reliability_svg({name: curve() for name in ODD_NAMES}),
    ):
        texts = drawn_texts(svg)
        for name, label in zip(ODD_NAMES, drawn_labels(ODD_NAMES), strict=True):
            assert any(label in text for text in texts), name


def test_more_histograms_than_colours_are_all_drawn() -> None:
    svg = histogram_svg({f"set {n}": [1, 2] for n in range(7)}, "x", "y")
    assert [f">set {n} (median 1.5)</text>" in svg for n in range(7)] == [True] * 7


def test_long_names_are_shortened_and_never_to_the_same() -> None:
    names = ["a" * 100, "a" * 101, "a" * 50 + "b" * 50, "short", "a" * 102]
    labels = drawn_labels(names)
    assert len(set(labels)) == len(names)
    assert max(map(len, labels)) <= 36
    assert labels[3] == "short"
    assert drawn_labels(names[2:3])[0] == "a" * 18 + "…" + "b" * 17


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
    for text in ("morgan2", "&lt;rdkit&gt;", "σ min", "σ max", "σ max − σ min",
                 "cosine similarity"):  # fmt: skip
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
