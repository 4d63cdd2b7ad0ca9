import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from mzseek.core import errors
from mzseek.core.errors import RunError
from mzseek.datasets.prepared import Prepared
from mzseek.parallel import Channel, engine_named
from mzseek.runs.checkpoints import load_weights
from mzseek.runs.run import Run
from mzseek.training.options import Options
from mzseek.training.train import train_one, train_several


@pytest.mark.slow
def test_two_runs_in_two_processes_are_what_each_would_be_alone(
    trained, small: Prepared, small_options, tmp_path: Path
) -> None:
    wanted = {"bitwise": small_options("bce"), "vector, wise": small_options("iou")}
    told: list[tuple[str, int, int]] = []
    lines: list[str] = []
    runs = train_several(
        small.folder, wanted, tmp_path, processes=2,
        progress=lambda *facts: told.append(facts), say=lines.append,
    )  # fmt: skip
    assert set(runs) == set(wanted)
    assert {path.name for path in tmp_path.iterdir()} == set(wanted)
    for (name, run), alone in zip(runs.items(), (trained("bce"), trained("iou")), strict=True):
        assert run.finished
        assert run.best == alone.best
        one, two = (load_weights(r.checkpoint("tanimoto"))[0] for r in (run, alone))
        assert all((one[key] == two[key]).all() for key in one)
        assert (name, 24, 24) in told
    assert any(line.startswith("vector, wise: warning: ") for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["local", "ray"])
def test_runs_of_an_engine_are_what_each_would_be_alone(
    name: str, trained, small: Prepared, small_options, tmp_path: Path
) -> None:
    if name == "ray":
        pytest.importorskip("ray", reason="needs mzseek[cluster]")
    wanted = {"one": small_options("bce"), "two": small_options("iou")}
    told: list[tuple[str, int, int]] = []
    lines: list[str] = []
    runs = train_several(
        small.folder, wanted, tmp_path, engine=engine_named(name, jobs=2),
        progress=lambda *facts: told.append(facts), say=lines.append,
    )  # fmt: skip
    assert {run for run, _, _ in told} == {"one", "two"}
    assert {("one", 24, 24), ("two", 24, 24)} <= set(told)
    assert any(line.startswith("two: warning: ") for line in lines)
    for run, alone in zip(runs.values(), (trained("bce"), trained("iou")), strict=True):
        assert run.finished
        one, two = (load_weights(r.checkpoint("tanimoto"))[0] for r in (run, alone))
        assert all((one[key] == two[key]).all() for key in one)


class Told(Channel):
    """Keeps what a run tells."""

    is_elsewhere = False

    def __init__(self) -> None:
        self.heard: list[str] = []

    def progress(self, stage: str, done: int, total: int | None = None) -> None:
        self.heard.append(stage)

    def say(self, line: str) -> None:
        self.heard.append(line)


def test_a_run_that_has_ended_is_left_as_it_is(trained, small: Prepared) -> None:
    told, run = Told(), trained("bce")
    times = {path: path.stat().st_mtime_ns for path in run.folder.rglob("*")}
    options = Options.of_run(run)
    train_one((small.folder, options, run.folder, "bce"), told)
    with pytest.raises(RunError, match="was begun with seed 0, not 3"):
        train_one((small.folder, replace(options, seed=3), run.folder, "bce"), told)
    assert {path: path.stat().st_mtime_ns for path in run.folder.rglob("*")} == times
    assert told.heard == []


@pytest.mark.slow
def test_a_run_that_fails_stops_the_rest(small: Prepared, small_options, tmp_path: Path) -> None:
    wanted = {
        "long": small_options("bce", epochs=100_000),
        "wrong": small_options("bce", lr=1e36, warmup=0),
        "next": small_options("bce"),
    }
    with pytest.raises(RunError, match="try a smaller --lr"):
        train_several(small.folder, wanted, tmp_path, processes=2)
    assert not (tmp_path / "next").exists()
    assert not Run.open(tmp_path / "long").finished


@pytest.mark.parametrize("names", [("run", "x/../run"), ("run", "./run"), ("run", "link")])
def test_two_names_of_one_folder_are_refused(
    names: tuple[str, str], small: Prepared, small_options, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("run")
    wanted = dict.fromkeys(names, small_options("bce"))
    with pytest.raises(RunError, match="is the folder of two runs, 'run' and"):
        train_several(small.folder, wanted, tmp_path, processes=1)
    assert not (tmp_path / "run").exists()


def test_progress_is_told_by_the_whole_name(small: Prepared, small_options, tmp_path: Path) -> None:
    told = Told()
    for name in ("a/run", "b/run"):
        train_one((small.folder, small_options("iou", epochs=1), tmp_path / name, name), told)
    assert {line.partition(":")[0] for line in told.heard} == {"a/run", "b/run"}


SEVERAL = """
import sys
from pathlib import Path
from mzseek.training.options import Options
from mzseek.training.train import train_several

parts = {"encoder": {"width": 32, "blocks": 1}}
small = {"parts": parts, "batch_size": 16, "validate_every": 5}
wanted = {"short": Options.of(epochs=1, **small), "long": Options.of(epochs=5000, **small)}
train_several(Path(sys.argv[1]), wanted, Path(sys.argv[2]), processes=2)
"""


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc")
def test_no_process_outlives_the_one_that_began_it(small: Prepared, tmp_path: Path) -> None:
    script = tmp_path / "several.py"
    script.write_text(SEVERAL)
    arguments = [sys.executable, str(script), str(small.folder), str(tmp_path / "runs")]
    with subprocess.Popen(arguments) as parent:
        until = time.monotonic() + 120
        # One trains, the other has nothing left to do.
        while not (
            (tmp_path / "runs" / "long" / "state").exists()
            and (tmp_path / "runs" / "short" / "run.json").exists()
            and Run.open(tmp_path / "runs" / "short").finished
        ):
            assert parent.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        assert len(children) >= 2
        parent.send_signal(signal.SIGKILL)
    until = time.monotonic() + 20
    while any(is_running(int(child)) for child in children):
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("name", [n for n in dir(errors) if n.endswith("Error")])
def test_errors_come_back_from_another_process(name: str) -> None:
    kind = getattr(errors, name)
    error = (
        kind(os.devnull, "is no folder")
        if issubclass(kind, errors.InputError)
        else kind("is no folder")
    )
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is kind
    assert str(back) == str(error)
    assert vars(back) == vars(error)
