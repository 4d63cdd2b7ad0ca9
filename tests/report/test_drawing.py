import itertools
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mzseek.export.spectrum_plot import drawn_spectrum
from mzseek.spectra import Spectrum, read_spectra

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
    text = drawn_spectrum(
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
    text = drawn_spectrum(
        spectrum([50], [1], identifier=evil, compound_name=evil, formula=evil, instrument=evil,
                 collision_energy=evil)
    )  # fmt: skip
    root = ElementTree.fromstring(text)  # so it is well-formed
    text.encode("utf-8")
    tags = {each.tag.removeprefix(SVG) for each in root.iter()}
    assert tags == {"svg", "title", "rect", "text", "path"}
    assert not re.search(r"href|url\(|on\w+=|<!|<\?|style=", text.replace("&lt;!", ""))
    assert "<script>alert(1)</script>" in (root.find(f"{SVG}title").text or "")  # as text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_long_names_are_shortened() -> None:
    root = ElementTree.fromstring(drawn_spectrum(spectrum([50], [1], identifier="y" * 100_000)))
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
    root = ElementTree.fromstring(drawn_spectrum(spectrum(mz, intensities, precursor)))
    found = labels(root)
    strongest = {f"{m:.4f}" for m, i in peaks if i == max(intensities)}  # several may be equal
    assert strongest & {text for text, _, _ in found}
    assert_apart(found)
    assert all(30 < x < 870 and 80 < y < 400 for _, x, y in found)


def test_a_spectrum_of_a_hundred_thousand_peaks_makes_a_small_file() -> None:
    rng = np.random.default_rng(0)
    text = drawn_spectrum(spectrum(rng.uniform(50, 1500, 100_000), rng.uniform(1, 9, 100_000)))
    assert len(text) < 60_000
    assert_apart(labels(ElementTree.fromstring(text)))


def test_extreme_intensities_are_drawn() -> None:
    text = drawn_spectrum(spectrum([50, 60, 70], [5e-324, 1.7e308, 1.0]))
    assert "nan" not in text
    assert "inf" not in text


@pytest.mark.shared
def test_real_spectra(shared: Path) -> None:
    for path in sorted((shared / "data" / "formats").glob("*.m*")):
        for each in read_spectra(path, []):
            found = labels(ElementTree.fromstring(drawn_spectrum(each)))
            assert found
            assert_apart(found)
