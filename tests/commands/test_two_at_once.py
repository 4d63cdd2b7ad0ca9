"""Two of every command that writes, at once on one output: one works, the other says who does.

The first is stopped (SIGSTOP) as soon as it holds its output, so that the second is sure to come
while it is at work, and goes on when the second has ended.
"""

import json
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mzseek.core.errors import BusyError, MzseekError
from mzseek.database import Database, add_molecules, build_database
from mzseek.database.sources import file_sources
from mzseek.datasets.build import build_dataset
from mzseek.datasets.extra_lists import add_negatives
from mzseek.datasets.prepare import PrepareOptions, prepare
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.scored import Scoring
from mzseek.io import sole_writer
from mzseek.parallel import LocalEngine
from mzseek.runs.run import Run

from ..cli.conftest import call
from ..processes import Forked
from .conftest import COMMANDS, SECONDS, World, contents, output, start


def stopped_when_it_holds(process: Forked, lock: Path) -> None:
    """Wait until a process has signed its lock, and stop it there."""
    until = time.monotonic() + SECONDS
    while not (lock.exists() and lock.read_text().endswith("}")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.002)
    process.send_signal(signal.SIGSTOP)


@pytest.mark.slow
@pytest.mark.usefixtures("threads_kept")
@pytest.mark.parametrize("command", COMMANDS)
def test_one_does_the_work_and_the_other_says_who_holds_it(
    command: str, world: World, whole: Callable[[str, int], Any], tmp_path: Path
) -> None:
    arguments, doing = COMMANDS[command]
    out, lock = output(command, world, tmp_path / "both")
    first = start(arguments(world, out, 0))
    try:
        stopped_when_it_holds(first, lock)
        status, printed, said = call(*arguments(world, out, 1))
        assert (status, printed, said.count("\n")) == (2, "", 1)
        assert f"another process is {doing} there (process {first.pid} on " in said
    finally:
        # The demo takes minutes: it is killed, and whoever comes next is not in its way.
        first.send_signal(signal.SIGKILL if command == "demo" else signal.SIGCONT)
        _, said = first.communicate(timeout=SECONDS)
    if command == "demo":
        with sole_writer(out, "trying again"):
            return
    assert first.returncode == 0, said
    assert contents(out) == whole(command, 0)
    assert sorted(path.name for path in (tmp_path / "both").iterdir()) == [out.name]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["database build", "train"])
def test_started_at_the_same_moment_nothing_is_mixed(
    command: str, world: World, whole: Callable[[str, int], Any], tmp_path: Path
) -> None:
    arguments, _ = COMMANDS[command]
    assert whole(command, 0) != whole(command, 1)
    out, _ = output(command, world, tmp_path / "both")
    both = [start(arguments(world, out, number)) for number in (0, 1)]
    said = [process.communicate(timeout=SECONDS)[1] for process in both]
    ended = [process.returncode for process in both]
    assert 0 in ended
    for status, text in zip(ended, said, strict=True):
        # If one began when the other had ended, it replaces or refuses as it always does.
        assert status == 0 or "another process is" in text or "holds a run already" in text, text
    assert contents(out) in [whole(command, number) for number in (0, 1) if ended[number] == 0]
    assert sorted(path.name for path in (tmp_path / "both").iterdir()) == ["out"]


@pytest.fixture
def copied(world: World, tmp_path: Path) -> Run:
    shutil.copytree(world.run.folder, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "predictions")
    return Run.open(tmp_path / "run")


@pytest.mark.slow
def test_two_evaluations_of_one_run_agree_and_leave_its_predictions_whole(
    copied: Run, world: World
) -> None:
    expected = evaluate(world.run, Scoring()).to_dict()
    both = [start(["evaluate", str(copied.folder), "--no-decode", "--json"]) for _ in range(2)]
    for process in both:
        printed, said = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, said
        assert json.loads(printed) | {"run": expected["run"]} == expected
    for folder in (copied.folder / "predictions").glob("step-*/test"):
        name = folder.relative_to(copied.folder)
        assert contents(folder) == contents(world.run.folder / name)
    assert list(copied.folder.rglob(".*")) == []


def test_an_evaluation_while_another_saves_gives_its_own_numbers(copied: Run, world: World) -> None:
    step = copied.best["tanimoto"]["step"]
    expected = evaluate(world.run, Scoring()).to_dict()
    with sole_writer(copied.predictions(step, "test"), "saving predictions"):
        found = evaluate(copied, Scoring()).to_dict()
    assert found | {"run": expected["run"]} == expected


# The same in threads of one process, for the functions that the commands call.


def library_calls(world: World, out: Path) -> dict[str, Callable[[int], Any]]:
    alone = LocalEngine(1)
    maccs = PrepareOptions(fingerprint="maccs", bin_width=1.0)
    return {
        "prepare": lambda n: prepare(
            world.table, {("mass", "formula")[n]: (world.mass, world.formula)[n]}, out, maccs,
            jobs=1,
        ),
        "build_dataset": lambda n: build_dataset(
            [world.libraries[n]], [world.molecules[n]], out, jobs=1
        ),
        "build_database": lambda n: build_database(
            file_sources([world.molecules[n]]), out, fingerprint="maccs", engine=alone
        ),
        "add_molecules": lambda n: add_molecules(
            Database.open(out), file_sources([world.molecules[1]], source="ab"[n]), engine=alone
        ),
        "add_negatives": lambda n: add_negatives(
            Prepared.open(out), Database.open(world.store), keep=(4, 6)[n], engine=alone
        ),
    }  # fmt: skip


COPIED = {"add_molecules": "store", "add_negatives": "prepared"}


def fresh(world: World, name: str, out: Path) -> Path:
    out.parent.mkdir(exist_ok=True)
    if name in COPIED:
        shutil.copytree(getattr(world, COPIED[name]), out)
    return out


@pytest.mark.parametrize(
    "name", ["prepare", "build_dataset", "build_database", "add_molecules", "add_negatives"]
)
def test_threads_of_one_process_do_not_mix_either(name: str, world: World, tmp_path: Path) -> None:
    whole = []
    for number in (0, 1):
        out = fresh(world, name, tmp_path / f"alone{number}" / "out")
        library_calls(world, out)[name](number)
        whole.append(contents(out))
    out = fresh(world, name, tmp_path / "both" / "out")
    calls, barrier = library_calls(world, out), threading.Barrier(2)
    ended: dict[int, Exception | None] = {}

    def work(number: int) -> None:
        barrier.wait()
        try:
            calls[name](number)
            ended[number] = None
        except MzseekError as error:
            ended[number] = error

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    busy = [error for error in ended.values() if error is not None]
    assert len(busy) <= 1
    assert all(isinstance(e, BusyError) or "was replaced" in str(e) for e in busy), busy
    if busy:
        assert contents(out) in [whole[number] for number in (0, 1) if ended[number] is None]
    elif name not in COPIED:  # one after the other, whichever came last
        assert contents(out) in whole
    assert [path.name for path in out.parent.iterdir()] == ["out"]
