"""The prior channel."""

from dataclasses import replace

import numpy as np
import pytest

from mzseek.core.errors import EvidenceError
from mzseek.evidence.channel import ChannelState
from mzseek.evidence.prior import Prior, PriorOptions
from mzseek.evidence.queries import Queries, TrainingSet
from mzseek.metrics import hit_rate


def test_order_changes_nothing(in_two_orders) -> None:
    _, said, again = in_two_orders(Prior())
    assert np.allclose(again, said, rtol=1e-3, atol=2e-4)


def test_it_never_sees_the_spectrum(asked: Queries, lessons: TrainingSet) -> None:
    channel = Prior()
    learned = channel.fit(lessons)
    turned = replace(asked, spectra=list(asked.spectra)[::-1])
    assert np.array_equal(channel.features(learned, turned), channel.features(learned, asked))
    assert not channel.sees_spectrum


def test_it_learns_what_marks_the_truth(asked: Queries, lessons: TrainingSet) -> None:
    # As if people measured, of each list, the molecule with the most kinds of surroundings.
    size = np.diff(asked.molecules.fingerprints(asked.candidates).indptr)
    largest = size == asked.ragged.repeat_per_list(asked.ragged.max(size))
    channel = Prior(PriorOptions(l2=1e-3))
    learned = channel.fit(replace(lessons, questions=replace(asked, labels=largest)))
    said = channel.features(learned, asked)[:, 0]
    assert hit_rate(said, asked.counts, largest, 1).mean() > 0.9  # by chance about 0.17


def test_a_molecule_counts_once(asked: Queries, lessons: TrainingSet) -> None:
    once = asked.only(np.arange(0, len(asked), 2))  # the first of two spectra of each
    channel = Prior()
    whole, half = channel.fit(lessons), channel.fit(replace(lessons, questions=once))
    assert np.allclose(whole.arrays["weights"], half.arrays["weights"])


def test_what_does_not_fit_is_refused(asked: Queries, lessons: TrainingSet) -> None:
    channel = Prior()
    learned = channel.fit(lessons)
    other = Queries.of([asked.spectra[0]], [["CCO"]], fingerprint="maccs")
    with pytest.raises(EvidenceError, match="the prior is over morgan2 bits, and candidates have"):
        channel.features(learned, other)
    older = ChannelState(learned.arrays, {**learned.metadata, "descriptors": ["C"]})
    with pytest.raises(EvidenceError, match="other descriptors than there are; fit it again"):
        channel.features(older, asked)
