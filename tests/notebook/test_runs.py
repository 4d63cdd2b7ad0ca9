import itertools
import os
import time
from pathlib import Path

import pytest

import mzseek as mz
from mzseek.core.errors import RunError
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.posterior_report import posterior_report
from mzseek.evaluation.scored import Scoring
from mzseek.notebook.runs import progress_line

QUICK = {
    "epochs": 1, "batch_size": 16, "threads": 1,
    "parts": {"encoder": {"width": 32, "blocks": 1}, "scorer": {"projected": 16}},
}  # fmt: skip


class Elsewhere(os.PathLike):
    """A path that is neither text nor a Path."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)


def test_a_run_returns_what_the_packages_return(trained) -> None:
    run = mz.Run.open(str(trained("bce").folder))
    assert run.evaluate(watch=False).to_dict() == evaluate(run, Scoring()).to_dict()
    formula = run.evaluate("val", "formula", ties="optimistic", identity="inchikey", watch=False)
    how = Scoring("val", "formula", None, "optimistic", "inchikey")
    assert formula.to_dict() == evaluate(run, how).to_dict()
    believed = run.posterior_report(watch=False)
    assert believed.to_dict()["decoded"] == posterior_report(run, Scoring()).to_dict()["decoded"]


def test_results_show_as_tables_and_frames(trained) -> None:
    run = mz.Run.open(trained("bce").folder)
    found = run.evaluate(watch=False)
    frame = found.to_frame()
    first = frame.set_index("metric").loc["HR@1"]
    assert first["value"] == pytest.approx(found.values["hit_rate@1"].mean())
    assert first["low"] <= first["value"] <= first["high"]
    assert f"{100 * first['value']:.1f}" in found._repr_html_()
    decoded = run.posterior_report(watch=False).to_frame()
    assert set(decoded["within"]) == {"candidates", "all"}
    assert {"tanimoto", "cosine", "hit", "bits"} <= set(decoded.columns)
    assert len(run.to_frame()) == len(run.best)
    assert "finished" in run._repr_html_()


def test_training_gives_a_run_that_can_be_asked(small_set, tmp_path: Path, capsys) -> None:
    run = mz.train(Elsewhere(small_set.folder), "emb-cos", tmp_path / "run", seed=3, **QUICK)
    assert isinstance(run, mz.Run)
    assert run.finished
    assert run.seed == 3
    assert "steps" in capsys.readouterr().out
    again = mz.train(str(small_set.folder), "emb-cos", str(tmp_path / "again"), seed=3, watch=False,
                     **QUICK)  # fmt: skip
    assert capsys.readouterr().out == ""
    assert again.best == run.best


def test_an_unknown_option_is_refused_by_name(small_set, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"'epoch' is unknown, expected one of: .*epochs"):
        mz.train(small_set.folder, "bce", tmp_path / "run", epoch=3)
    assert not (tmp_path / "run").exists()


def test_a_report_beside_a_control(trained, tmp_path: Path) -> None:
    run = mz.Run.open(trained("bce").folder)
    control = trained("emb-cos", model="blind").folder
    made = run.report(str(tmp_path / "report"), [str(control)], decode=False, watch=False)
    assert made.page == tmp_path / "report" / "index.html"
    assert list(made.to_frame()["control"]) == [False, True, True]
    assert "emb-cos-blind" in made._repr_html_()


def test_long_work_keeps_one_line_up_to_date_and_wipes_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    with progress_line(True) as progress:
        progress("training", 1, 1_000)
        progress("training", 2, 1_000)
    out, err = capsys.readouterr()
    assert out == ""
    assert [part.strip() for part in err.split("\r")] == [
        "", "training: 1 of 1,000", "training: 2 of 1,000", "", "",
    ]  # fmt: skip


@pytest.mark.parametrize(("watch", "seconds"), [(True, 0.1), (False, 1.0)])
def test_short_work_and_unwatched_work_say_nothing(watch, seconds, capsys, monkeypatch) -> None:
    clock = itertools.count(0.0, seconds)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    with progress_line(watch) as progress:
        progress("reading", 1)
        progress("reading", 2)
    assert capsys.readouterr() == ("", "")
