from dataclasses import replace
from pathlib import Path

import pytest

from mzseek.core.errors import RunError
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.posterior_report import posterior_report
from mzseek.export.run_pages import CHANCE, Shown, labelled, missing_fingerprints
from mzseek.runs.run import Run


@pytest.fixture
def shown_in(trained, tmp_path: Path):
    """The same run, as if it were in other folders."""

    def make(folder: str) -> Shown:
        run = Run(tmp_path / folder, trained("bce").metadata)
        return Shown(run, replace(evaluate(trained("bce")), folder=run.folder.resolve()))

    return make


def test_runs_are_kept_apart_by_their_folders(shown_in) -> None:
    wanted = [shown_in(folder) for folder in ("a/run", "b/run", "c/other", f"d/{CHANCE}")]
    assert list(labelled(wanted)) == ["a/run", "b/run", "other", f"d/{CHANCE}"]
    assert list(labelled(wanted).values()) == wanted


def test_one_run_is_not_shown_twice(shown_in) -> None:
    with pytest.raises(RunError, match="run: is there twice, expected each run once"):
        labelled([shown_in("run"), shown_in("other"), shown_in("x/../run")])


def test_numbers_of_another_run_are_refused(trained) -> None:
    run, other = trained("bce"), trained("emb-cos")
    with pytest.raises(RunError, match=r"would be shown with the numbers of .*emb-cos"):
        Shown(run, evaluate(other))
    with pytest.raises(RunError, match=r"would be shown with the numbers of .*emb-cos"):
        Shown(run, evaluate(run), posterior_report(other))


def test_why_there_is_no_tanimoto_is_said_once_and_not_of_controls(trained) -> None:
    runs = [trained("bce"), trained("fp-mlp"), trained("fp-mlp", seed=1), trained("emb-cos")]
    runs.append(trained("emb-mlp", model="blind"))
    found = missing_fingerprints([Shown(run, evaluate(run)) for run in runs])
    assert [reason.partition(" predict")[0] for reason in found] == [
        "the bits that fp-mlp",
        "emb-cos",
    ]
