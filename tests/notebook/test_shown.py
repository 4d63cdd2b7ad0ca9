import time

import pytest

from mzseek.notebook.runs import told


def test_long_work_keeps_one_line_up_to_date_and_wipes_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    with told(True) as progress:
        progress("training", 1, 1_000)
        progress("training", 2, 1_000)
    out, err = capsys.readouterr()
    assert out == ""
    assert [part.strip() for part in err.split("\r")] == [
        "", "training: 1 of 1,000", "training: 2 of 1,000", "", "",
    ]  # fmt: skip


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with told(True) as progress:
        progress("reading", 1)
    assert capsys.readouterr() == ("", "")


def test_nobody_has_to_watch(capsys: pytest.CaptureFixture[str]) -> None:
    with told(False) as progress:
        progress("reading", 1)
        time.sleep(0.6)
        progress("reading", 2)
    assert capsys.readouterr() == ("", "")
