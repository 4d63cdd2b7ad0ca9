"""Rankers without the molecules that they are asked about."""

import numpy as np
import pytest

from mzseek.chem import fingerprints
from mzseek.core.errors import EvidenceError
from mzseek.evidence.fitting import CrossFittedChannel, StructureGroups, fit_rankers
from mzseek.evidence.queries import Queries, TrainingSet
from mzseek.evidence.ranker import fit_ranker
from mzseek.evidence.registry import channel_from


@pytest.fixture(scope="module")
def groups(lessons: TrainingSet) -> StructureGroups:
    return StructureGroups.of(lessons.inchikey14, fingerprints(list(lessons.molecules.smiles)), 3)


def test_each_ranker_is_fitted_without_its_group(
    asked: Queries, lessons: TrainingSet, groups: StructureGroups
) -> None:
    taught = [
        CrossFittedChannel(channel_from(name, {}), lessons, groups) for name in ("analogs", "prior")
    ]
    features = [each.features(asked) for each in taught]
    rankers = fit_rankers(taught, features, asked, groups, 3, l2=0.1)
    assert set(rankers) == {None, 0, 1, 2}
    group = groups.group[groups.indices(asked.inchikey14)]
    names = [each.channel.feature_names for each in taught]
    for each, ranker in rankers.items():
        own = np.flatnonzero(group != each) if each is not None else np.arange(len(asked))
        rows = asked.rows(own)
        expected = fit_ranker(
            ["analogs", "prior"], names, [values[rows] for values in features], asked.only(own),
            l2=0.1,
        )  # fmt: skip
        assert np.array_equal(ranker.weights["positive"], expected.weights["positive"])
    assert not np.array_equal(rankers[0].weights["positive"], rankers[None].weights["positive"])


def test_molecules_that_are_all_alike_cannot_be_left_out(
    asked: Queries, lessons: TrainingSet, groups: StructureGroups
) -> None:
    alike = StructureGroups(
        groups.inchikey14, np.zeros_like(groups.cluster), np.zeros_like(groups.group)
    )
    taught = [CrossFittedChannel(channel_from("prior", {}), lessons, groups)]
    features = [each.features(asked) for each in taught]
    with pytest.raises(EvidenceError, match="all molecules to fit on are alike: none are left"):
        fit_rankers(taught, features, asked, alike, 3)
