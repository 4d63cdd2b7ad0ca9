"""Nothing is fitted on what a channel has learned from, or from its like."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from mzseek.chem import fingerprints
from mzseek.core.errors import EvidenceError
from mzseek.evidence.channel import Channel, ChannelState
from mzseek.evidence.fitting import MIN_TANIMOTO, CrossFittedChannel, StructureGroups, check_unseen
from mzseek.evidence.queries import Queries, TrainingSet
from mzseek.similarity import tanimoto_blocks


class Memory(Channel):
    """Knows by heart which molecules it was shown: the worst that a channel can do."""

    name = "memory"
    feature_names: ClassVar[tuple[str, ...]] = ("seen",)

    def fit(self, lessons: TrainingSet, progress=None) -> ChannelState:
        shown = [lessons.molecules.smiles[m] for m in np.unique(lessons.molecule)]
        return ChannelState({}, {"shown": shown}, lessons.molecules_used)

    def features(self, learned: ChannelState, lists) -> np.ndarray:
        shown = set(learned.metadata["shown"])
        named = [lists.molecules.smiles[c] in shown for c in lists.candidates]
        return np.array(named, np.float32)[:, None]


class Elsewhere(Memory):
    """The same, but what it was shown cannot be taken away."""

    pretrained = True


@pytest.fixture(scope="module")
def groups(lessons: TrainingSet) -> StructureGroups:
    return StructureGroups.of(lessons.inchikey14, fingerprints(list(lessons.molecules.smiles)), 4)


def test_groups_hold_whole_clusters(lessons: TrainingSet, groups: StructureGroups) -> None:
    rows = fingerprints(list(lessons.molecules.smiles))
    place = groups.indices(lessons.inchikey14)
    assert len(np.unique(groups.group)) == 4
    linked = 0
    for start, block in tanimoto_blocks(rows, rows):
        for one, other in zip(*np.nonzero(block >= MIN_TANIMOTO), strict=True):
            assert groups.cluster[place[start + one]] == groups.cluster[place[other]]
            linked += start + one != other
    assert linked > 0
    for cluster in np.unique(groups.cluster):
        assert len(np.unique(groups.group[groups.cluster == cluster])) == 1


def test_groups_do_not_depend_on_the_order_of_molecules(
    lessons: TrainingSet, groups: StructureGroups
) -> None:
    order = np.random.default_rng(0).permutation(len(lessons.inchikey14))
    rows = fingerprints(list(lessons.molecules.smiles))
    again = StructureGroups.of(lessons.inchikey14[order], rows[order], 4)
    assert np.array_equal(again.inchikey14, groups.inchikey14)
    assert np.array_equal(again.group, groups.group)


def test_forms_of_one_skeleton_are_one_molecule() -> None:
    blocks = np.array([b"A" * 14, b"A" * 14, b"B" * 14])
    found = StructureGroups.of(blocks, fingerprints(["CCO", "c1ccccc1", "CCCCN"]), 2)
    assert found.inchikey14.tolist() == [b"A" * 14, b"B" * 14]


def test_what_is_learned_by_heart_helps_nothing(
    asked: Queries, lessons: TrainingSet, groups: StructureGroups
) -> None:
    taught = CrossFittedChannel(Memory(), lessons, groups)
    assert taught.channel.features(taught.state, asked)[asked.labels].all()
    crossed = taught.features(asked)
    assert not crossed[asked.labels].any()
    assert crossed.any()  # others, of other groups, were shown


def test_molecules_that_were_not_learned_from_are_asked_of_the_whole(
    asked: Queries, lessons: TrainingSet, groups: StructureGroups
) -> None:
    gone = groups.inchikey14[groups.group == 0]
    taught = CrossFittedChannel(Memory(), lessons.without(gone), groups)
    own = np.flatnonzero(np.isin(asked.inchikey14, gone))
    some = asked.only(own)
    said = taught.features(some, some.inchikey14)
    assert np.array_equal(said, Memory().features(taught.state, some))


def test_features_of_what_was_learned_from_are_refused(
    asked: Queries, lessons: TrainingSet, groups: StructureGroups
) -> None:
    """Should a state learn from a molecule's cluster, the fitter must see it."""
    with pytest.raises(EvidenceError, match="memory has learned from 40 of the molecules that"):
        CrossFittedChannel(Elsewhere(), lessons, groups).features(asked, asked.inchikey14)
    leaky = CrossFittedChannel(Memory(), lessons, groups)
    leaky._lessons = replace(lessons)
    object.__setattr__(leaky._lessons, "without", lambda blocks: lessons)
    with pytest.raises(EvidenceError, match="memory has learned from"):
        leaky.features(asked, asked.inchikey14)


def test_a_molecule_like_one_that_was_learned_from_is_refused(groups: StructureGroups) -> None:
    sizes = np.bincount(groups.cluster)
    first, second = np.flatnonzero(groups.cluster == sizes.argmax())[:2]
    learned = ChannelState(blocks=groups.inchikey14[[first]])
    with pytest.raises(EvidenceError, match=r"from 1 of the molecules .* or from their like"):
        check_unseen(Memory(), learned, groups.inchikey14[[second]], groups)
    other = groups.inchikey14[groups.cluster != groups.cluster[first]]
    check_unseen(Memory(), learned, other, groups)


def test_a_molecule_of_no_group_is_refused(groups: StructureGroups) -> None:
    with pytest.raises(EvidenceError, match="in no group"):
        groups.indices(np.array([b"X" * 14]))


def test_nothing_left_to_learn_from_is_said(asked: Queries, lessons: TrainingSet) -> None:
    rows = fingerprints(["CCO"] * len(lessons.inchikey14))
    one = StructureGroups.of(lessons.inchikey14, rows, 2)
    with pytest.raises(EvidenceError, match=r"nothing to learn from: all molecules .* are alike"):
        CrossFittedChannel(Memory(), lessons, one).features(asked, asked.inchikey14)
