import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from mzseek.core.errors import RunError
from mzseek.core.ragged import Ragged
from mzseek.datasets.prepared import Prepared
from mzseek.decision import fit_temperature, posterior
from mzseek.evaluation.information_gain import contributions_of, information_gain
from mzseek.evaluation.posteriors import calibrate, calibration_lists
from mzseek.evaluation.scored import Scoring
from mzseek.metrics import bootstrap
from mzseek.runs.predictions import Predictions
from mzseek.runs.run import Run

from ..conftest import sign


def of_truth(posterior) -> np.ndarray:
    return Ragged(posterior.counts).sum(np.where(posterior.labels, posterior.probabilities, 0))


@pytest.fixture
def scored(trained, tmp_path: Path):
    """A copy of a run whose scores are made from what is the truth."""

    def make(name: str, scores) -> Run:
        folder = Path(shutil.copytree(trained("emb-cos").folder, tmp_path / name))
        for path in folder.rglob("*.scores.npy"):
            identity = np.load(path.with_name(path.name.replace("scores", "identity")))
            np.save(path, scores(identity > 0, np.load(path)).astype(np.float32))
        sign(folder)
        return Run.open(folder)

    return make


@pytest.mark.parametrize("together", [False, True])
def test_bits_over_uniform_are_those_of_calibrated_probabilities(together: bool, trained) -> None:
    run = trained("emb-cos")
    found = information_gain(run, pooled=together)
    posterior = calibrate(run, pooled=together).evaluated
    p = of_truth(posterior)
    even = of_truth(posterior.uniform())
    assert found.truth.run == pytest.approx(p)
    assert found.to_be_had == pytest.approx(-np.log2(even))
    assert found.of_run == pytest.approx(np.log2(p / even))
    assert found.truth.queries.tolist() == posterior.queries.tolist()
    assert found.intervals()["run"] == bootstrap(found.of_run, posterior.molecule, bounds=None)
    assert found.of_prior == pytest.approx(0)


def test_bits_over_another_run_are_the_differences(trained) -> None:
    run, blind = trained("emb-cos"), trained("emb-cos", model="blind")
    over, own, other = information_gain(run, blind), information_gain(run), information_gain(blind)
    assert over.of_prior == pytest.approx(other.of_run)
    assert over.of_run == pytest.approx(own.of_run - other.of_run)
    assert set(over.intervals()) == {"to_be_had", "run", "prior", "given_prior"}
    assert set(own.intervals()) == {"to_be_had", "run"}


def test_a_list_of_one_has_nothing_to_be_had(trained) -> None:
    found = information_gain(trained("emb-cos"))
    alone = found.truth.candidates == 1
    assert alone.any()
    assert found.to_be_had[alone].tolist() == [0] * alone.sum()
    assert found.of_run[alone] == pytest.approx(0)


def test_a_perfect_run_tells_all_and_an_even_one_nothing(scored) -> None:
    perfect = information_gain(scored("perfect", lambda truth, old: truth * 1.0))
    assert perfect.of_run == pytest.approx(perfect.to_be_had, abs=1e-2)
    even = information_gain(scored("even", lambda truth, old: old * 0))
    assert even.of_run == pytest.approx(0, abs=1e-12)


def test_a_run_that_repeats_the_prior_adds_nothing_to_it(scored, trained) -> None:
    prior = trained("emb-cos")
    same = scored("same", lambda truth, old: 3 * old + 1)
    found = information_gain(same, prior)
    assert found.of_run == pytest.approx(0, abs=0.05)
    assert found.given_prior.mean() < 0.3  # eight molecules: weights are off by chance


def test_what_a_molecule_of_validation_says_does_not_reach_its_own_fit(scored) -> None:
    how = Scoring(fold="val")
    as_is = information_gain(scored("as-it-is", lambda truth, old: old), how=how)
    first = as_is.truth.molecule[0]
    run = scored("other", lambda truth, old: old)
    lists = calibration_lists(run, how).val
    rows = np.repeat(lists.molecule == first, lists.counts)
    for path in run.folder.glob("predictions/*/val/mass.scores.npy"):
        molecule = np.load(path.with_name("mass.molecule.npy"))
        counts = np.load(path.with_name("mass.counts.npy"))
        inside = np.repeat(molecule == first, counts)
        scores = np.load(path)
        scores[inside] = -scores[inside]
        np.save(path, scores)
    sign(run.folder)
    assert rows.any()
    changed = information_gain(run, how=how)
    own = as_is.truth.molecule == first
    assert changed.truth.run[own] != pytest.approx(as_is.truth.run[own])
    # Those measured by the same fit are as they were; others were fitted with it, and are not.
    same = np.isclose(changed.truth.run, as_is.truth.run, rtol=1e-12)
    assert same[~own].any()
    assert not same[~own].all()


def test_rows_say_what_was_asked_and_told(trained, small: Prepared) -> None:
    run, blind = trained("emb-cos"), trained("emb-cos", model="blind")
    found = information_gain(run, blind)
    rows = list(csv.DictReader(io.StringIO(found.to_tsv(small)), delimiter="\t"))
    assert list(rows[0]) == [
        "identifier", "molecule", "spectra", "candidates", "rank", "p_truth", "p_prior", "bits",
        "p_both", "bits_given_prior",
    ]  # fmt: skip
    assert [row["identifier"] for row in rows] == [
        small.identifiers[int(q)] for q in found.truth.queries
    ]
    for row, bits, p, rank in zip(
        rows, found.of_run, found.truth.run, found.truth.rank, strict=True
    ):
        assert float(row["bits"]) == pytest.approx(bits, abs=1e-4)
        assert float(row["p_truth"]) == pytest.approx(p, rel=1e-5)
        assert float(row["rank"]) == pytest.approx(rank, rel=1e-5)
    alone = next(csv.DictReader(io.StringIO(information_gain(run).to_tsv(small)), delimiter="\t"))
    assert "p_both" not in alone


def test_plain_data_are_json(trained) -> None:
    run, blind = trained("emb-cos"), trained("emb-cos", model="blind")
    facts = json.loads(
        json.dumps(information_gain(run, blind, pooled=True).to_dict(), allow_nan=False)
    )
    assert facts["over"] == str(blind.folder.resolve())
    assert facts["together"] == "molecule"
    assert set(facts["weights"]) == {"run", "prior"}
    for name in ("to_be_had", "run", "prior", "given_prior"):
        assert facts[name]["low"] <= facts[name]["mean"] <= facts[name]["high"]
    assert information_gain(run).to_dict()["over"] == "uniform"
    assert len(information_gain(run, blind).to_table().columns["bits"]) == 4


def test_folds_and_priors_that_will_not_do_are_refused(trained, scored) -> None:
    run = trained("emb-cos")
    with pytest.raises(RunError, match="molecules that the run was not trained on"):
        information_gain(run, how=Scoring(fold="train"))
    other = scored("other", lambda truth, old: old)
    for path in other.folder.glob("predictions/*/test/mass.candidates.npy"):
        np.save(path, np.roll(np.load(path), 1))
    sign(other.folder)
    with pytest.raises(RunError, match="was scored on other lists than"):
        information_gain(run, other)


HOW = Scoring("test", "mass")


def bits(run: Run, channels: list[int]) -> np.ndarray:
    """log2 of the probability of the truths by some channels, list by list."""
    val, lists = (Predictions.open(run.predictions(0, f)).lists["mass"] for f in ("val", "test"))
    fit = np.asarray(val.parts)[:, channels].sum(1, dtype=float)
    temperature = fit_temperature(fit, val.counts, val.identity & 1 > 0, val.molecule)
    scores = np.asarray(lists.parts)[:, channels].sum(1, dtype=float)
    values, start = [], 0
    for count in lists.counts:
        inside = slice(start, start + count)
        truth = lists.identity[inside] & 1 > 0
        if truth.any():
            p = posterior(scores[inside], [count], temperature)
            values.append(np.log2(p[truth].sum()))
        start += count
    return np.array(values)


def test_bits_of_channels_are_those_of_their_contributions(fitted_run: Run) -> None:
    found = contributions_of(fitted_run, HOW)
    labels = list(fitted_run.description.fitted.labels)
    every = list(range(len(labels)))
    whole, uniform = bits(fitted_run, every), bits(fitted_run, [])
    assert np.allclose(found.all_of_it, whole - uniform, atol=1e-4)
    lists = Predictions.open(fitted_run.predictions(0, "test")).lists["mass"]
    assert np.allclose(lists.scores, np.asarray(lists.parts).sum(1, dtype=float), atol=1e-4)
    for channel, label in enumerate(labels):
        others = [other for other in every if other != channel]
        assert np.allclose(found.alone[label], bits(fitted_run, [channel]) - uniform, atol=1e-4)
        assert np.allclose(found.added[label], whole - bits(fitted_run, others), atol=1e-4)
    assert found.to_table().columns["channel"] == [*labels, "all"]
    facts = found.to_dict()
    assert facts["all"][0] == pytest.approx(found.all_of_it.mean())
    assert set(facts["alone"]) == set(facts["added"]) == set(labels)


def test_a_trained_run_has_none(trained) -> None:
    with pytest.raises(RunError, match=r"was trained \(bce\), and has no channels"):
        contributions_of(trained("bce"), HOW)
