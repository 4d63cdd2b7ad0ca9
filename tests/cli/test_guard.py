"""Whatever happens, there is one line and a status."""

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mzseek.cli import errors as guard
from mzseek.core.errors import InputError

from .conftest import CLI


@pytest.fixture
def failing(mzseek, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Run a real command whose work raises an error."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "file.csv").write_text("smiles,score\nCCO,1\n")

    def run(error: BaseException) -> tuple[int, str, str]:
        def work(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr("mzseek.decision.distribution", work)
        return mzseek("decide", tmp_path / "file.csv")

    return run


@pytest.mark.parametrize(
    "error",
    [
        TypeError("unsupported operand"),
        KeyError("files"),
        MemoryError(),
        RecursionError("maximum recursion depth exceeded"),
        AssertionError("two\nlines \x1b[31mand colours"),
        EOFError("the file ended"),
        StopIteration(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_unforeseen_is_one_line_that_says_where_the_report_is(
    failing, tmp_path: Path, error: Exception
) -> None:
    status, out, err = failing(error)
    assert (status, out) == (guard.UNEXPECTED, "")
    assert err.count("\n") == 1
    assert err.startswith(f"mzseek: something unforeseen happened ({type(error).__name__}")
    assert "Traceback" not in err
    assert "\x1b" not in err
    found = re.search(r"the full report is kept in (.*)\n", err)
    assert found is not None
    report = Path(found[1])
    assert report.parent == tmp_path
    text = report.read_text()
    assert "Traceback (most recent call last)" in text
    assert f"command: mzseek decide {tmp_path}/file.csv" in text
    assert "rdkit 20" in text
    assert sys.version.split()[0] in text


def test_where_the_report_goes(failing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "absent"))
    err = failing(ValueError("bad"))[2]
    (report,) = (tmp_path / "here").iterdir()
    assert f"kept in {report}\n" in err

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.mkstemp", full)  # then none is promised
    err = failing(ValueError("bad"))[2]
    assert "(ValueError: bad); with MZSEEK_TRACEBACK=1 the same command shows" in err
    assert err.count("\n") == 1
    monkeypatch.setenv("MZSEEK_TRACEBACK", "1")
    status, _, err = failing(ValueError("bad"))
    assert status == guard.UNEXPECTED
    assert "Traceback (most recent call last)" in err
    assert err.splitlines()[-1].startswith("mzseek: something unforeseen happened")


def test_refusals_and_faults_of_the_system_are_no_surprise(failing) -> None:
    assert failing(InputError("a.mgf", "is \x1b[2Jbad\nhere")) == (
        2, "", "mzseek: a.mgf: is �[2Jbad here\n",
    )  # fmt: skip
    full = OSError(errno.ENOSPC, "No space left on device", "out/x\x07.npy")
    assert failing(full) == (2, "", "mzseek: out/x�.npy: No space left on device\n")
    assert failing(OSError("odd")) == (2, "", "mzseek: system: odd\n")
    assert len(failing(InputError("a.mgf", "x" * 1_000_000))[2]) < 3000


def test_misuse_is_one_line_that_names_the_help(mzseek) -> None:
    assert mzseek("prepare", "x", "--jobs", "0", "--out", "y")[0] == 2
    status, out, err = mzseek("train", "x", "--loss")
    assert (status, out) == (2, "")
    assert err == "mzseek: Option '--loss' requires an argument; see `mzseek train --help`\n"
    status, out, err = mzseek("evluate", "x")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "Did you mean 'evaluate'?" in err
    status, out, err = mzseek()
    assert (status, out) == (2, "")
    assert err.startswith("Usage: mzseek [OPTIONS] COMMAND")


@pytest.mark.slow
def test_a_name_that_the_terminal_has_no_letters_for_is_shown_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "σ.smi").write_text("CCO\nCCN\n")
    done = subprocess.run(
        [*CLI, "database", "build", "σ.smi", "--out", "σ", "--jobs", "1"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert r"\u03c3: 2 molecules" in done.stdout
