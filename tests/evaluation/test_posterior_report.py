import json
from dataclasses import replace

import numpy as np
import pytest

from mzseek.core.errors import RunError
from mzseek.datasets.prepare import PrepareOptions, prepare
from mzseek.datasets.prepared import Prepared
from mzseek.decision import (
    UTILITIES,
    WITHIN,
    bayes_decision,
    calibration_error,
    first_places,
    risk_coverage,
)
from mzseek.evaluation.posterior_report import (
    CONTROL_UTILITIES,
    DecodedFold,
    decode,
    list_distribution,
    posterior_report,
)
from mzseek.evaluation.posteriors import (
    Posterior,
    abstentions,
    calibrate,
    set_results,
)
from mzseek.evaluation.scored import Scoring
from mzseek.metrics import bit_accuracy, bootstrap, bootstrap_difference, cosine, tanimoto
from mzseek.similarity import f1

from ..conftest import sign


@pytest.mark.parametrize("pooled", [False, True])
def test_a_report_is_made_of_its_parts(pooled: bool, trained, small: Prepared) -> None:
    run, stages = trained("emb-cos"), set()

    def progress(stage: str, done: int, total: int | None = None) -> None:
        stages.add(stage)

    got = posterior_report(run, pooled=pooled, progress=progress)
    found = calibrate(run, pooled=pooled)
    assert got.calibrated.evaluated.probabilities.tolist() == found.evaluated.probabilities.tolist()
    assert got.decoded.to_dict() == decode(found.evaluated, small).to_dict()
    even = decode(found.evaluated.uniform(), small, CONTROL_UTILITIES)
    assert got.uniform.to_dict() == even.to_dict()
    before, after = (p.merged() for p in (found.uncalibrated, found.evaluated))
    errors = {"before": calibration_error(*before), "after": calibration_error(*after)}
    assert got.errors == pytest.approx(errors)
    assert got.sets == set_results(found)
    assert repr(got.abstentions) == repr(abstentions(found))  # NaN equals nothing
    assert got.risk_area == risk_coverage(*first_places(*after)).area
    assert {"decoding", "decoding, uniform"} <= stages
    calibration = json.loads(json.dumps(got.to_dict(), allow_nan=False))["calibration"]
    assert calibration.get("dependence") == (found.pooling.dependence if pooled else None)
    assert calibration["worst_bin"] is None  # eight molecules fill no bin
    assert sum(each["lists"] for each in calibration["bins"]) == len(found.evaluated.counts)


def test_plain_data_are_json(trained) -> None:
    found = posterior_report(trained("emb-cos"))
    facts = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert facts["decoded"] == found.decoded.to_dict()
    assert set(facts["decoded"]) == set(UTILITIES)
    assert set(facts["decoded"]["tanimoto"]) == set(WITHIN)
    assert set(facts["decoded_uniform"]) == set(CONTROL_UTILITIES)
    calibration = found.calibrated.evaluated.calibration
    assert facts["calibration"]["temperature"] == calibration.temperature
    assert facts["calibration"]["power"] == calibration.power
    assert facts["calibration"]["floor"] == calibration.floor
    assert facts["calibration"]["step"] == found.calibrated.evaluated.step
    assert facts["calibration"]["error_after"] == found.errors["after"]
    assert [each["stated"] for each in facts["prediction_sets"]] == [0.8, 0.9, 0.95]
    # Eight molecules are too few to promise one wrong answer in ten.
    assert facts["abstention"][-1] == {
        "wanted": 0.1, "threshold": None, "answered": 0, "wrong": None, "interval": None,
        "falls_short": False,
    }  # fmt: skip
    assert {each["fitted_on_molecules"] for each in facts["prediction_sets"]} == {8}
    assert [each["everything_in"] for each in facts["prediction_sets"]] == [False, True, True]


BY_HAND = {"bits": bit_accuracy, "tanimoto": tanimoto, "cosine": cosine, "f1": f1}


def slices(found: Posterior) -> list[slice]:
    ends = np.cumsum(found.counts)
    return [slice(e - c, e) for e, c in zip(ends, found.counts, strict=True)]


def flattened(found: DecodedFold) -> dict[tuple[str, str, str], np.ndarray]:
    return {
        (utility, within, judged): values
        for utility, places in found.values.items()
        for within, by in places.items()
        for judged, values in by.items()
    }


@pytest.mark.parametrize("identity", ["fingerprint", "inchikey"])
@pytest.mark.parametrize("within", WITHIN)
def test_values_are_those_of_bayes_decisions(identity, within, trained, small: Prepared) -> None:
    found = calibrate(trained("emb-cos"), Scoring(identity=identity)).evaluated
    got = decode(found, small, within=(within,))
    for place, here in enumerate(slices(found)):
        rows = small.fingerprint_rows(found.candidates[here])
        truth = small.fingerprint_rows(found.molecule[[place]]).toarray()
        for utility in UTILITIES:
            decision = bayes_decision(utility, rows, found.probabilities[here], within)
            values = got.values[utility][within]
            for name, metric in BY_HAND.items():
                wanted = metric(decision.bits[None].astype(float), truth)
                assert values[name][place] == pytest.approx(wanted[0], abs=1e-6)
            if decision.index is not None:
                assert values["hit"][place] == found.labels[here][decision.index]
            else:
                assert values["hit"][place] == float((decision.bits == truth).all())


def test_every_utility_and_place_is_there(trained, small: Prepared) -> None:
    found = calibrate(trained("emb-cos")).evaluated
    got = decode(found, small)
    assert set(flattened(got)) == {(u, w, j) for u in UTILITIES for w in WITHIN for j in UTILITIES}
    assert got.molecule.tolist() == found.molecule.tolist()
    few = decode(found, small, ("hit", "cosine"), ("candidates",))
    assert set(flattened(few)) == {
        (u, "candidates", j) for u in ("hit", "cosine") for j in UTILITIES
    }
    for key, values in flattened(few).items():
        assert values.tolist() == flattened(got)[key].tolist()
        assert values.shape == found.counts.shape


def test_two_processes_give_what_one_gives(trained, small: Prepared, monkeypatch) -> None:
    found = calibrate(trained("emb-cos")).evaluated
    told = []
    one = decode(
        found, small, processes=1, progress=lambda stage, done, total: told.append((done, total))
    )
    assert told[-1] == (16, 16)
    monkeypatch.setattr("mzseek.evaluation.posterior_report._LISTS_AT_A_TIME", 5)
    two = decode(found, small, processes=2)
    for key, values in flattened(one).items():
        assert values.tolist() == flattened(two)[key].tolist()


def test_a_folder_made_anew_is_read_anew(small_set, trained, small: Prepared, tmp_path) -> None:
    found = calibrate(trained("emb-cos")).evaluated
    raw = small_set.folder.parent
    files = {setting: raw / f"candidates_{setting}.json" for setting in ("mass", "formula")}
    values = {}
    for kind in ("maccs", "rdkit"):
        made, _ = prepare(raw / "spectra.tsv", files, tmp_path / "p", PrepareOptions(kind), jobs=1)
        values[kind] = decode(found, made, ("tanimoto",)).values["tanimoto"]["all"]["tanimoto"]
    assert not np.allclose(values["maccs"], values["rdkit"])
    own = decode(found, small, ("tanimoto",)).values["tanimoto"]["all"]["tanimoto"]
    assert values["maccs"] == pytest.approx(own)


def test_a_sure_posterior_is_right_by_every_metric(trained, small: Prepared) -> None:
    found = calibrate(trained("emb-cos")).evaluated
    truth = found.labels / np.repeat(
        np.add.reduceat(found.labels.astype(float), np.cumsum(found.counts) - found.counts),
        found.counts,
    )
    for key, values in flattened(decode(replace(found, probabilities=truth), small)).items():
        assert values.tolist() == [1] * len(found.counts), key


def test_equal_scores_hit_as_often_as_chance(copied, small: Prepared) -> None:
    run = copied("emb-cos")
    for _ in range(2):  # the fold is first predicted by the checkpoint that equal scores choose
        for path in run.folder.rglob("*.scores.npy"):
            np.save(path, np.zeros_like(np.load(path)))
        sign(run.folder)
        calibrate(run, Scoring(fold="train"))
    hits, chances = 0.0, []
    for fold in ("train", "val", "test"):
        for setting in ("mass", "formula"):
            how = Scoring(
                fold=fold, candidates=setting, identity="inchikey"
            )  # where no two are one
            found = calibrate(run, how).evaluated
            assert found.probabilities == pytest.approx(found.uniform().probabilities)
            got = decode(found, small, ("hit",)).values["hit"]
            assert got["all"]["hit"].tolist() == got["candidates"]["hit"].tolist()
            _, first = np.unique(found.molecule, return_index=True)  # spectra of one are alike
            hits += got["all"]["hit"][first].sum()
            chances += (1 / found.counts[first]).tolist()
    spread = np.sqrt(sum(c * (1 - c) for c in chances))
    assert len(chances) > 70
    assert abs(hits - sum(chances)) < 3 * spread


def test_means_and_gains_are_over_molecules(trained, small: Prepared) -> None:
    found = calibrate(trained("emb-cos")).evaluated
    own, even = decode(found, small), decode(found.uniform(), small)
    for within in WITHIN:
        values = own.values["tanimoto"][within]["cosine"]
        assert own.interval("tanimoto", "cosine", within) == bootstrap(values, found.molecule)
        control = even.values["tanimoto"][within]["cosine"]
        gain = own.gain_over(even, "tanimoto", "cosine", within)
        assert gain == bootstrap_difference(values, control, found.molecule)
    nothing = own.gain_over(own, "hit", "hit")
    assert nothing.mean == 0
    assert nothing.low < 0 < nothing.high


def test_a_control_on_other_spectra_is_refused(trained, small: Prepared) -> None:
    own = decode(calibrate(trained("emb-cos")).evaluated, small)
    other = decode(calibrate(trained("emb-cos")).val, small)
    with pytest.raises(RunError, match="the control was decoded on other spectra"):
        own.gain_over(other, "hit", "hit")


def test_the_distribution_of_a_list_merges_twins(small: Prepared) -> None:
    candidates = small.candidates("mass").of_molecule(
        next(i for i in range(len(small.masses)) if small.smiles[i] == "CCCCCCCC(=O)O")
    )
    p = np.full(len(candidates), 1 / len(candidates))
    known = list_distribution(small, candidates, p)
    assert len(known) == len(candidates) - 1
    assert known.probabilities.max() == pytest.approx(2 / len(candidates))
