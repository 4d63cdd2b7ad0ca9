"""The console script, in this process."""

import sys

import pytest

from mzseek.cli import main


def run(*arguments: str, capsys: pytest.CaptureFixture[str], monkeypatch) -> tuple[int, str, str]:
    """The console script, in this process."""
    monkeypatch.setattr(sys, "argv", ["mzseek", *arguments])
    status = 0
    try:
        main()
    except SystemExit as stop:
        status = int(stop.code or 0)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture
def mzseek(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    return lambda *arguments: run(*map(str, arguments), capsys=capsys, monkeypatch=monkeypatch)
