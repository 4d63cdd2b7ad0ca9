import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_array

from mzseek.core.errors import EvidenceError
from mzseek.evidence.prior import PriorModel, fit_prior_model, log_probability, prior_features


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
    blind = fit_prior_model(rows, counts, labels, members=members, l2=1e-3)
    assert np.corrcoef(blind.score(rows), prior)[0, 1] > 0.95
    # In its own units, too: probabilities, not only an order.
    slope = np.polyfit(prior, blind.score(rows), 1)[0]
    assert slope == pytest.approx(1, abs=0.1)
    fresh = known_prior(0)[1][::-1]  # other lists of the same molecules
    own = log_probability(prior[fresh], counts, labels[::-1]).mean()
    assert log_probability(blind.score(rows)[fresh], counts, labels[::-1]).mean() > own - 0.02


def test_what_an_offset_says_is_not_learned_again() -> None:
    rows, members, counts, labels, prior = known_prior(1)
    how = {"members": members, "l2": 1e-3}
    rest = fit_prior_model(rows, counts, labels, offsets=prior[members], **how)
    assert rest.score(rows).std() < 0.25 * prior.std()
    half = fit_prior_model(rows, counts, labels, offsets=0.5 * prior[members], **how)
    assert np.corrcoef(half.score(rows), prior)[0, 1] > 0.9
    assert np.polyfit(prior, half.score(rows), 1)[0] == pytest.approx(0.5, abs=0.1)


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
    one = fit_prior_model(prior_features(bits, numbers), [4] * 100, labels)
    other = fit_prior_model(prior_features(bits, 1000 * numbers), [4] * 100, labels)
    first, second = (
        one.score(prior_features(bits, numbers)),
        other.score(prior_features(bits, 1e3 * numbers)),
    )
    lists = first.reshape(100, 4)
    shifted = second.reshape(100, 4)
    assert lists - lists[:, :1] == pytest.approx(shifted - shifted[:, :1], abs=1e-3)
    assert one.weights[-1] == other.weights[-1] == 0


def test_the_stronger_the_penalty_the_smaller_the_scores() -> None:
    rows, members, counts, labels, _ = known_prior(4, lists=300)
    sizes = [
        fit_prior_model(rows, counts, labels, members=members, l2=l2).score(rows).std()
        for l2 in (1.0, 0.1, 0.01)
    ]
    assert sizes == sorted(sizes)


def test_plain_arrays_and_back() -> None:
    blind = PriorModel(np.array([0.5, -1.0]), 0.03)
    again = PriorModel.from_arrays(blind.arrays())
    assert (again.weights == blind.weights).all()
    assert again.l2 == 0.03
    for arrays in (
        {},
        {"weights": np.eye(2), "l2": np.array([1.0])},
        {"weights": np.array([np.nan]), "l2": np.array([1.0])},
        {"weights": np.array([1.0]), "l2": np.array([1.0, 2.0])},
        {"weights": np.array(["x"]), "l2": np.array([1.0])},
    ):
        with pytest.raises(EvidenceError, match="no blind scorer"):
            PriorModel.from_arrays(arrays)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"counts": [2, 3]}, "sum to 5, but there are 4"),
        ({"counts": [4, 0]}, "list 1 has no candidates"),
        ({"labels": [1, 0, 0, 0]}, "list 1 has no labelled"),
        ({"members": [0, 1, 2, 4]}, "no 4 places in 4 rows"),
        ({"members": [0, 1, -1, 3]}, "no 4 places in 4 rows"),
        ({"offsets": [0, 0, np.nan, 0]}, "not finite"),
        ({"l2": 0.0}, "expected above 0"),
        ({"l2": float("nan")}, "expected above 0"),
    ],
)
def test_lists_that_will_not_do_are_refused(changes, message: str) -> None:
    given = {"counts": [2, 2], "labels": [1, 0, 0, 1]} | changes
    with pytest.raises(EvidenceError, match=message):
        fit_prior_model(csr_array(np.eye(4)), **given)


def test_molecules_of_other_features_are_refused() -> None:
    with pytest.raises(
        EvidenceError, match="have 3 features, and the blind scorer was fitted on 2"
    ):
        PriorModel(np.zeros(2), 0.1).score(csr_array(np.eye(3)))
