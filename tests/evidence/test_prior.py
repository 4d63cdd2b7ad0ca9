"""The prior that is prior_model to the spectrum."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_array

from mzseek.core.errors import EvidenceError
from mzseek.evidence.model import ChannelState
from mzseek.evidence.prior import (
    Prior,
    PriorModel,
    PriorOptions,
    fit_prior_model,
    log_probability,
    prior_features,
)
from mzseek.evidence.queries import Queries, TrainingSet
from mzseek.metrics import hit_rate


def random_bits(rng: np.random.Generator, molecules: int, bits: int) -> csr_array:
    """Rows with frequent and rare bits, as fingerprints have them."""
    frequency = 0.5 * rng.random(bits) ** 2
    return csr_array((rng.random((molecules, bits)) < frequency).astype(np.int32))


def known_prior(
    seed: int, lists: int = 3000, count: int = 20, bits: int = 60
) -> tuple[csr_array, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Lists whose truths were drawn with weights exp(w·x); and the scores w·x of all molecules."""
    rng = np.random.default_rng(seed)
    fingerprints = random_bits(rng, 4000, bits)
    numbers = np.column_stack([rng.poisson(6, 4000), rng.normal(100, 30, 4000)])
    rows = prior_features(fingerprints, numbers)
    weights = np.concatenate([rng.normal(0, 1, bits), [0.1], [0.2], [0.02]])
    prior = rows @ weights
    members = np.concatenate([rng.choice(4000, count, replace=False) for _ in range(lists)])
    noisy = prior[members] + rng.gumbel(size=len(members))  # the largest is a draw by softmax
    labels = np.zeros(len(members), bool)
    labels[np.arange(lists) * count + noisy.reshape(lists, count).argmax(axis=1)] = True
    return rows, members, np.full(lists, count), labels, prior


def test_a_known_prior_is_recovered() -> None:
    rows, members, counts, labels, prior = known_prior(0)
    prior_model = fit_prior_model(rows, counts, labels, members=members, l2=1e-3)
    assert np.corrcoef(prior_model.score(rows), prior)[0, 1] > 0.95
    # In its own units, too: probabilities, not only an order.
    slope = np.polyfit(prior, prior_model.score(rows), 1)[0]
    assert slope == pytest.approx(1, abs=0.1)
    fresh = known_prior(0)[1][::-1]  # other lists of the same molecules
    own = log_probability(prior[fresh], counts, labels[::-1]).mean()
    assert log_probability(prior_model.score(rows)[fresh], counts, labels[::-1]).mean() > own - 0.02


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_it_is_the_minimum_of_what_it_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 6, 12)
    rows = random_bits(rng, int(counts.sum()), 8)
    labels = np.zeros(rows.shape[0], bool)
    labels[np.cumsum(counts) - 1 - rng.integers(0, counts)] = True
    labels |= rng.random(len(labels)) < 0.1  # twins
    dense, ends = rows.toarray().astype(float), np.cumsum(counts)

    def loss(weights: np.ndarray) -> float:
        total = 0.0
        for start, end in zip(ends - counts, ends, strict=True):
            p = np.exp(dense[start:end] @ weights)
            total -= np.log(p[labels[start:end]].sum() / p.sum())
        return total / len(counts) + 0.5 * 0.05 * weights @ weights

    found = fit_prior_model(rows, counts, labels, l2=0.05)
    best = minimize(loss, np.zeros(8), options={"gtol": 1e-8})
    assert found.weights == pytest.approx(best.x, abs=2e-3)
    assert loss(found.weights) <= best.fun + 1e-6


def test_order_changes_nothing_and_the_same_lists_give_the_same_weights() -> None:
    rows, members, counts, labels, _ = known_prior(2, lists=200)
    first = fit_prior_model(rows, counts, labels, members=members)
    again = fit_prior_model(rows, counts, labels, members=members)
    assert (first.weights == again.weights).all()
    backwards = fit_prior_model(rows, counts, labels[::-1], members=members[::-1])
    assert backwards.weights == pytest.approx(first.weights, abs=1e-3)
    apart = fit_prior_model(csr_array(rows[members]), counts, labels)
    assert apart.weights == pytest.approx(first.weights, rel=0.05, abs=0.02)


def test_units_of_descriptors_do_not_matter() -> None:
    rng = np.random.default_rng(3)
    bits, numbers = random_bits(rng, 400, 20), rng.normal(0, 1, (400, 2))
    numbers = np.column_stack([numbers, np.full(400, 7.0)])  # the last tells nothing
    labels = np.arange(400) % 4 == 0
    scores, last = [], []
    for factor in (1, 1000):
        rows = prior_features(bits, factor * numbers)
        fitted = fit_prior_model(rows, [4] * 100, labels)
        lists = fitted.score(rows).reshape(100, 4)
        scores.append(lists - lists[:, :1])
        last.append(fitted.weights[-1])
    assert scores[0] == pytest.approx(scores[1], abs=1e-3)
    assert last == [0, 0]


def test_plain_arrays_and_back() -> None:
    prior_model = PriorModel(np.array([0.5, -1.0]), 0.03)
    again = PriorModel.from_arrays(prior_model.arrays())
    assert (again.weights == prior_model.weights).all()
    assert again.l2 == 0.03
    for arrays in (
        {},
        {"weights": np.eye(2), "l2": np.array([1.0])},
        {"weights": np.array([np.nan]), "l2": np.array([1.0])},
        {"weights": np.array([1.0]), "l2": np.array([1.0, 2.0])},
        {"weights": np.array(["x"]), "l2": np.array([1.0])},
    ):
        with pytest.raises(EvidenceError, match="are no prior"):
            PriorModel.from_arrays(arrays)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"counts": [2, 3]}, "sum to 5, but there are 4"),
        ({"counts": [4, 0]}, "list 1 has no candidates"),
        ({"labels": [1, 0, 0, 0]}, "list 1 has no labelled"),
        ({"members": [0, 1, 2, 4]}, "no indices of 4 rows"),
        ({"members": [0, 1, -1, 3]}, "no indices of 4 rows"),
        ({"l2": 0.0}, "expected above 0"),
        ({"l2": float("nan")}, "expected above 0"),
    ],
)
def test_bad_lists_are_refused(changes, message: str) -> None:
    given = {"counts": [2, 2], "labels": [1, 0, 0, 1]} | changes
    with pytest.raises(EvidenceError, match=message):
        fit_prior_model(csr_array(np.eye(4)), **given)


def test_molecules_of_other_features_are_refused() -> None:
    with pytest.raises(EvidenceError, match="have 3 features, and the prior was fitted on 2"):
        PriorModel(np.zeros(2), 0.1).score(csr_array(np.eye(3)))


def test_it_never_sees_the_spectrum(queries: Queries, training_set: TrainingSet) -> None:
    channel = Prior()
    state = channel.fit(training_set)
    turned = replace(queries, spectra=list(queries.spectra)[::-1])
    assert np.array_equal(channel.features(state, turned), channel.features(state, queries))
    assert not channel.sees_spectrum


def test_it_learns_what_marks_the_truth(queries: Queries, training_set: TrainingSet) -> None:
    # As if people measured, of each list, the molecule with the most kinds of surroundings.
    size = np.diff(queries.molecules.fingerprints(queries.candidates).indptr)
    largest = size == queries.ragged.repeat_per_list(queries.ragged.max(size))
    channel = Prior(PriorOptions(l2=1e-3))
    state = channel.fit(replace(training_set, queries=replace(queries, labels=largest)))
    features = channel.features(state, queries)[:, 0]
    assert hit_rate(features, queries.counts, largest, 1).mean() > 0.9  # by chance about 0.17


def test_a_molecule_counts_once(queries: Queries, training_set: TrainingSet) -> None:
    once = queries.only(np.arange(0, len(queries), 2))  # the first of two spectra of each
    channel = Prior()
    whole, half = channel.fit(training_set), channel.fit(replace(training_set, queries=once))
    assert np.allclose(whole.arrays["weights"], half.arrays["weights"])


def test_what_does_not_fit_is_refused(queries: Queries, training_set: TrainingSet) -> None:
    channel = Prior()
    state = channel.fit(training_set)
    other = Queries.of([queries.spectra[0]], [["CCO"]], fingerprint="maccs")
    with pytest.raises(EvidenceError, match="the prior is over morgan2 bits, and candidates have"):
        channel.features(state, other)
    older = ChannelState(state.arrays, {**state.metadata, "descriptors": ["C"]})
    with pytest.raises(EvidenceError, match="other descriptors than there are; fit it again"):
        channel.features(older, queries)
