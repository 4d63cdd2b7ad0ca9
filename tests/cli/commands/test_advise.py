import shutil
from pathlib import Path

import pytest

from mzseek.chem.fingerprinting import PAPER_FINGERPRINTS
from mzseek.datasets.bands import set_bands
from mzseek.datasets.prepared import Prepared
from mzseek.decision import first_places
from mzseek.decision.advice import advise as ask
from mzseek.decision.utilities import GOALS
from mzseek.evaluation.posteriors import calibrate
from mzseek.evaluation.scored import Scoring
from mzseek.runs.run import Run

from ..conftest import QUICK, assert_understood, commands

pytestmark = pytest.mark.usefixtures("threads_kept")

TWO = ["--fingerprint", "maccs", "--fingerprint", "rdkit", "--jobs", "1"]


@pytest.mark.parametrize("goal", GOALS)
def test_advice_is_that_of_the_bands_of_validation(goal: str, mzseek, small: Prepared) -> None:
    facts = mzseek.json("advise", small.folder, "--goal", goal, *TWO)
    similarity = "tanimoto" if goal == "hit" else goal
    medians = {
        kind: set_bands(
            small, fold="val", fingerprint=kind, similarity=similarity, jobs=1
        ).medians()
        for kind in ("maccs", "rdkit")
    }
    wanted = ask(goal, medians, 0.2, "maccs", similarity)
    assert (facts["goal"], facts["loss"]) == (goal, GOALS[goal])
    assert (facts["fingerprint"], facts["compared"]) == (wanted.fingerprint, wanted.compared)
    assert facts["rows"] == [pytest.approx(vars(row)) for row in wanted.rows]
    assert facts["reasons"] == wanted.reasons
    assert (facts["p_star"], facts["p_star_is"]) == (0.2, "assumed")


def test_people_read_what_to_train_and_why(mzseek, small: Prepared) -> None:
    text = mzseek.ok("advise", small.folder, "--goal", "tanimoto", *TWO)
    lines = text.splitlines()
    assert lines[0] in ("Fingerprint maccs, loss iou", "Fingerprint rdkit, loss iou")
    assert lines[1].startswith("· Loss iou: it stands for tanimoto")
    assert "most lost in Tanimoto" in text
    assert "probability 0.20 (assumed)" in text
    assert f"mzseek bands {small.folder} --candidates mass --against pairs" in text


@pytest.mark.parametrize(
    ("goal", "fingerprint"), [("hit", "maccs"), ("tanimoto", "rdkit"), ("bits", "rdkit")]
)
def test_every_command_that_is_told_exists_with_its_options(
    goal: str, fingerprint: str, mzseek, small: Prepared, tmp_path: Path
) -> None:
    folder = shutil.copytree(small.folder, tmp_path / "my [data]")
    text = mzseek.ok("advise", folder, "--goal", goal, "--fingerprint", fingerprint, "--jobs", 1)
    found = {words[0]: words for words in commands(text)}
    for words in found.values():
        assert_understood(words)
    assert "--fingerprint" not in found["train"]
    # A fingerprint is chosen when data are prepared; the folder has maccs.
    assert ("prepare" in found) == (fingerprint == "rdkit" and goal != "bits")
    if "prepare" in found:
        prepare, train = found["prepare"], found["train"]
        assert prepare[prepare.index("--fingerprint") + 1] == "rdkit"
        assert prepare[prepare.index("--out") + 1] == train[1] == f"{folder}-rdkit"


@pytest.mark.slow
def test_the_commands_that_are_told_can_be_run_one_after_the_other(
    mzseek, small_set, small: Prepared, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = shutil.copytree(small.folder, tmp_path / "prepared")
    text = mzseek.ok("advise", folder, "--goal", "tanimoto", "--fingerprint", "rdkit")
    told = [words for words in commands(text) if words[0] in ("prepare", "train")]
    for words in told:
        given = [str(small_set.folder.parent) if w == "DATASET" else w for w in words]
        extra = QUICK if words[0] == "train" else ["--jobs", "1"]
        mzseek.ok(*given, *extra)
    assert Run.open("runs/iou").metadata["data"]["fingerprint"] == "rdkit"


def test_the_six_of_the_paper_are_compared_by_default(mzseek, small: Prepared) -> None:
    facts = mzseek.json("advise", small.folder, "--lists", 2, "--jobs", 1)
    assert {row["fingerprint"] for row in facts["rows"]} == set(PAPER_FINGERPRINTS)
    assert facts["lists"] == 2


def test_bits_are_told_of_the_prepared_fingerprint_alone(mzseek, small: Prepared) -> None:
    facts = mzseek.json("advise", small.folder, "--goal", "bits", "--jobs", 1)
    assert [row["fingerprint"] for row in facts["rows"]] == ["maccs"]
    text = mzseek.ok("advise", small.folder, "--goal", "bits", "--jobs", 1)
    assert "most lost in bit accuracy" in text
    assert f"{small.folder} --candidates mass --against pairs --similarity bits" in text


def test_the_probability_can_be_a_run_s(mzseek, small: Prepared, trained, tmp_path: Path) -> None:
    shutil.copytree(trained("emb-cos").folder, tmp_path / "[b]run")
    arguments = ("advise", small.folder, *TWO, "--run", tmp_path / "[b]run")
    facts = mzseek.json(*arguments)
    sure, _ = first_places(*calibrate(trained("emb-cos"), Scoring("val")).val.merged())
    assert facts["p_star"] == pytest.approx(sure.mean())
    text = mzseek.ok(*arguments)
    assert f"probability {sure.mean():.2f} (measured on {tmp_path}/[b]run, val)" in text
