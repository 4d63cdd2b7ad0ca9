import json

import numpy as np
import pytest

from mzseek.decision import regret, regret_bounds
from mzseek.decision.goals import GOALS
from mzseek.evaluation.posteriors import calibrate
from mzseek.evaluation.regrets import BoundCheck, fold_regrets, regrets_of
from mzseek.evaluation.scored import Scoring


@pytest.mark.parametrize("loss", ["bce", "emb-cos"])
def test_regrets_and_bounds_are_those_of_each_list(loss: str, trained, small) -> None:
    run = trained(loss)
    test = calibrate(run).asked
    got = regrets_of(run)
    assert set(got.regret) == set(GOALS)
    assert set(got.bounds) == set(GOALS) - {"hit"}
    assert got.molecule.tolist() == test.molecule.tolist()
    for place, (end, count) in enumerate(zip(np.cumsum(test.counts), test.counts, strict=True)):
        rows = small.fingerprint_rows(test.candidates[end - count : end])
        p = test.probabilities[end - count : end]
        for judged in GOALS:
            for made in GOALS:
                wanted = regret(judged, made, rows, p)
                assert got.regret[judged][made][place] == pytest.approx(wanted, abs=1e-12)
        for name, bounds in got.bounds.items():
            wanted = vars(regret_bounds(name, rows, p))
            assert vars(bounds[place]) == pytest.approx(wanted, nan_ok=True)


def test_bounds_hold_in_every_list_and_that_is_counted(trained) -> None:
    got = regrets_of(trained("emb-cos"), Scoring(candidates="formula"))
    facts = json.loads(json.dumps(got.to_dict(), allow_nan=False))
    assert len(facts["bounds"]) == 2 * (len(GOALS) - 1)
    for check, said in zip(got.checks(), facts["bounds"], strict=True):
        assert said["holds"] == check.holds == said["lists"] == facts["lists"] > 0
        assert "hit" in (check.judged_by, check.decoded_for)
        mean = facts["mean_regret"][check.judged_by][check.decoded_for]
        assert said["mean_regret"] == mean <= said["mean_bound"] + 1e-9
    assert all(0 <= count <= facts["lists"] for count in facts["sure_to_agree"].values())
    assert got.to_table().columns["bound holds in"] == [facts["lists"]] * len(facts["bounds"])


def test_a_bound_that_fails_is_counted() -> None:
    check = BoundCheck("hit", "bits", np.array([0.1, 0.2, 0.3]), np.array([0.1, 0.1, 0.4]))
    assert check.holds == 2


def test_some_lists_are_enough(trained, small) -> None:
    test = calibrate(trained("emb-cos")).asked
    whole, some = (fold_regrets(test, small, every=n) for n in (1, 3))
    for judged, by in some.regret.items():
        for made, lost in by.items():
            assert lost.tolist() == whole.regret[judged][made][::3].tolist()
    assert some.molecule.tolist() == whole.molecule[::3].tolist()
    one = fold_regrets(test, small, ["tanimoto"], every=3)
    assert set(one.regret) == {"hit", "tanimoto"}
    assert one.regret["hit"]["tanimoto"].tolist() == some.regret["hit"]["tanimoto"].tolist()
