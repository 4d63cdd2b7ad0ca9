"""A place that cannot be written is noticed before any work, by every command that writes."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import mzseek
from mzseek.core.errors import WriteError
from mzseek.database import Database, add_molecules, build_database
from mzseek.database.sources import file_sources
from mzseek.datasets.build import build_dataset
from mzseek.datasets.extra_lists import add_negatives
from mzseek.datasets.get import get_massspecgym
from mzseek.datasets.prepare import prepare
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.scored import Scoring
from mzseek.runs.run import Run
from mzseek.training.options import Options
from mzseek.training.train import train

from .conftest import CLI, COMMANDS, IN_PLACE, NAMES, SECONDS, World, contents


def no_work(stage: str, done: int, total: int | None = None) -> None:
    """Gets told of work; there must be none."""
    pytest.fail(f"{stage} was begun")


MAKING = pytest.mark.parametrize("command", [name for name in COMMANDS if name not in IN_PLACE])


@MAKING
def test_a_parent_that_is_a_file(
    command: str, world: World, assert_refused, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    out = tmp_path / "file" / NAMES.get(command, "out")
    said = f"cannot be made ({tmp_path / 'file'} is a file, expected a folder)"
    assert str(out) in assert_refused(said, *COMMANDS[command][0](world, out, 0))
    assert contents(tmp_path) == {"file": b"x"}


@MAKING
def test_something_else_in_the_way(
    command: str, world: World, assert_refused, tmp_path: Path
) -> None:
    out = tmp_path / NAMES.get(command, "out")
    if command in NAMES:
        out.mkdir()
    else:
        out.write_text("x")
    said = "is a folder, expected a file" if command in NAMES else "is a file"
    assert_refused(said, *COMMANDS[command][0](world, out, 0))
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


@MAKING
def test_a_disk_for_reading_only(
    command: str, world: World, assert_refused, small_disk: Callable[..., Path]
) -> None:
    out = small_disk(100, "ro") / NAMES.get(command, "out")
    said = "cannot be made (Read-only file system)"
    assert str(out) in assert_refused(said, *COMMANDS[command][0](world, out, 0))


@pytest.fixture
def read_only(
    world: World, small_disk: Callable[..., Path], tmp_path: Path
) -> Callable[[Path], Path]:
    """A folder copied onto a disk that is then only for reading."""

    def copy(folder: Path) -> Path:
        disk = small_disk(20_000)
        shutil.copytree(folder, disk / folder.name)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        return disk / folder.name

    return copy


def test_functions_notice_it_before_they_work(world: World, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    out = tmp_path / "file" / "out"
    calls: dict[str, Callable[[], Any]] = {
        "prepare": lambda: prepare(world.table, {"mass": world.mass}, out, progress=no_work),
        "build_dataset": lambda: build_dataset(
            world.libraries, world.molecules[:1], out, progress=no_work
        ),
        "build_database": lambda: build_database(
            file_sources(world.molecules), out, progress=no_work
        ),
        "get_massspecgym": lambda: get_massspecgym(
            out, endpoint="http://127.0.0.1:9", progress=no_work
        ),
        "train": lambda: train(
            Prepared.open(world.prepared), Options.of_run(world.run), out, progress=no_work
        ),
    }
    for name, call in calls.items():
        with pytest.raises(WriteError, match="cannot be made") as refused:
            call()
        assert "\n" not in str(refused.value), name
    assert contents(tmp_path) == {"file": b"x"}


def test_what_is_changed_in_its_place_on_a_disk_for_reading_only(
    world: World, read_only: Callable[[Path], Path]
) -> None:
    with pytest.raises(WriteError, match=r"cannot be made \(Read-only file system\)"):
        add_molecules(
            Database.open(read_only(world.store)), file_sources(world.molecules), progress=no_work
        )
    prepared = Prepared.open(read_only(world.prepared))
    with pytest.raises(WriteError, match=r"cannot be made \(Read-only file system\)"):
        add_negatives(prepared, Database.open(world.store), progress=no_work)


def test_an_interrupted_run_on_a_disk_for_reading_only_cannot_go_on(
    world: World, read_only: Callable[[Path], Path], tmp_path: Path
) -> None:
    shutil.copytree(world.run.folder, tmp_path / "begun")
    begun = Run.open(tmp_path / "begun")
    begun.metadata["status"] = "training"
    begun.save()
    folder = read_only(begun.folder)
    with pytest.raises(WriteError, match=r"cannot be made \(Read-only file system\)"):
        train(
            Prepared.open(world.prepared),
            Options.of_run(begun),
            folder,
            resume=True,
            progress=no_work,
        )


def test_what_needs_no_writing_works_on_a_disk_for_reading_only(
    world: World, read_only: Callable[[Path], Path], tmp_path: Path
) -> None:
    prepared = Prepared.open(world.prepared)
    run = Run.open(read_only(world.run.folder))
    said: list[str] = []
    train(prepared, Options.of_run(run), run.folder, resume=True, say=said.append)
    assert said == [f"{run.folder} has ended already."]
    shutil.copytree(world.run.folder, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "predictions")
    bare = Run.open(read_only(tmp_path / "run"))
    found, expected = (evaluate(each, Scoring()).to_dict() for each in (bare, world.run))
    assert found | {"run": expected["run"]} == expected
    assert not (bare.folder / "predictions").exists()


def test_a_prepared_folder_on_a_disk_for_reading_only_is_up_to_date(
    world: World, read_only: Callable[[Path], Path], tmp_path: Path
) -> None:
    made, _ = prepare(world.table, {"mass": world.mass}, tmp_path / "prepared", jobs=1)
    folder = read_only(made.folder)
    _, anew = prepare(world.table, {"mass": world.mass}, folder, progress=no_work)
    assert not anew
    with pytest.raises(WriteError, match=r"cannot be made \(Read-only file system\)"):
        prepare(world.table, {"formula": world.formula}, folder, progress=no_work)


@pytest.fixture
def spectrum() -> Iterator[Path]:
    """A spectrum of caffeine, in a folder that any user can write to."""
    with tempfile.TemporaryDirectory(prefix="mzseek-open-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "a.mgf").write_text(
            "BEGIN IONS\nFEATURE_ID=7\nPEPMASS=195.0877\nCHARGE=1+\nIONMODE=positive\n"
            "42.0338 10\n69.0447 25\n110.0713 40\n138.0662 100\nEND IONS\n"
        )
        yield folder / "a.mgf"


def annotated_by(
    spectrum: Path, model: Path, environment: dict[str, str], before: Sequence[str] = ()
) -> str:
    """The table of candidates that a process makes in such an environment."""
    arguments = ["annotate", spectrum.name, "--model", str(model), "--out", "out"]
    arguments += ["--ppm", "1000", "--allow-empty"]
    ended = subprocess.run(
        [*before, *CLI, *arguments], env=environment | {"OMP_NUM_THREADS": "1"},
        cwd=spectrum.parent, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert (ended.returncode, "Traceback" in ended.stderr) == (0, False), ended.stderr
    assert {path.name for path in spectrum.parent.iterdir()} == {"a.mgf", "out"}
    table = (spectrum.parent / "out" / "candidates.tsv").read_text()
    shutil.rmtree(spectrum.parent / "out")
    return table


@pytest.mark.slow
def test_annotating_needs_neither_a_home_nor_a_package_that_can_be_written(
    spectrum: Path, bundle_folder: Path, small_disk: Callable[..., Path], tmp_path: Path
) -> None:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in {"HOME", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "MPLCONFIGDIR"}
    }
    expected = annotated_by(spectrum, bundle_folder, dict(os.environ))
    assert expected.count("\n") >= 1
    home = small_disk(100, "ro")
    package = tmp_path / "package"
    source = Path(mzseek.__file__).parent
    package.mkdir()
    bound = ["mount", "--bind", str(source.parent), str(package)]
    subprocess.run(bound, check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(package)], check=True)
        read_only = inherited | {"PYTHONPATH": str(package), "HOME": str(home)}
        assert annotated_by(spectrum, bundle_folder, read_only) == expected
    finally:
        subprocess.run(["umount", "-l", str(package)], check=True)
    assert annotated_by(spectrum, bundle_folder, inherited) == expected
    missing = inherited | {"HOME": str(tmp_path / "none")}
    assert annotated_by(spectrum, bundle_folder, missing) == expected


@pytest.mark.slow
def test_a_user_without_a_home_annotates_and_leaves_no_folder_behind(
    spectrum: Path, bundle_folder: Path, tmp_path: Path
) -> None:
    # Mounts of a namespace of its own: the user is in no list, the package cannot be written.
    (tmp_path / "passwd").touch()
    (tmp_path / "nsswitch.conf").write_text("passwd: files\n")
    source = shlex.quote(str(Path(mzseek.__file__).parent.parent))
    script = (
        f"cd {shlex.quote(str(tmp_path))} && mount --bind passwd /etc/passwd && "
        f"mount --bind nsswitch.conf /etc/nsswitch.conf && cd {spectrum.parent} && "
        f'mount --bind {source} {source} && mount -o remount,ro,bind {source} && exec "$@"'
    )
    private = ["unshare", "--mount", "sh", "-c", script, "sh"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*private, "true"], check=False).returncode
    ):
        pytest.skip("only root can mount in a namespace of its own")
    names = {"HOME", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"}
    inherited = {name: value for name, value in os.environ.items() if name not in names}
    python = [*private, sys.executable, "-c"]
    asked = "import os; print(os.path.expanduser('~'))"
    home = subprocess.run(
        [*python, asked], env=inherited, capture_output=True, text=True, check=True
    )
    assert home.stdout == "~\n"
    expected = annotated_by(spectrum, bundle_folder, dict(os.environ))
    assert annotated_by(spectrum, bundle_folder, inherited, private) == expected
