"""The console script, in this process."""

import contextlib
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest
import typer

from mzseek.cli.app import app
from mzseek.cli.errors import run_command
from mzseek.database import build_database
from mzseek.database.sources import file_sources
from mzseek.parallel import LocalEngine

CLI = [sys.executable, "-c", "from mzseek.cli import main; main()"]
CAFFEINE = "Cn1c(=O)c2c(ncn2C)n(C)c1=O"
# Options of a run that takes seconds.
QUICK = [
    "--epochs", "2", "--lr", "3e-3", "--width", "32", "--blocks", "1", "--batch-size", "16",
    "--warmup", "5", "--validate-every", "4", "--threads", "1",
]  # fmt: skip
# Runs commands one after the other; prints status, output, errors and loaded libraries of each.
RUNNER = """
import contextlib, io, json, sys
from mzseek.cli import main
told = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["mzseek", *arguments]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            status = stop.code
    loaded = sorted({name.partition(".")[0] for name in sys.modules})
    told.append([status, out.getvalue(), err.getvalue(), loaded])
print(json.dumps(told))
"""


def told(
    commands: Sequence[Sequence[str]], folder: Path, environment: dict[str, str] | None = None
) -> list[tuple[int, str, str, list[str]]]:
    """Status, output, errors and libraries of each command, all in one fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, json.dumps(commands)],
        capture_output=True, text=True, cwd=folder, check=True, env=environment,
    )  # fmt: skip
    return [tuple(answer) for answer in json.loads(done.stdout)]


def call(*arguments: object) -> tuple[int, str, str]:
    """Status, output and errors of a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["mzseek", *map(str, arguments)])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status, _ = run_command()
    return status, out.getvalue(), err.getvalue()


class Mzseek:
    """The console script, in this process."""

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        """Status, output and errors."""
        return call(*arguments)

    def ok(self, *arguments: object) -> str:
        """Output of a command that must succeed and say nothing on standard error."""
        status, out, err = call(*arguments)
        said = [line for line in err.splitlines() if not re.fullmatch(r"mzseek: .* s", line)]
        assert (status, said) == (0, []), "but for progress on a busy machine"
        return out

    def json(self, *arguments: object) -> dict[str, Any]:
        """The object that ``--json`` prints."""
        status, out, err = call(*arguments, "--json")
        assert (status, out.count("\n")) == (0, 1), err
        return json.loads(out)


@pytest.fixture
def mzseek() -> Mzseek:
    return Mzseek()


def commands(text: str) -> list[list[str]]:
    """The commands of mzseek that a text tells its reader to run, as a shell would read them.

    They stand after "Next: ", or in backticks.
    """
    lines = re.findall(r"^Next: (mzseek .*)$", text, re.MULTILINE)
    return [shlex.split(line)[1:] for line in lines + re.findall(r"`(mzseek [^`]*)`", text)]


def assert_understood(words: list[str]) -> None:
    """The command line must know the command, its arguments and its options."""
    command, name = typer.main.get_command(app), "mzseek"
    while isinstance(command, click.Group):
        assert words, f"{name} names no command"
        name, words = words[0], words[1:]
        found = command.get_command(click.Context(command), name)
        assert found is not None, f"there is no command {name}"
        command = found
    with command.make_context(name, list(words)):
        pass  # it complains of what it does not know


@pytest.fixture
def assert_refused(mzseek):
    """The command must end with status 2 and print one line that says why, which is returned."""

    def check(message: str, *arguments: object) -> str:
        status, text, err = mzseek(*arguments)
        assert (status, text) == (2, "")
        assert err.startswith("mzseek: ")
        assert err.count("\n") == 1
        assert message in err
        return err

    return check


@pytest.fixture
def threads_kept():
    """Leave torch with as many threads as it had: ``--threads`` is for the whole process."""
    import torch

    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


MOLECULES = (
    "smiles,id,name,source\n"
    f"{CAFFEINE},1,caffeine,drugs\n{CAFFEINE},HMDB1847,Coffein,hmdb\n"
    "CCO,2,ethanol,drugs\nCOC,3,ether,mine\nC1CC,4,broken,mine\nCCCO,5,,mine\n"
    "CC(C)O,6,isopropanol,hmdb\nCCOC,7,,drugs\n"
)


@pytest.fixture
def molecules(tmp_path: Path) -> Path:
    path = tmp_path / "molecules.csv"
    path.write_text(MOLECULES)
    return path


@pytest.fixture(scope="session")
def built_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("database")
    (folder / "molecules.csv").write_text(MOLECULES)
    sources = file_sources([folder / "molecules.csv"])
    build_database(sources, folder / "store", engine=LocalEngine(1))
    return folder / "store"


@pytest.fixture
def store(built_store: Path, tmp_path: Path) -> Path:
    """A database of one's own."""
    return Path(shutil.copytree(built_store, tmp_path / "store"))
