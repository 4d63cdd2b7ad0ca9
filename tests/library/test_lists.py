"""Peaks of many spectra, strung together."""

import dataclasses

import numpy as np
import pytest

from mzseek.core.errors import SpectrumError
from mzseek.library.similarity import (
    inverted_index,
    neutral_losses,
    normalised,
    peak_lists,
    polarity_of,
)
from mzseek.spectra import Spectrum


def spectrum(mz: list[float], **more: object) -> Spectrum:
    facts = {"precursor_mz": 300.0, "adduct": None, "charge": None, "identifier": "q"} | more
    return Spectrum(np.array(mz), np.arange(1.0, len(mz) + 1), **facts)


def test_the_order_of_peaks_leaves_no_trace() -> None:
    one = spectrum([50.0, 70.0, 60.0])
    other = dataclasses.replace(one, mz=one.mz[::-1], intensities=one.intensities[::-1])
    lists, ions = peak_lists([one, other])
    assert lists.values.tolist() == [50, 60, 70] * 2
    assert lists.weights.tolist() == [1, 3, 2] * 2
    assert ions.precursors.tolist() == [300, 300]


def test_an_index_has_every_peak_with_its_spectrum() -> None:
    lists, _ = peak_lists([spectrum([60.0, 80.0]), spectrum([50.0, 70.0])])
    entries = inverted_index(lists)
    assert entries.values.tolist() == [50, 60, 70, 80]
    assert entries.owners.tolist() == [1, 0, 1, 0]
    assert entries.weights.tolist() == [1, 1, 2, 2]


def test_lengths_and_losses() -> None:
    lists, ions = peak_lists([spectrum([60.0, 80.0]), spectrum([50.0])])
    assert normalised(lists).weights.tolist() == pytest.approx([1 / 5**0.5, 2 / 5**0.5, 1])
    assert neutral_losses(lists, ions.precursors).values.tolist() == [240, 220, 250]
    empty = lists._replace(pointers=np.zeros(3, np.int64), values=np.empty(0), weights=np.empty(0))
    assert normalised(empty).weights.tolist() == []


def test_the_mode_is_of_the_charge_or_of_the_record() -> None:
    assert polarity_of(spectrum([50.0], charge=-2)) == -1
    assert polarity_of(spectrum([50.0], metadata={"ionmode": "positive"})) == 1
    assert polarity_of(spectrum([50.0])) == 0


def test_what_has_no_peaks_or_precursor_is_refused_by_name() -> None:
    with pytest.raises(SpectrumError, match=r"^q: has no peaks$"):
        peak_lists([spectrum([])])
    with pytest.raises(SpectrumError, match=r"^q: has no precursor m/z$"):
        peak_lists([spectrum([50.0], precursor_mz=float("nan"))])
