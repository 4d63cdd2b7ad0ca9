import io
import re
import sys

import pytest

from mzseek.cli.commands import experiments
from mzseek.cli.commands.experiments import trials_shown
from mzseek.experiments.sweep import Ended


def test_a_log_file_gets_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(experiments, "_EVERY", 0.0)
    with trials_shown() as (begins, note, ended):
        begins([1, 2, 3])
        note("bce", 5, 10)
        ended(Ended("bce"))
        ended(Ended("iou", "broke"))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "mzseek: 0 of 3 trials have ended, 0 s"
    assert lines[-1] == "mzseek: 2 of 3 trials have ended, 1 failed, 0 s, about 0 s left"


def test_a_person_sees_the_trials_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    with trials_shown() as (begins, note, _):
        begins([1, 2])
        note("bce-mass", 5, 10)
    text = re.sub(r"\x1b\[[0-9;?]*\w", "", shown.getvalue())
    assert "bce-mass" in text
    assert "50" in text
    assert "0 of 2 trials have ended" in text


@pytest.mark.parametrize(
    ("seconds", "said"), [(5, "5 s"), (125, "2 min 05 s"), (7_500, "2 h 05 min")]
)
def test_times_are_spoken(seconds: float, said: str) -> None:
    assert experiments._spoken(seconds) == said
