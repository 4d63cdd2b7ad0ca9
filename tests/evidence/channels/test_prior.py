"""The prior channel."""

from dataclasses import replace

import numpy as np
import pytest

from mzseek.core.errors import EvidenceError
from mzseek.evidence.channel import ChannelState
from mzseek.evidence.prior import Prior, PriorOptions
from mzseek.evidence.queries import LabelledQueries, Lists, TrainingSet
from mzseek.metrics import hit_rate


def test_order_changes_nothing(in_two_orders) -> None:
    _, said, again = in_two_orders(Prior())
    assert np.allclose(again, said, rtol=1e-3, atol=2e-4)


def test_it_never_sees_the_spectrum(asked: LabelledQueries, lessons: TrainingSet) -> None:
    channel = Prior()
    learned = channel.learn(lessons)
    turned = replace(asked.lists, spectra=list(asked.lists.spectra)[::-1])
    assert np.array_equal(channel.features(learned, turned), channel.features(learned, asked.lists))
    assert not channel.sees_spectrum


def test_it_learns_what_marks_the_truth(asked: LabelledQueries, lessons: TrainingSet) -> None:
    # As if people measured, of each list, the molecule with the most kinds of surroundings.
    size = np.diff(asked.lists.molecules.fingerprints(asked.lists.candidates).indptr)
    largest = size == asked.lists.ragged.repeat_per_list(asked.lists.ragged.max(size))
    channel = Prior(PriorOptions(l2=1e-3))
    learned = channel.learn(replace(lessons, questions=replace(asked, labels=largest)))
    said = channel.features(learned, asked.lists)[:, 0]
    assert hit_rate(said, asked.lists.counts, largest, 1).mean() > 0.9  # by chance about 0.17


def test_a_molecule_counts_once(asked: LabelledQueries, lessons: TrainingSet) -> None:
    once = asked.only(np.arange(0, len(asked), 2))  # the first of two spectra of each
    channel = Prior()
    whole, half = channel.learn(lessons), channel.learn(replace(lessons, questions=once))
    assert np.allclose(whole.arrays["weights"], half.arrays["weights"])


def test_what_does_not_fit_is_refused(asked: LabelledQueries, lessons: TrainingSet) -> None:
    channel = Prior()
    learned = channel.learn(lessons)
    other = Lists.of([asked.lists.spectra[0]], [["CCO"]], fingerprint="maccs")
    with pytest.raises(EvidenceError, match="the prior is over morgan2 bits, and candidates have"):
        channel.features(learned, other)
    older = ChannelState(learned.arrays, {**learned.facts, "descriptors": ["C"]})
    with pytest.raises(EvidenceError, match="other descriptors than there are; fit it again"):
        channel.features(older, asked.lists)
