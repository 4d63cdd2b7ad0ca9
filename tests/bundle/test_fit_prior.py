"""The prior of a bundle."""

import numpy as np
import pytest

from mzseek.bundle import Bundle
from mzseek.bundle.fit_confidence import usable_lists
from mzseek.bundle.fit_prior import fit_prior, fit_weight
from mzseek.bundle.refit import interval_of
from mzseek.core.registry import FOLDS
from mzseek.datasets.prepared import Prepared
from mzseek.decision import posterior
from mzseek.evidence import channels_from
from mzseek.evidence.fitting import FitOptions, fit
from mzseek.evidence.queries import Molecules
from mzseek.metrics import hit_rate
from mzseek.runs.run import Run


def lists_of(generator: np.random.Generator, weight: float, number: int = 4000):
    """Lists whose truths are drawn by probabilities times a prior to the power of a weight."""
    counts = np.full(number, 6)
    log_p, odds = (
        np.log(generator.dirichlet(np.ones(6), number)),
        generator.normal(size=(number, 6)),
    )
    p = posterior((log_p + weight * odds).ravel(), counts).reshape(number, 6)
    drawn = (generator.random((number, 1)) > p.cumsum(1)).sum(1)
    truth = np.arange(6) == np.minimum(drawn, 5)[:, None]
    return log_p.ravel(), odds.ravel(), counts, truth.ravel(), np.arange(number)


@pytest.mark.parametrize("weight", [0.4, 1.3])
def test_the_weight_that_made_the_truths_is_found(weight: float) -> None:
    found = fit_weight(*lists_of(np.random.default_rng(1), weight))
    assert found == pytest.approx(weight, abs=0.06)


def test_a_prior_that_misleads_counts_nothing() -> None:
    assert fit_weight(*lists_of(np.random.default_rng(2), -0.5)) == 0.0


def test_every_molecule_counts_once() -> None:
    truth = np.array([1, 0] * 3 + [0, 1] * 3, bool)
    one_of_each = fit_weight(np.zeros(12), [1.0, 0.0] * 6, [2] * 6, truth, np.arange(6))
    often = fit_weight(np.zeros(12), [1.0, 0.0] * 6, [2] * 6, truth, np.array([0, 1, 2, 3, 3, 3]))
    assert one_of_each == pytest.approx(0.0, abs=1e-6)
    assert often == pytest.approx(np.log(3), abs=1e-4)


def test_it_has_learned_from_the_train_fold_and_is_on_the_card(
    bundle: Bundle, fitted_run: Run, small: Prepared
) -> None:
    prior = bundle.prior
    assert prior is not None
    train = np.unique(small.inchikey14[small.molecule[small.in_fold("train")]])
    assert prior.state.inchikey14.tolist() == train.tolist()
    card = bundle.card["prior"]
    assert card["weights"] == prior.weights
    assert all(weight >= 0 for weight in prior.weights.values())
    assert (
        card["without"]["positive"]["hit_rates"]
        == (bundle.card["measured"]["positive"]["hit_rates"])
    )
    lists = usable_lists(fitted_run, small, "test", "mass")
    p = bundle.confidence.of(1).calibration.posterior(lists.scores, lists.counts)
    table = Molecules([small.smiles[int(each)] for each in lists.candidates], "maccs", jobs=1)
    ends = np.cumsum(lists.counts)
    values = np.log(p)
    for start, end in zip(ends - lists.counts, ends, strict=True):
        values[start:end] += prior.log_odds(table, np.arange(start, end), 1)
    rates = hit_rate(values, lists.counts, np.asarray(lists.identity) > 0, 1)
    found = card["with"]["positive"]
    assert found["hit_rates"]["1"] == pytest.approx(interval_of(rates, lists.molecule), abs=1e-6)
    assert 0 <= found["sets"]["covered"][0] <= 1


def test_it_can_learn_once_more_from_all_folds(
    bundle: Bundle, fitted_run: Run, small: Prepared
) -> None:
    made = fit_prior(fitted_run, small, bundle.confidence, FitOptions(), FOLDS, jobs=1)
    assert made is not None
    assert (
        made.prior.state.inchikey14.tolist() == np.unique(small.inchikey14[small.molecule]).tolist()
    )
    assert made.prior.weights == bundle.card["prior"]["weights"]  # fitted before that
    assert made.measured == bundle.card["prior"]["with"]


def test_a_ranker_that_has_it_gets_no_second_one(bundle: Bundle, small: Prepared, tmp_path) -> None:
    run = fit(small, channels_from("analogs,prior"), tmp_path / "run", jobs=1)
    assert fit_prior(run, small, bundle.confidence, FitOptions(), ["train"], jobs=1) is None
