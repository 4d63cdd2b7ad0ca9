"""References, refitted channels, the prior of a bundle, measured performance."""

from pathlib import Path

import numpy as np
import pytest

from mzseek.bundle import Bundle
from mzseek.bundle.fit_confidence import usable_lists
from mzseek.bundle.fitting import (
    References,
    fit_prior,
    fit_weight,
    interval_of,
    measured,
    reference_spectra,
    references_from,
    refit_channels,
)
from mzseek.core.registry import FOLDS
from mzseek.datasets.prepared import Prepared
from mzseek.decision import posterior
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.scored import Scoring
from mzseek.evidence import channels_from
from mzseek.evidence.fitting import FitOptions, fit
from mzseek.evidence.model import EvidenceModel
from mzseek.evidence.queries import Molecules
from mzseek.library import Library
from mzseek.metrics import hit_rate
from mzseek.runs.run import Run


def test_spectra_with_what_is_known_of_them(small: Prepared) -> None:
    queries = small.in_fold("val")
    name = small.identifiers[int(queries[1])]
    found = references_from(small, queries, {name: {"license": "CC0", "collision_energy": "20 eV"}})
    records = found.records.to_pylist()
    assert records[1] == {
        "identifier": name, "adduct": "[M+H]+", "collision_energy": "20 eV", "instrument_type": "",
        "contributor": "", "license": "CC0", "source": "",
    }  # fmt: skip
    assert records[0]["license"] == ""
    blocks = [small.inchikey14[small.molecule[each]].decode() for each in queries]
    assert [found.molecules[place].inchikey14 for place in found.molecule_of] == blocks
    assert set(found.ions.modes.tolist()) == {1}


def test_features_are_pairs_of_a_molecule_and_an_ion(small: Prepared) -> None:
    found = references_from(small, small.in_fold("val"), {})
    counts = found.features_by_ion()
    assert counts["positive"] == {"[M+H]+": len(found.molecules)}
    assert counts["negative"] == {}


def test_a_library_is_made_of_them_and_read_again(small: Prepared, tmp_path: Path) -> None:
    found = references_from(small, small.in_fold("val"), {})
    library = found.library(tmp_path)
    assert isinstance(library, Library)
    again = References.of_library(library)
    assert again.keys == [(key, round(mass, 6)) for key, mass in found.keys]
    assert np.array_equal(again.peaks.values, found.peaks.values)
    assert again.molecule_of.tolist() == found.molecule_of.tolist()


def test_peaks_are_made_compact(small: Prepared) -> None:
    found = references_from(small, small.in_fold("train"), {}, max_peaks=7)
    assert np.diff(found.peaks.pointers).max() == 7


def test_they_have_learned_from_all_folds(fitted_run: Run, small: Prepared) -> None:
    fitted = EvidenceModel.open(fitted_run)
    again = refit_channels(fitted, small, FitOptions(), max_peaks=50, jobs=1)
    measured = np.unique(small.inchikey14[small.molecule])
    analogs = [channel.name for channel in again.channels].index("analogs")
    assert again.states[analogs].inchikey14.tolist() == measured.tolist()
    assert len(again.states[analogs].arrays["precursors"]) == len(small)
    assert np.diff(again.states[analogs].arrays["pointers"]).max() == 50
    assert again.ranker is fitted.ranker


def test_spectra_of_folds_in_the_order_of_the_folder(small: Prepared) -> None:
    assert reference_spectra(small, FOLDS).tolist() == list(range(len(small)))
    assert reference_spectra(small, ["val"]).tolist() == small.in_fold("val").tolist()


def test_hit_rates_are_those_of_evaluate(bundle: Bundle, fitted_run: Run, small: Prepared) -> None:
    found = measured(fitted_run, small, bundle.confidence, "mass")
    assert list(found) == ["positive"]
    own = found["positive"]
    how = Scoring(fold="test", candidates="mass", identity="inchikey")
    expected = evaluate(fitted_run, how)
    for k in (1, 5, 20):
        mean, low, high = own["hit_rates"][str(k)]
        assert mean == pytest.approx(expected.intervals()[f"hit_rate@{k}"].mean, abs=1e-6)
        assert low <= mean <= high
    assert own["hit_rates_together"]["1"][0] >= 0
    assert 0 <= own["calibration_error"] <= 1
    assert 0 <= own["sets"]["covered"][0] <= 1
    assert bundle.card["measured"] == found


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
    prior, performance = made
    assert prior.state.inchikey14.tolist() == np.unique(small.inchikey14[small.molecule]).tolist()
    assert prior.weights == bundle.card["prior"]["weights"]  # fitted before that
    assert performance == bundle.card["prior"]["with"]


@pytest.mark.slow
def test_a_ranker_that_has_it_gets_no_second_one(bundle: Bundle, small: Prepared, tmp_path) -> None:
    run = fit(small, channels_from("analogs,prior"), tmp_path / "run", jobs=1)
    assert fit_prior(run, small, bundle.confidence, FitOptions(), ["train"], jobs=1) is None
