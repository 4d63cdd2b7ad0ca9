"""Plots of annotated spectra: matplotlib where it is installed, else SVG that stands alone."""

from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from mzseek.export import spectrum_plot as plot
from mzseek.export.spectrum_plot import Stick, Svg, plot_sticks

from .conftest import PAYLOADS

STICKS = [
    Stick(69.0447, 0.12, "explained", "C3H5N2+"),
    Stick(83.06, 0.3, "other"),
    Stick(138.0662, 1.0, "explained", "C6H8N3O+"),
    Stick(138.5, 0.9, "explained", "hidden by its neighbour"),
]
BELOW = [*STICKS, Stick(138.07, -1.0, "reference")]


def test_a_figure_has_all_peaks_and_labels_of_explained_ones() -> None:
    figure = plot_sticks(STICKS, 195.0877, "F1: caffeine")
    assert isinstance(figure, Figure)
    (axes,) = figure.axes
    assert sum(len(each.get_segments()) for each in axes.collections) == 4
    assert {text.get_text() for text in axes.texts} == {"C3H5N2+", "C6H8N3O+"}
    assert axes.get_title(loc="left") == "F1: caffeine"
    assert axes.get_ylim()[0] == 0
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_reference_is_drawn_below() -> None:
    (axes,) = plot_sticks(BELOW, 195.0877, "F1", "REF1").axes
    assert axes.get_ylim()[0] < -100
    assert "below: REF1" in axes.get_title(loc="left")


@pytest.mark.parametrize("text", ["F1", *PAYLOADS])
def test_without_matplotlib_it_is_svg(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plot, "has", lambda package: False)
    svg = plot_sticks(BELOW, 195.0877, text, text)
    assert isinstance(svg, Svg)
    assert svg._repr_svg_() == svg
    root = ElementTree.fromstring(svg)
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert names == {"svg", "rect", "path", "text"}
    assert not any(name.startswith("on") for element in root.iter() for name in element.attrib)
    assert "C6H8N3O+" in {element.text for element in root.iter()}
