"""The fragment channel."""

import numpy as np
import pytest

from mzseek.evidence.fragments import SHAPES, FragmentOptions, Fragments
from mzseek.evidence.queries import Queries, TrainingSet
from mzseek.evidence.ranker import fit_ranker
from mzseek.fragments import KINDS, explain
from mzseek.metrics import hit_rate


def column(said: np.ndarray, name: str) -> np.ndarray:
    return said[:, Fragments.feature_names.index(name)]


def test_order_changes_nothing(in_two_orders) -> None:
    learned, said, again = in_two_orders(Fragments())
    assert np.allclose(again, said, rtol=1e-3, atol=2e-4)
    assert {name: array.shape for name, array in learned.arrays.items()} == {
        f"{mode}.{name}": shape
        for mode in ("positive", "negative")
        for name, shape in {"worth": KINDS, **SHAPES}.items()
    }


def test_it_tells_the_truth_from_others_of_the_same_mass(
    asked: Queries, lessons: TrainingSet
) -> None:
    channel = Fragments()
    half = np.flatnonzero(np.isin(asked.inchikey14, lessons.inchikey14[::2]))
    other = np.flatnonzero(~np.isin(asked.inchikey14, lessons.inchikey14[::2]))
    learned = channel.fit(lessons.without(asked.inchikey14[other]))
    said = channel.features(learned, asked)
    ranker = fit_ranker(["f"], [channel.feature_names], [said[asked.rows(half)]], asked.only(half))
    lists = asked.only(other)
    parts = ranker.contributions([said[asked.rows(other)]], lists.lists.modes, lists.lists.counts)
    assert hit_rate(parts[:, 0], lists.lists.counts, lists.labels, 1).mean() > 0.4  # by chance 0.17


def test_shares_are_those_that_explanations_have(asked: Queries, lessons: TrainingSet) -> None:
    channel = Fragments()
    learned = channel.fit(lessons)
    lists = asked.only(np.arange(3))
    said = channel.features(learned, lists)
    row = 0
    for spectrum, count in zip(lists.spectra, lists.counts, strict=True):
        far = np.abs(spectrum.mz - spectrum.precursor_mz) > 0.5
        roots = dict(zip(spectrum.mz[far], np.sqrt(spectrum.intensities[far]), strict=True))
        for _ in range(count):
            smiles = lists.molecules.smiles[lists.candidates[row]]
            found = [
                one
                for one in explain(spectrum, smiles, refine=False)
                if one.formula and one.mz in roots
            ]
            explained = sum(roots[one.mz] for one in found) / sum(roots.values())
            breaks = said[row, 2:6]
            assert breaks.sum() == pytest.approx(explained, abs=1e-5)
            row += 1


def test_a_spectrum_without_an_adduct_is_read_as_protonated(
    asked: Queries, lessons: TrainingSet
) -> None:
    from dataclasses import replace

    channel = Fragments()
    learned, lists = channel.fit(lessons), asked.only(np.arange(2))
    bare = [replace(each, adduct=None, charge=None) for each in lists.spectra]
    same = Queries(bare, lists.list_of, lists.pointers, lists.members, lists.molecules)
    assert np.array_equal(channel.features(learned, same), channel.features(learned, lists))


def test_a_wider_tolerance_explains_no_less(asked: Queries, lessons: TrainingSet) -> None:
    lists = asked.only(np.arange(10))
    learned = Fragments().fit(lessons)
    narrow, wide = (
        Fragments(FragmentOptions(ppm=ppm, least=0)).features(learned, lists)[:, 2:6].sum(1)
        for ppm in (1.0, 100.0)
    )
    assert (wide >= narrow - 1e-6).all()
    assert (wide > narrow + 1e-6).any()
