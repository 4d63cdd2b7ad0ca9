import json
import shutil
from pathlib import Path

import pytest

from mzseek.core.errors import DatasetError, RunError
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.posterior_report import posterior_report
from mzseek.evaluation.scored import Scoring
from mzseek.export.run_pages import look_at_runs, report_runs
from mzseek.runs.run import Run


def test_the_folder_has_pages_and_the_numbers_behind_them(
    trained, tmp_path: Path, read_page
) -> None:
    runs = [trained("bce"), trained("emb-cos", model="blind")]
    page = report_runs(runs, tmp_path / "report", Scoring()).page
    assert page == tmp_path / "report" / "index.html"
    assert "bce-mlp" in read_page(page.read_text())
    assert 'href="data.html"' in page.read_text()
    assert "molecules with spectra" in read_page((page.parent / "data.html").read_text())
    numbers = json.loads((page.parent / "numbers.json").read_text())
    assert {name: facts["is_control"] for name, facts in numbers.items()} == {
        "bce-mlp": False,
        "emb-cos-blind": True,
    }
    expected = evaluate(runs[0], Scoring())
    assert numbers["bce-mlp"]["hit_rate@1"] == pytest.approx(expected.values["hit_rate@1"].mean())
    assert (
        numbers["bce-mlp"]["decoded"] == posterior_report(runs[0], Scoring()).to_dict()["decoded"]
    )


def test_controls_are_known_by_their_encoder_whatever_their_name(trained, tmp_path: Path) -> None:
    folder = tmp_path / "my best model"
    shutil.copytree(trained("emb-cos", model="blind").folder, folder)
    named_blind = tmp_path / "blind"
    shutil.copytree(trained("bce").folder, named_blind)
    shown = look_at_runs([Run.open(folder), Run.open(named_blind)], Scoring(), decode=False)
    assert [each.control for each in shown] == [True, False]
    assert look_at_runs([trained("bce", model="random")], Scoring(), decode=False)[0].control


def test_a_report_replaces_a_report_and_nothing_else(trained, tmp_path: Path) -> None:
    def write(out: Path) -> str:
        return report_runs([trained("bce")], out, Scoring(), decode=False).page.read_text()

    out = tmp_path / "report"
    first = write(out)
    assert write(out) == first
    (out / "mine.txt").write_text("kept")
    with pytest.raises(DatasetError, match=r"holds mine\.txt, which is not its own"):
        write(out)
    other = tmp_path / "other"
    other.mkdir()
    (other / "index.html").write_text("somebody's page")
    with pytest.raises(DatasetError, match="exists and is no report"):
        write(other)
    assert (other / "index.html").read_text() == "somebody's page"


def test_a_report_never_goes_into_a_run_or_over_it(trained, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(trained("bce").folder, folder)
    with pytest.raises(DatasetError, match="name another --out"):
        report_runs([Run.open(folder)], folder, Scoring())
    assert Run.open(folder).finished


def test_runs_that_cannot_stand_in_one_table_are_refused(trained, tmp_path: Path) -> None:
    run = trained("bce")
    with pytest.raises(RunError, match="no run, expected at least one"):
        look_at_runs([], Scoring())
    with pytest.raises(RunError, match="is there twice"):
        report_runs([run, run], tmp_path / "report", Scoring())
    folder = tmp_path / "other"
    shutil.copytree(run.folder, folder)
    for change, reason in (
        ({"data": run.metadata["data"] | {"key": "0" * 64}}, "was trained on other data"),
        ({"status": "training"}, "is not finished"),
    ):
        (folder / "run.json").write_text(json.dumps(run.metadata | change))
        with pytest.raises(RunError, match=reason):
            look_at_runs([run, Run.open(folder)], Scoring())
