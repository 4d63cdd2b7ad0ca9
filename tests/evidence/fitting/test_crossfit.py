"""Nothing is fitted on what a channel has learned from, or from its like."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from mzseek.chem import fingerprints
from mzseek.core.errors import EvidenceError
from mzseek.evidence.channel import Channel, ChannelState
from mzseek.evidence.fitting import ALIKE, CrossFittedChannel, Groups, check_unseen
from mzseek.evidence.queries import LabelledQueries, TrainingSet
from mzseek.similarity import tanimoto_blocks


class Memory(Channel):
    """Knows by heart which molecules it was shown: the worst that a channel can do."""

    name = "memory"
    feature_names: ClassVar[tuple[str, ...]] = ("seen",)

    def learn(self, lessons: TrainingSet, progress=None) -> ChannelState:
        shown = [lessons.molecules.smiles[m] for m in np.unique(lessons.molecule)]
        return ChannelState({}, {"shown": shown}, lessons.learned_from)

    def features(self, learned: ChannelState, lists) -> np.ndarray:
        shown = set(learned.facts["shown"])
        named = [lists.molecules.smiles[c] in shown for c in lists.candidates]
        return np.array(named, np.float32)[:, None]


class Elsewhere(Memory):
    """The same, but what it was shown cannot be taken away."""

    learns = False


@pytest.fixture(scope="module")
def groups(lessons: TrainingSet) -> Groups:
    return Groups.of(lessons.blocks, fingerprints(list(lessons.molecules.smiles)), 4)


def test_groups_hold_whole_clusters(lessons: TrainingSet, groups: Groups) -> None:
    rows = fingerprints(list(lessons.molecules.smiles))
    place = groups.places(lessons.blocks)
    assert len(np.unique(groups.group)) == 4
    linked = 0
    for start, block in tanimoto_blocks(rows, rows):
        for one, other in zip(*np.nonzero(block >= ALIKE), strict=True):
            assert groups.cluster[place[start + one]] == groups.cluster[place[other]]
            linked += start + one != other
    assert linked > 0
    for cluster in np.unique(groups.cluster):
        assert len(np.unique(groups.group[groups.cluster == cluster])) == 1


def test_groups_do_not_depend_on_the_order_of_molecules(
    lessons: TrainingSet, groups: Groups
) -> None:
    order = np.random.default_rng(0).permutation(len(lessons.blocks))
    rows = fingerprints(list(lessons.molecules.smiles))
    again = Groups.of(lessons.blocks[order], rows[order], 4)
    assert np.array_equal(again.blocks, groups.blocks)
    assert np.array_equal(again.group, groups.group)


def test_forms_of_one_skeleton_are_one_molecule() -> None:
    blocks = np.array([b"A" * 14, b"A" * 14, b"B" * 14])
    found = Groups.of(blocks, fingerprints(["CCO", "c1ccccc1", "CCCCN"]), 2)
    assert found.blocks.tolist() == [b"A" * 14, b"B" * 14]


def test_what_is_learned_by_heart_helps_nothing(
    asked: LabelledQueries, lessons: TrainingSet, groups: Groups
) -> None:
    taught = CrossFittedChannel(Memory(), lessons, groups)
    assert taught.channel.features(taught.whole, asked.lists)[asked.labels].all()
    crossed = taught.features(asked.lists, asked.blocks)
    assert not crossed[asked.labels].any()
    assert crossed.any()  # others, of other groups, were shown


def test_molecules_that_were_not_learned_from_are_asked_of_the_whole(
    asked: LabelledQueries, lessons: TrainingSet, groups: Groups
) -> None:
    gone = groups.blocks[groups.group == 0]
    taught = CrossFittedChannel(Memory(), lessons.without(gone), groups)
    own = np.flatnonzero(np.isin(asked.blocks, gone))
    some = asked.only(own)
    said = taught.features(some.lists, some.blocks)
    assert np.array_equal(said, Memory().features(taught.whole, some.lists))


def test_features_of_what_was_learned_from_are_refused(
    asked: LabelledQueries, lessons: TrainingSet, groups: Groups
) -> None:
    """Should a state learn from a molecule's cluster, the fitter must see it."""
    with pytest.raises(EvidenceError, match="memory has learned from 40 of the molecules that"):
        CrossFittedChannel(Elsewhere(), lessons, groups).features(asked.lists, asked.blocks)
    leaky = CrossFittedChannel(Memory(), lessons, groups)
    leaky._lessons = replace(lessons)
    object.__setattr__(leaky._lessons, "without", lambda blocks: lessons)
    with pytest.raises(EvidenceError, match="memory has learned from"):
        leaky.features(asked.lists, asked.blocks)


def test_a_molecule_like_one_that_was_learned_from_is_refused(groups: Groups) -> None:
    sizes = np.bincount(groups.cluster)
    first, second = np.flatnonzero(groups.cluster == sizes.argmax())[:2]
    learned = ChannelState(blocks=groups.blocks[[first]])
    with pytest.raises(EvidenceError, match=r"from 1 of the molecules .* or from their like"):
        check_unseen(Memory(), learned, groups.blocks[[second]], groups)
    other = groups.blocks[groups.cluster != groups.cluster[first]]
    check_unseen(Memory(), learned, other, groups)


def test_a_molecule_of_no_group_is_refused(groups: Groups) -> None:
    with pytest.raises(EvidenceError, match="in no group"):
        groups.places(np.array([b"X" * 14]))


def test_nothing_left_to_learn_from_is_said(asked: LabelledQueries, lessons: TrainingSet) -> None:
    rows = fingerprints(["CCO"] * len(lessons.blocks))
    one = Groups.of(lessons.blocks, rows, 2)
    with pytest.raises(EvidenceError, match=r"nothing to learn from: all molecules .* are alike"):
        CrossFittedChannel(Memory(), lessons, one).features(asked.lists, asked.blocks)
