from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from mzseek.core.registry import Ties
from mzseek.datasets.layout import IDENTITY_BITS
from mzseek.datasets.prepared import Prepared
from mzseek.datasets.slices import Slices
from mzseek.evaluation.scored import HITS, hit_rates, thresholded_tanimoto, validation_means
from mzseek.metrics import hit_rate, tanimoto
from mzseek.models.model import TorchNetwork
from mzseek.runs.predictions import ListScores, Predictions, predict
from mzseek.training.train import random_fold


@pytest.fixture
def lists(small: Prepared) -> ListScores:
    """Scores with many ties."""
    found = random_fold(small, "test", seed=0).lists["mass"]
    return replace(found, scores=np.round(2 * found.scores) / 2)


@pytest.mark.parametrize("ties", get_args(Ties))
@pytest.mark.parametrize("identity", IDENTITY_BITS)
def test_hit_rates_are_those_of_each_list_by_itself(lists: ListScores, ties, identity: str) -> None:
    found, molecule = hit_rates(lists, ties, identity)
    labels = (lists.identity & IDENTITY_BITS[identity]) > 0
    ends = np.cumsum(lists.counts)
    expected: dict[int, list[float]] = {k: [] for k in HITS}
    kept = []
    for count, end, query in zip(lists.counts, ends, lists.molecule, strict=True):
        here = slice(end - count, end)
        if not labels[here].any():
            continue
        kept.append(query)
        for k in HITS:
            expected[k] += hit_rate(lists.scores[here], [count], labels[here], k, ties).tolist()
    assert molecule.tolist() == kept
    for k in HITS:
        assert found[f"hit_rate@{k}"].tolist() == expected[k]


def test_a_list_whose_truth_is_a_tautomer_counts_in_one_sense(lists: ListScores) -> None:
    by_fingerprint, by_block = (len(hit_rates(lists, "expected", i)[1]) for i in IDENTITY_BITS)
    assert by_block - by_fingerprint == 2
    assert by_block == len(lists.queries)


def test_a_list_of_one_is_always_a_hit(lists: ListScores) -> None:
    found, molecule = hit_rates(lists)
    single = np.isin(molecule, lists.molecule[lists.counts == 1])
    assert single.sum() == 2
    assert all((rates[single] == 1).all() for rates in found.values())


def test_no_lists_have_no_hit_rates(lists: ListScores) -> None:
    empty = ListScores(*(array[:0] for array in vars(lists).values() if array is not None))
    found, molecule = hit_rates(empty)
    assert [len(rates) for rates in found.values()] == [0, 0, 0]
    assert len(molecule) == 0


def test_tanimoto_is_that_of_the_thresholded_prediction(
    small: Prepared, small_model, monkeypatch
) -> None:
    monkeypatch.setattr("mzseek.evaluation.scored._ROWS", 5)
    queries = small.in_fold("val")
    predictions = predict(TorchNetwork(small_model()), Slices(small, (), queries), queries)
    truth = small.fingerprint_rows(small.molecule[queries]).toarray()
    bits = (predictions.fingerprints > 0.5).astype(int)
    expected = tanimoto(bits, truth)
    assert thresholded_tanimoto(predictions, small).tolist() == expected.tolist()
    assert validation_means(predictions, small) == {"tanimoto": pytest.approx(expected.mean())}


def test_without_a_fingerprint_there_is_no_tanimoto(small: Prepared) -> None:
    predictions = random_fold(small, "val", seed=0)
    assert thresholded_tanimoto(predictions, small) is None
    means = validation_means(predictions, small)
    assert set(means) == {f"hit_rate@{k}/{s}" for k in HITS for s in ("mass", "formula")}


def test_means_are_over_spectra(small: Prepared) -> None:
    predictions = random_fold(small, "val", seed=0)
    means = validation_means(predictions, small)
    for setting, lists in predictions.lists.items():
        rates, _ = hit_rates(lists)
        for name, values in rates.items():
            assert means[f"{name}/{setting}"] == values.mean()


def test_a_setting_without_lists_has_no_mean(small: Prepared) -> None:
    queries = small.in_fold("val")
    lists = random_fold(small, "val", seed=0).lists
    empty = ListScores(*(each[:0] for each in vars(lists["mass"]).values() if each is not None))
    predictions = Predictions(queries, small.molecule[queries], None, lists | {"mass": empty})
    assert {name.partition("/")[2] for name in validation_means(predictions, small)} == {"formula"}
