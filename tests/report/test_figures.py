import warnings

import numpy as np
import pytest

from mzseek.export.figures import (
    curves_svg,
    drawn_labels,
    histogram_svg,
    molecule_svg,
    spectrum_svg,
)

from .conftest import ODD_NAMES, drawn_texts


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_figures_are_svg_alone() -> None:
    for svg in (
        spectrum_svg(np.array([50.0, 60.0]), np.array([1.0, 2.0]), 70.0),
        spectrum_svg(np.array([50.0]), np.array([1.0]), 50.0),
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


def test_the_highest_peaks_are_labelled() -> None:
    svg = spectrum_svg(np.array([50.0, 60.0, 70.1234]), np.array([1.0, 0.001, 100.0]), 80.0)
    assert ">70.123</text>" in svg
    assert ">60.000</text>" not in svg


def test_names_are_drawn_as_they_are() -> None:
    for svg in (
        curves_svg({name: ([0, 1], [0, 1]) for name in ODD_NAMES}, "x", "y"),
        histogram_svg({name: [1, 2] for name in ODD_NAMES}, "x", "y"),
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
