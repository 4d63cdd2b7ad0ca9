"""Drawings of spectra: labels keep clear of each other, and text stays text."""

import itertools
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from mzseek.export import spectrum_plot as plot
from mzseek.export.spectrum_plot import (
    Stick,
    Svg,
    by_intensity,
    draw_spectrum,
    limits,
    plot_sticks,
    ticks,
)
from mzseek.spectra import Spectrum, read_spectra

from .conftest import PAYLOADS


@given(
    st.floats(0, 20_000), st.floats(1e-3, 20_000), st.integers(1, 30),
)  # fmt: skip
def test_ticks_are_few_and_round_and_within(low: float, span: float, most: int) -> None:
    found = ticks(low, low + span, most)
    assert found or most < 4
    assert len(found) <= most + 1
    assert all(low - 1e-6 <= value <= low + span + 1e-6 for value in found)
    steps = {round(b - a, 6) for a, b in itertools.pairwise(found)}
    assert len(steps) <= 1 or max(steps) - min(steps) < 1e-5


def test_all_peaks_and_the_precursor_are_within_the_limits() -> None:
    for precursor in (10.0, 75.0, 900.0):
        low, high = limits([50, 100], precursor)
        assert 0 <= low <= min(50, precursor)
        assert max(100, precursor) < high
    low, high = limits([100], 100.0)
    assert high - low > 1


def test_by_intensity_begins_with_the_strongest_and_ends_at_the_floor(make_spectrum) -> None:
    spectrum = make_spectrum([50, 60, 70, 80], [5, 100, 4.9, 100])
    assert by_intensity(spectrum) == [1, 3, 0, 2]
    assert by_intensity(spectrum, 0.05) == [1, 3, 0]


SVG = "{http://www.w3.org/2000/svg}"


def spectrum(mz, intensities, precursor=200.0, identifier="test", adduct="[M+H]+", **metadata):
    order = np.argsort(mz)
    return Spectrum(
        np.asarray(mz, float)[order], np.asarray(intensities, float)[order], precursor, adduct, 1,
        identifier, metadata,
    )  # fmt: skip


def labels(root: ElementTree.Element) -> list[tuple[str, float, float]]:
    """m/z labels with the place of their middle."""
    return [
        (each.text or "", float(each.get("x", 0)), float(each.get("y", 0)))
        for each in root.iter(f"{SVG}text")
        if re.fullmatch(r"\d+\.\d{4}", each.text or "")
    ]


def assert_apart(found: list[tuple[str, float, float]]) -> None:
    for (one, x, y), (two, u, v) in itertools.combinations(found, 2):
        # 12 high; a figure is at most 7 wide in Helvetica and Arial at that size.
        assert abs(y - v) >= 12 or abs(x - u) >= 3.5 * (len(one) + len(two))


def test_it_shows_peaks_labels_axis_precursor_and_title() -> None:
    text = draw_spectrum(
        spectrum([56.05, 138.0662, 195.0877], [2, 100, 60], 195.0877, "q1",
                 compound_name="caffeine", formula="C8H10N4O2", collision_energy="30")
    )  # fmt: skip
    root = ElementTree.fromstring(text)
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert "caffeine" in texts
    assert "q1 · C8H10N4O2 · collision energy 30 · 3 peaks" in texts
    assert "precursor 195.0877 [M+H]+" in texts
    assert {"m/z", "relative intensity (%)", "100", "56.0500", "138.0662", "195.0877"} <= set(texts)
    assert text.count("V") >= 3


def test_it_stands_alone_and_does_nothing() -> None:
    evil = "<script>alert(1)</script>&\"'\x1b[2J\x00\u202e\ud800\uffff]]>"
    text = draw_spectrum(
        spectrum([50], [1], identifier=evil, compound_name=evil, formula=evil, instrument=evil,
                 collision_energy=evil)
    )  # fmt: skip
    root = ElementTree.fromstring(text)  # so it is well-formed
    text.encode("utf-8")
    tags = {each.tag.removeprefix(SVG) for each in root.iter()}
    assert tags == {"svg", "title", "rect", "text", "path"}
    assert not re.search(r"href|url\(|on\w+=|<!|<\?|style=", text.replace("&lt;!", ""))
    assert "<script>alert(1)</script>" in (root.find(f"{SVG}title").text or "")  # as text
    assert not set("\x1b\u202e") & set(text)
    root = ElementTree.fromstring(draw_spectrum(spectrum([50], [1], identifier="y" * 100_000)))
    assert all(len(each.text or "") <= 110 for each in root.iter(f"{SVG}text"))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(20, 2000), st.floats(0.01, 1e6)), min_size=1, max_size=120,
    ),
    st.floats(20, 2000),
)  # fmt: skip
def test_labels_keep_clear_of_each_other_and_stay_inside(peaks, precursor: float) -> None:
    mz, intensities = zip(*peaks, strict=True)
    root = ElementTree.fromstring(draw_spectrum(spectrum(mz, intensities, precursor)))
    found = labels(root)
    strongest = {f"{m:.4f}" for m, i in peaks if i == max(intensities)}  # several may be equal
    assert strongest & {text for text, _, _ in found}
    assert_apart(found)
    assert all(30 < x < 870 and 80 < y < 400 for _, x, y in found)


@pytest.mark.slow
def test_a_spectrum_of_a_hundred_thousand_peaks_makes_a_small_file() -> None:
    rng = np.random.default_rng(0)
    text = draw_spectrum(spectrum(rng.uniform(50, 1500, 100_000), rng.uniform(1, 9, 100_000)))
    assert len(text) < 60_000
    assert not re.search("nan|inf", draw_spectrum(spectrum([50, 60, 70], [5e-324, 1.7e308, 1.0])))
    assert_apart(labels(ElementTree.fromstring(text)))


@pytest.mark.shared
def test_real_spectra(shared: Path) -> None:
    for path in sorted((shared / "data" / "formats").glob("*.m*")):
        for each in read_spectra(path, []):
            found = labels(ElementTree.fromstring(draw_spectrum(each)))
            assert found
            assert_apart(found)


STICKS = [
    Stick(69.0447, 0.12, "explained", "C3H5N2+"),
    Stick(83.06, 0.3, "other"),
    Stick(138.0662, 1.0, "explained", "C6H8N3O+"),
    Stick(138.5, 0.9, "explained", "beside its neighbour"),
]
BELOW = [*STICKS, Stick(138.07, -1.0, "reference")]


def test_a_figure_has_all_peaks_and_labels_of_explained_ones() -> None:
    figure = plot_sticks(STICKS, 195.0877, "F1: caffeine")
    assert isinstance(figure, Figure)
    (axes,) = figure.axes
    assert sum(len(each.get_segments()) for each in axes.collections) == 4
    assert {text.get_text() for text in axes.texts} == {
        "C3H5N2+",
        "C6H8N3O+",
        "beside its neighbour",
    }
    assert axes.get_title(loc="left") == "F1: caffeine"
    assert axes.get_ylim()[0] == 0
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_reference_is_drawn_below() -> None:
    (axes,) = plot_sticks(BELOW, 195.0877, "F1", "REF1").axes
    assert axes.get_ylim()[0] < -100
    assert "below: REF1" in axes.get_title(loc="left")


@pytest.mark.parametrize("text", ["F1", *PAYLOADS])
def test_without_matplotlib_it_is_svg(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plot, "is_installed", lambda package: False)
    svg = plot_sticks(BELOW, 195.0877, text, text)
    assert isinstance(svg, Svg)
    assert svg._repr_svg_() == svg
    root = ElementTree.fromstring(svg)
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert names == {"svg", "title", "rect", "path", "text"}
    assert not any(name.startswith("on") for element in root.iter() for name in element.attrib)
    assert "C6H8N3O+" in {element.text for element in root.iter()}
