"""What needs no library answers at once: help, the version, and refusals."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mzseek.bundle import Bundle
from mzseek.chem.fingerprinting import fingerprint_kind
from mzseek.cli import options
from mzseek.cli.app import COMMANDS, loaded
from mzseek.core.errors import MzseekError
from mzseek.database import Database
from mzseek.datasets.files import find_dataset
from mzseek.datasets.prepared import Prepared
from mzseek.io import open_source
from mzseek.library import Library
from mzseek.runs.run import Run

HEAVY = {
    "numpy", "scipy", "rdkit", "pyarrow", "duckdb", "torch", "matplotlib",
    "jinja2", "joblib", "ray", "pyteomics", "lxml", "rich",
}  # fmt: skip
PARSER = "pydantic"  # typer's, for values of options: as long again as all the rest
HELP = [["--version"], ["--help"], *([name, "--help"] for name in COMMANDS)]
HELP += [
    [name, inside, "--help"]
    for name in COMMANDS
    for inside in getattr(loaded(name), "commands", ())
]
REFUSED = [
    "evaluate nowhere",
    "evaluate nowhere --control nowhere",
    "train nowhere --loss bce --out x",
    "prepare nowhere",
    "prepare nowhere --out x",
    "prepare a-file --out x --fingerprint ecfp",
    "prepare a-file --out x --candidates-mass nowhere.json",
    "data check nowhere",
    "model build nowhere --out x",
    "model export nowhere --out x",
    "model info nowhere",
    "model verify nowhere",
    "data check a-file",
    "data build nowhere.mgf --molecules a-file --out x",
    "data get pubchem",
    "data match nowhere --database nowhere",
    "database build nowhere.smi --out x",
    "database build a-file --out x --fingerprint ecfp",
    "database add nowhere a-file",
    "database info nowhere",
    "database check nowhere",
    "database index nowhere",
    "database export nowhere x.tsv",
    "database search nowhere --mass 1",
    "database search nowhere",
    "negatives nowhere --database nowhere",
    "fit nowhere --channels fragments --out x",
    "model build a-file --channels nothing --out x",
    "bands nowhere",
    "bands nowhere --fingerprint ecfp",
    "advise nowhere",
    "advise nowhere --goal fame",
    "show nowhere.mgf",
    "show a-file --svg drawn.png",
    "show a-file --rejects a-file",
    "decide nowhere.csv",
    "decide a-file --within reason",
    "demo --out a-file",
    "train --epochs many",
    "no-such-command",
]
# Runs commands one after the other and tells what each has printed and which libraries are there.
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
    there = sorted({name.partition(".")[0] for name in sys.modules} & set(json.loads(NAMES)))
    told.append([status, out.getvalue(), err.getvalue(), there])
print(json.dumps(told))
""".replace("NAMES", repr(json.dumps(sorted({*HEAVY, PARSER}))))


def told(commands: list[list[str]], folder: Path) -> list[tuple[int, str, str, list[str]]]:
    """Status, output, errors and libraries of each command, all in one process."""
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, json.dumps(commands)],
        capture_output=True, text=True, cwd=folder, check=True,
    )  # fmt: skip
    return [tuple(each) for each in json.loads(done.stdout)]


def test_help_and_version_load_no_library(tmp_path: Path) -> None:
    for command, (status, out, err, loaded_too) in zip(HELP, told(HELP, tmp_path), strict=True):
        assert (status, err, loaded_too) == (0, "", []), command
        assert out


def test_refusals_load_no_library_and_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("CCO\n")
    commands = [line.split() for line in REFUSED]
    for command, (status, out, err, loaded_too) in zip(
        commands, told(commands, tmp_path), strict=True
    ):
        assert (status, out, HEAVY & {*loaded_too}) == (2, "", set()), (command, err)
        assert err.startswith("mzseek: "), command
        assert err.count("\n") == 1, command
    assert [path.name for path in tmp_path.iterdir()] == ["a-file"]


def test_what_is_not_there_is_refused_before_options_are_parsed(tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("CCO\n")
    lines = [line for line in REFUSED if "nowhere" in line and "--candidates-mass" not in line]
    assert len(lines) > 15
    for line, (_, _, err, there) in zip(
        lines, told([line.split() for line in lines], tmp_path), strict=True
    ):
        assert there == [], line
        assert "nowhere" in err


def test_help_is_shown_whatever_else_is_given(tmp_path: Path) -> None:
    commands = [["evaluate", "nowhere", "--help"], ["evaluate", "--help", "--control=nowhere"]]
    for status, out, err, _ in told(commands, tmp_path):
        assert (status, err) == (0, "")
        assert out.startswith("Usage: mzseek evaluate")


def test_options_are_looked_at_wherever_they_stand(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    commands = [["evaluate", ".", "--control=absent"], ["evaluate", "--control", "absent", "."],
                ["evaluate", "--", "-x"]]  # fmt: skip
    assert [err for _, _, err, _ in told(commands, tmp_path)] == [
        f"mzseek: {name}: is no run folder (there is no such folder)\n"
        for name in ("absent", "absent", "-x")
    ]


@pytest.mark.parametrize("command", ["--version", "train --help", "evaluate nowhere"])
def test_an_answer_takes_less_than_two_fifths_of_a_second(command: str, tmp_path: Path) -> None:
    def seconds() -> float:  # of the processor: others may be using it, too
        before = os.times()
        subprocess.run(
            [sys.executable, "-c", "from mzseek.cli import main; main()", *command.split()],
            capture_output=True, cwd=tmp_path, check=False,
        )  # fmt: skip
        after = os.times()
        return (after.children_user - before.children_user) + (
            after.children_system - before.children_system
        )

    assert min(seconds() for _ in range(3)) < 0.4


def reason(action, *arguments: object) -> str:
    with pytest.raises(MzseekError) as caught:
        action(*arguments)
    return f"{type(caught.value).__name__}: {caught.value}"


def test_checks_of_arguments_refuse_in_the_words_of_the_library(tmp_path: Path) -> None:
    absent, file = tmp_path / "absent", tmp_path / "file"
    file.write_text("x")
    for path in (absent, tmp_path):
        assert reason(options.IS_RUN.refuse, path) == reason(Run.open, path)
        assert reason(options.IS_PREPARED.refuse, path) == reason(Prepared.open, path)
        assert reason(options.IS_DATABASE.refuse, path) == reason(Database.open, path)
        assert reason(options.IS_LIBRARY.refuse, path) == reason(Library.open, path)
        assert reason(options.IS_BUNDLE.refuse, path) == reason(Bundle.open, path)
    for path in (absent, file):
        assert reason(options.IS_FOLDER.refuse, path) == reason(find_dataset, path)
    assert reason(options.EXISTS.refuse, absent) == reason(open_source, absent)
    assert reason(options.IS_FINGERPRINT.refuse, "ecfp") == reason(fingerprint_kind, "ecfp")


def test_the_list_of_commands_has_the_first_line_of_each() -> None:
    for name, line in COMMANDS.items():
        assert loaded(name).help.splitlines()[0] == line


def test_help_shows_square_brackets_as_they_are_written(tmp_path: Path) -> None:
    pages = [arguments for arguments in HELP if arguments[0] in COMMANDS]
    for arguments, (_, page, _, _) in zip(pages, told(pages, tmp_path), strict=True):
        command = loaded(arguments[0])
        for name in arguments[1:-1]:
            command = command.commands[name]
        shown = "".join(page.split())
        for text in (command.help, *(getattr(each, "help", "") for each in command.params)):
            assert "".join((text or "").split()) in shown, arguments


def test_extras_are_named_in_the_help() -> None:
    assert "mzseek[mces]" in "".join(each.help or "" for each in loaded("evaluate").params)
    build = loaded("database").commands["build"]
    assert "mzseek[cluster]" in "".join(each.help or "" for each in build.params)


@pytest.mark.slow
def test_the_first_spectrum_after_installing_is_answered_in_seconds(tmp_path: Path) -> None:
    """Nothing is compiled yet: a handful of spectra must not wait for that, nor for plain loops."""
    peaks = "42.0338 10\n69.0447 25\n83.0604 12\n110.0713 40\n138.0662 100\n195.0877 60\n"
    (tmp_path / "one.mgf").write_text(
        f"BEGIN IONS\nTITLE=caffeine\nPEPMASS=195.0877\nCHARGE=1+\n{peaks}END IONS\n"
    )
    (tmp_path / "compiled").mkdir()
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        running = subprocess.Popen(
            [sys.executable, "-c", "from mzseek.cli import main; main()", "annotate", "one.mgf"],
            stdout=out, stderr=err, cwd=tmp_path,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "compiled")},
        )  # fmt: skip
        # Of this process alone: others that tests have begun may end meanwhile.
        _, status, used = os.wait4(running.pid, 0)
    running.returncode = status
    assert status == 0
    assert "affeine" in (tmp_path / "out").read_text()
    assert "Warning" not in (tmp_path / "err").read_text()
    # Six are promised on a machine that does nothing else; this one may be busy.
    assert used.ru_utime + used.ru_stime < 12
