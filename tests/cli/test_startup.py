"""What needs no library answers at once: help, the version, and refusals."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from mzseek.bundle import Bundle
from mzseek.chem.fingerprinting import FINGERPRINTS, fingerprint_kind
from mzseek.cli import options
from mzseek.cli.app import COMMANDS, loaded
from mzseek.core.errors import MzseekError
from mzseek.database import Database
from mzseek.datasets.files import find_dataset
from mzseek.datasets.prepared import Prepared
from mzseek.decision.utilities import BAND_SIMILARITIES, GOALS
from mzseek.io import open_source
from mzseek.library import Library
from mzseek.losses import LOSSES
from mzseek.runs.run import Run
from mzseek.training.options import MODELS

from .conftest import CLI, told

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
LISTED = {
    "train": (*LOSSES, *MODELS),
    "prepare": tuple(FINGERPRINTS),
    "database build": tuple(FINGERPRINTS),
    "bands": (*FINGERPRINTS, *BAND_SIMILARITIES),
    "decide": tuple(FINGERPRINTS),
    "advise": tuple(GOALS),
}


def test_help_loads_no_library_and_shows_every_text_as_it_is_written(tmp_path: Path) -> None:
    pages = {}
    for command, (status, out, err, there) in zip(HELP, told(HELP, tmp_path), strict=True):
        assert (status, err, (HEAVY | {PARSER}) & {*there}) == (0, "", set()), command
        assert out
        pages[" ".join(command[:-1])] = out
    for name, page in pages.items():  # square brackets included
        if not name:
            continue
        words = name.split()
        command = loaded(words[0])
        for inside in words[1:]:
            command = command.commands[inside]
        shown = "".join(page.split())
        for text in (command.help, *(getattr(each, "help", "") for each in command.params)):
            assert "".join((text or "").split()) in shown, name
    for name, wanted in LISTED.items():
        words = re.split(r"[\s;:.]+", pages[name])
        assert [known for known in wanted if known not in words] == []
    assert "mzseek[mces]" in pages["evaluate"]
    assert "mzseek[cluster]" in pages["database build"]


def test_refusals_load_no_library_and_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("CCO\n")
    # What is not there is refused before options are parsed.
    early = [line for line in REFUSED if "nowhere" in line and "--candidates-mass" not in line]
    lines = [*early, *(line for line in REFUSED if line not in early)]
    assert len(early) > 15
    answers = told([line.split() for line in lines], tmp_path)
    for line, (status, out, err, there) in zip(lines, answers, strict=True):
        unwanted = {*there} & (HEAVY | ({PARSER} if line in early else set()))
        assert (status, out, unwanted) == (2, "", set()), (line, err)
        assert err.startswith("mzseek: "), line
        assert err.count("\n") == 1, line
        assert "nowhere" in err or line not in early
    assert [path.name for path in tmp_path.iterdir()] == ["a-file"]


def test_options_are_looked_at_wherever_they_stand(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    commands = [["evaluate", ".", "--control=absent"], ["evaluate", "--control", "absent", "."],
                ["evaluate", "--", "-x"]]  # fmt: skip
    helps = [["evaluate", "nowhere", "--help"], ["evaluate", "--help", "--control=nowhere"]]
    answers = told(commands + helps, tmp_path)
    assert [err for _, _, err, _ in answers[:3]] == [
        f"mzseek: {name}: is no run folder (there is no such folder)\n"
        for name in ("absent", "absent", "-x")
    ]
    for status, out, err, _ in answers[3:]:
        assert (status, err) == (0, "")
        assert out.startswith("Usage: mzseek evaluate")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["--version", "train --help", "evaluate nowhere"])
def test_an_answer_takes_less_than_two_fifths_of_a_second(command: str, tmp_path: Path) -> None:
    def seconds() -> float:  # of the processor: others may be using it, too
        before = os.times()
        subprocess.run(
            [*CLI, *command.split()],
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
            [*CLI, "annotate", "one.mgf"],
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
