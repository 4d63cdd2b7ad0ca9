import json

import pytest

from mzseek.datasets.prepared import Prepared
from mzseek.decision import UTILITIES, WITHIN
from mzseek.evaluation.posterior_report import (
    CONTROL_UTILITIES,
    PosteriorReport,
    beliefs_of,
    decode,
)
from mzseek.evaluation.posteriors import (
    abstentions,
    calibrate,
    calibration_errors,
    risk_area,
    set_results,
)
from mzseek.evaluation.scored import Scoring


@pytest.mark.parametrize("loss", ["bce", "emb-cos"])
def test_beliefs_are_made_of_their_parts(loss: str, trained, small: Prepared) -> None:
    run = trained(loss)
    stages = set()
    got: PosteriorReport = beliefs_of(
        run, progress=lambda stage, done, total=None: stages.add(stage)
    )
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
