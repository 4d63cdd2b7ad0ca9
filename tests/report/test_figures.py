import warnings

import numpy as np
import pytest

from mzseek.report.figures import curves_svg, histogram_svg, molecule_svg, spectrum_svg


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
