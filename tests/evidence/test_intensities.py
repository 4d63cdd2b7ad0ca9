from dataclasses import replace

import numpy as np
import pytest

from mzseek.evidence.intensities import SHAPES, Intensities, IntensityOptions
from mzseek.evidence.model import ChannelState
from mzseek.evidence.queries import Queries, TrainingSet

from .conftest import shuffled


@pytest.fixture(scope="module")
def channel() -> Intensities:
    return Intensities(IntensityOptions(epochs=12, lr=1e-2))


@pytest.fixture(scope="module")
def state(channel: Intensities, training_set: TrainingSet) -> ChannelState:
    return channel.fit(training_set)


def first_places(scores: np.ndarray, queries: Queries) -> float:
    """Share of spectra whose molecule has the highest score."""
    lists = np.split(np.arange(len(scores)), queries.ragged.starts[1:])
    return float(np.mean([queries.labels[rows[scores[rows].argmax()]] for rows in lists]))


def test_it_learns_which_fragments_molecules_show(
    channel: Intensities, state: ChannelState, queries: Queries
) -> None:
    likelihood = channel.features(state, queries)[:, 0]
    assert first_places(likelihood, queries) > 0.8  # by chance one sixth
    # Spectra of other molecules point nowhere.
    other = replace(queries, spectra=[queries.spectra[-1 - at] for at in range(len(queries))])
    assert first_places(channel.features(state, other)[:, 0], queries) < 0.5


def test_shapes_are_declared(state: ChannelState) -> None:
    assert {name: array.shape for name, array in state.arrays.items()} == SHAPES


def test_scores_depend_on_nothing_beside_them(
    channel: Intensities, state: ChannelState, queries: Queries
) -> None:
    whole = channel.features(state, queries)
    other, rows = shuffled(queries)
    assert np.array_equal(channel.features(state, other), whole[rows])
    few = np.array([3, 17])
    assert np.array_equal(channel.features(state, queries.only(few)), whole[queries.rows(few)])


def test_a_spectrum_of_the_precursor_alone_says_nothing(
    channel: Intensities, state: ChannelState, queries: Queries
) -> None:
    spectrum = queries.spectra[0]
    bare = replace(spectrum, mz=np.array([spectrum.precursor_mz]), intensities=np.ones(1))
    assert not channel.features(state, replace(queries.only(np.array([0])), spectra=[bare])).any()


def test_the_instrument_is_read(
    channel: Intensities, state: ChannelState, queries: Queries
) -> None:
    one = queries.only(np.array([0]))
    scores = [
        channel.features(
            state, replace(one, spectra=[replace(one.spectra[0], metadata=dict(metadata))])
        )
        for metadata in ({}, {"instrument": "my own"}, {"instrument_type": "LC-ESI-QTOF"})
    ]
    assert np.array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])
