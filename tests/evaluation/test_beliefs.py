import json

import numpy as np
import pytest

from mzseek.decision import UTILITIES, WITHIN, bayes_decision, decompose
from mzseek.errors import RunError
from mzseek.evaluation.beliefs import CONTROL_UTILITIES, Beliefs, beliefs_of, decompose_run
from mzseek.evaluation.decoding import decode
from mzseek.evaluation.posteriors import calibrate
from mzseek.evaluation.scored import Scoring
from mzseek.evaluation.uncertainty import abstentions, calibration_errors, risk_area, set_results
from mzseek.metrics import binarise
from mzseek.prepared import Prepared
from mzseek.runs.predictions import Predictions


@pytest.mark.parametrize("loss", ["bce", "emb-cos"])
def test_beliefs_are_made_of_their_parts(loss: str, trained, small: Prepared) -> None:
    run = trained(loss)
    stages = set()
    got: Beliefs = beliefs_of(run, progress=lambda stage, done, total=None: stages.add(stage))
    found = calibrate(run)
    assert got.calibrated.asked.probabilities.tolist() == found.asked.probabilities.tolist()
    assert got.decoded.to_dict() == decode(found.asked, small).to_dict()
    even = decode(found.asked.uniform(), small, CONTROL_UTILITIES)
    assert got.uniform.to_dict() == even.to_dict()
    assert got.errors == calibration_errors(found)
    assert got.sets == set_results(found)
    assert repr(got.abstentions) == repr(abstentions(found))  # NaN equals nothing
    assert got.risk_area == risk_area(found)
    assert {"decoding", "decoding, uniform"} <= stages


def test_plain_data_are_json(trained) -> None:
    found = beliefs_of(trained("emb-cos"))
    facts = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert facts["decoded"] == found.decoded.to_dict()
    assert set(facts["decoded"]) == set(UTILITIES)
    assert set(facts["decoded"]["tanimoto"]) == set(WITHIN)
    assert set(facts["decoded_uniform"]) == set(CONTROL_UTILITIES)
    calibration = found.calibrated.asked.calibration
    assert facts["calibration"]["temperature"] == calibration.temperature
    assert facts["calibration"]["power"] == calibration.power
    assert facts["calibration"]["floor"] == calibration.floor
    assert facts["calibration"]["step"] == found.calibrated.asked.step
    assert facts["calibration"]["error_after"] == found.errors["after"]
    assert [each["stated"] for each in facts["prediction_sets"]] == [0.8, 0.9, 0.95]
    # Eight molecules are too few to promise one wrong answer in ten.
    assert facts["abstention"][-1] == {
        "wanted": 0.1, "threshold": None, "answered": 0, "wrong": None, "interval": None,
        "falls_short": False,
    }  # fmt: skip
    assert {each["fitted_on_molecules"] for each in facts["prediction_sets"]} == {8}
    assert [each["everything_in"] for each in facts["prediction_sets"]] == [False, True, True]


def test_the_way_of_scoring_reaches_the_beliefs(trained) -> None:
    how = Scoring(fold="val", candidates="formula", identity="inchikey")
    assert beliefs_of(trained("emb-cos"), how).calibrated.asked.how == how


@pytest.mark.parametrize(("counts", "made_for"), [("tanimoto", "hit"), ("hit", "cosine")])
def test_a_ranking_s_regret_is_split_as_by_hand(counts, made_for, trained, small) -> None:
    run = trained("emb-cos")
    found = calibrate(run)
    got = decompose_run(run, found, counts, made_for)
    test = found.asked
    assert got.shape == (len(test.counts), 3)
    assert got[:, 0] + got[:, 1] == pytest.approx(got[:, 2])
    for place, (end, count) in enumerate(zip(np.cumsum(test.counts), test.counts, strict=True)):
        rows = small.fingerprint_rows(test.candidates[end - count : end])
        p = test.probabilities[end - count : end]
        chosen = bayes_decision("hit", rows, p).bits  # the most probable fingerprint
        wanted = decompose(counts, made_for, rows, p, chosen)
        assert got[place] == pytest.approx([wanted.bayes, wanted.residual, wanted.total])
    assert (got[:, 0] >= -1e-12).all()
    if made_for == "hit":  # the rule is the Bayes rule
        assert got[:, 1] == pytest.approx(0)


def test_a_thresholded_fingerprint_s_regret_is_split_as_by_hand(trained, small) -> None:
    run = trained("bce")
    found = calibrate(run)
    got = decompose_run(run, found, "tanimoto", "bits", rule="threshold")
    assert got[:, 0] + got[:, 1] == pytest.approx(got[:, 2])
    said = Predictions.open(run.predictions(run.best["tanimoto"]["step"], "test"))
    predicted = dict(zip(said.queries.tolist(), binarise(said.fingerprints), strict=True))
    test = found.asked
    for place, (end, count) in enumerate(zip(np.cumsum(test.counts), test.counts, strict=True)):
        rows = small.fingerprint_rows(test.candidates[end - count : end])
        p, bits = test.probabilities[end - count : end], predicted[int(test.queries[place])]
        wanted = decompose("tanimoto", "bits", rows, p, np.asarray(bits, np.uint8), "all")
        assert got[place] == pytest.approx([wanted.bayes, wanted.residual, wanted.total])


def test_some_spectra_are_enough_for_a_split(trained) -> None:
    run = trained("emb-cos")
    found = calibrate(run)
    every, some = (decompose_run(run, found, "hit", "tanimoto", every=n) for n in (1, 3))
    assert some.tolist() == every[::3].tolist()


def test_rules_that_a_run_has_not_are_refused(trained) -> None:
    run = trained("emb-cos")
    found = calibrate(run)
    with pytest.raises(RunError, match="rule 'vote' is unknown, expected one of: rank, threshold"):
        decompose_run(run, found, "hit", "bits", rule="vote")
    with pytest.raises(RunError, match="emb-cos predicts no fingerprint to threshold"):
        decompose_run(run, found, "hit", "bits", rule="threshold")
