"""Peaks and explanations as numbers."""

from dataclasses import replace

import numpy as np
import pytest

from mzseek.evidence.fragments import WIDTH, PairInputs
from mzseek.evidence.queries import Queries


def test_a_few_spectra_are_read_as_all_are(inputs: PairInputs) -> None:
    given, weights, places, rows = inputs.read(np.arange(len(inputs)))
    assert given.shape == (len(inputs.pairs), WIDTH)
    assert np.array_equal(rows, np.arange(inputs.row_ends[-1]))
    assert np.array_equal(places, inputs.pairs.row)
    some = np.array([7, 2])
    part, part_weights, part_places, part_rows = inputs.read(some)
    for spectrum, first in zip(some, (0, inputs.row_ends[8] - inputs.row_ends[7]), strict=True):
        own = slice(inputs.pair_ends[spectrum], inputs.pair_ends[spectrum + 1])
        here = np.isin(part_rows[part_places], np.unique(rows[places[own]]))
        assert np.array_equal(part[here], given[own])
        assert np.array_equal(part_weights[here], weights[own])
        assert part_places[here].min() >= first


def test_three_ways_are_marked_once_each(inputs: PairInputs) -> None:
    given = inputs.read(np.arange(len(inputs)))[0]
    assert (given[:, :6].sum(1) == 1).all()
    assert (given[:, 6:8].sum(1) == 1).all()
    assert (given[:, 8:17].sum(1) == 1).all()
    assert np.isfinite(given).all()
    assert (np.abs(given[:, -3]) <= 1.001).all()  # errors, in tolerances


def test_totals_say_what_is_explained(inputs: PairInputs) -> None:
    assert (inputs.totals[:, 1:] >= 0).all()
    assert (inputs.totals[:, 1:] <= 1 + 1e-5).all()
    explained = np.bincount(inputs.pairs.row, minlength=len(inputs.totals))
    assert np.array_equal(explained > 0, inputs.totals[:, 2] > 0)


def test_an_energy_is_read_as_far_as_it_is_a_number(asked: Queries, inputs_of) -> None:
    lists = asked.only(np.array([0, 1]))
    stated = ["30 eV", "none"]
    spectra = [
        replace(spectrum, metadata={"collision_energy": text})
        for spectrum, text in zip(lists.spectra, stated, strict=True)
    ]
    told = inputs_of(replace(lists, spectra=spectra))
    bare = inputs_of(replace(lists, spectra=[replace(s, metadata={}) for s in lists.spectra]))
    assert np.array_equal(told.of_peak, bare.of_peak)  # what is not stated counts as 30
    other = replace(lists.spectra[0], metadata={"collision_energy": "60"})
    assert inputs_of(replace(lists, spectra=[other, spectra[1]])).of_peak[0, 6] == pytest.approx(
        1.2
    )
