import json
import shutil
from pathlib import Path

import pytest

from mzseek.training.evaluate import evaluate
from mzseek.training.scored import How


def test_numbers_are_shown_in_percent(mzseek, trained) -> None:
    run = trained("bce")
    status, text, err = mzseek("evaluate", run.folder)
    assert (status, err) == (0, "")
    found = evaluate(run)
    assert "16 test spectra of 8 molecules, mass candidates" in text
    for interval in found.intervals().values():
        assert f"{100 * interval.mean:.1f}" in text
        assert f"{100 * interval.low:.1f}…{100 * interval.high:.1f}" in text
    for label in ("HR@1", "HR@5", "HR@20", "Tanimoto", "Cosine", "random"):
        assert label in text
    assert f"{100 * found.chance['hit_rate@1']:.1f}" in text
    assert "nearly the same about every spectrum" in " ".join(
        text.split()
    )  # its warning comes along


@pytest.mark.parametrize("loss", ["bce", "emb-cos"])
def test_json_is_the_last_line(loss: str, mzseek, trained) -> None:
    run = trained(loss)
    status, text, err = mzseek("evaluate", run.folder, "--candidates", "formula", "--json")
    assert (status, err) == (0, "")
    facts = json.loads(text.splitlines()[-1])
    expected = evaluate(run, How(candidates="formula"))
    for name in ("hit_rate@1", "hit_rate@5", "hit_rate@20", *(["tanimoto"] * (loss == "bce"))):
        assert facts[name] == pytest.approx(expected.values[name].mean())
        assert 0 <= facts[name] <= 1
    assert ("tanimoto" in facts) == (loss == "bce")
    assert facts["candidates"] == "formula"


@pytest.mark.parametrize(
    "flags",
    [
        {"fold": "val"},
        {"similarity": "tanimoto"},
        {"ties": "pessimistic"},
        {"identity": "inchikey"},
        {"fold": "val", "candidates": "formula", "similarity": "soft-tanimoto"},
    ],
    ids=str,
)
def test_options_reach_the_evaluation(flags: dict[str, str], mzseek, trained) -> None:
    run = trained("bce")
    given = [text for name, value in flags.items() for text in (f"--{name}", value)]
    _, text, _ = mzseek("evaluate", run.folder, *given, "--json")
    assert json.loads(text.splitlines()[-1]) == evaluate(run, How(**flags)).to_dict()


def test_the_gain_over_a_control_is_stated(mzseek, trained) -> None:
    run, control = trained("bce"), trained("emb-cos", model="blind")
    _, text, _ = mzseek("evaluate", run.folder, "--control", control.folder, "--json")
    facts = json.loads(text.splitlines()[-1])
    gains = evaluate(run).gain_over(evaluate(control))
    assert facts["gain"] == {name: [g.mean, g.low, g.high] for name, g in gains.items()}
    assert facts["control"] == evaluate(control).to_dict()
    status, text, _ = mzseek("evaluate", run.folder, "--control", control.folder)
    assert status == 0
    assert "gain over it" in text
    assert f"{100 * gains['hit_rate@1'].mean:+.1f}" in text
    assert control.folder.name[:12] in text


def test_data_that_have_moved_can_be_named(mzseek, trained, small, tmp_path: Path) -> None:
    shutil.copytree(small.folder, tmp_path / "moved")
    run = trained("emb-cos").folder
    _, here, _ = mzseek("evaluate", run, "--json")
    _, there, _ = mzseek("evaluate", run, "--data", tmp_path / "moved", "--json")
    assert here == there


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: is no run folder (run.json is missing)"),
        (["DATA"], "is no run folder (run.json is missing)"),
        (["emb-cos", "--similarity", "tanimoto"], "emb-cos predicts none"),
        (["bce", "--candidates", "hard"], "has no candidates 'hard', it has: formula, mass"),
        (["bce", "--fold", "final"], "fold 'final' is unknown, expected one of: train, val, test"),
        (["bce", "--ties", "lucky"], "ties 'lucky' is unknown"),
        (["bce", "--identity", "name"], "identity 'name' is unknown"),
        (["bce", "--similarity", "dice"], "similarity 'dice' is unknown"),
        (["bce", "--control", "nowhere"], "nowhere: is no run folder"),
        (["bce", "--data", "nowhere"], "nowhere: is no prepared folder"),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(value),
)
def test_bad_input_is_one_line_and_status_2(
    arguments: list[str], message: str, mzseek, trained, small, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = arguments[0]
    if first == "DATA":
        first = small.folder
    elif first != "nowhere":
        first = trained(first).folder
    status, text, err = mzseek("evaluate", first, *arguments[1:])
    assert (status, text) == (2, "")
    assert err.startswith("mzseek: ")
    assert err.count("\n") == 1
    assert message in err


def test_a_negative_count_of_molecules_is_refused(mzseek, trained) -> None:
    status, _, err = mzseek("evaluate", trained("bce").folder, "--mces", "-1")
    assert status == 2
    assert "Traceback" not in err
