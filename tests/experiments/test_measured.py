import json
from pathlib import Path

import pytest

from mzseek.core.errors import ExperimentError
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.posterior_report import posterior_report
from mzseek.evaluation.scored import Scoring
from mzseek.experiments.results import Measured


@pytest.mark.parametrize("fold", ["val", "test"])
def test_numbers_are_those_of_evaluate(trained, tmp_path: Path, fold: str) -> None:
    run = trained("bce")
    numbers = Measured(run, tmp_path / "bce.json")
    scored = evaluate(run, Scoring(fold, "mass"))
    for metric in ("hit_rate@1", "hit_rate@20", "tanimoto"):
        assert numbers.value(metric, "mass", fold) == scored.values[metric].mean()
    assert numbers.value("chance hit_rate@1", "mass", fold) == scored.chance["hit_rate@1"]
    by_tanimoto = evaluate(run, Scoring(fold, "mass", "minmax-tanimoto"))
    value = numbers.value("hit_rate@1", "mass", fold, "minmax-tanimoto")
    assert value == by_tanimoto.values["hit_rate@1"].mean()


def test_decoded_numbers_are_those_of_the_posterior(trained, tmp_path: Path) -> None:
    run = trained("emb-cos")
    value = Measured(run, tmp_path / "a.json").value("decoded tanimoto", "mass", "test")
    decoded = posterior_report(run, Scoring("test", "mass")).decoded
    assert value == decoded.interval("tanimoto", "tanimoto").mean


def test_what_a_model_does_not_have_is_none(trained, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    assert Measured(trained("emb-cos"), file).value("tanimoto", "mass", "test") is None
    assert json.loads(file.read_text())["values"]["tanimoto|mass|test|"] is None  # nor asked again


def test_numbers_are_kept_and_not_those_of_another_run(trained, tmp_path: Path) -> None:
    file = tmp_path / "numbers" / "a.json"
    value = Measured(trained("bce"), file).value("hit_rate@1", "mass", "test")
    kept = json.loads(file.read_text())
    kept["values"]["hit_rate@1|mass|test|"] = 0.125
    file.write_text(json.dumps(kept))
    assert Measured(trained("bce"), file).value("hit_rate@1", "mass", "test") == 0.125  # not again
    other = Measured(trained("iou"), file).value("hit_rate@1", "mass", "test")
    assert other == evaluate(trained("iou"), Scoring("test", "mass")).values["hit_rate@1"].mean()
    assert Measured(trained("bce"), file).value("hit_rate@1", "mass", "test") == value


def test_a_damaged_file_is_told(trained, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(ExperimentError, match="is damaged"):
        Measured(trained("bce"), tmp_path / "a.json")
