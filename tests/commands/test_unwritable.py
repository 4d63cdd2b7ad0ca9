"""A place that cannot be written is noticed before any work, by every command that writes."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

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

from ..cli.conftest import CLI, call
from .conftest import COMMANDS, IN_PLACE, NAMES, SECONDS, World, contents


def no_work(stage: str, done: int, total: int | None = None) -> None:
    """Gets told of work; there must be none."""
    pytest.fail(f"{stage} was begun")


MAKING = pytest.mark.parametrize("command", [name for name in COMMANDS if name not in IN_PLACE])


@pytest.mark.slow
@MAKING
def test_a_place_where_nothing_can_be_made(
    command: str, world: World, assert_refused, small_disk: Callable[..., Path], tmp_path: Path
) -> None:
    arguments, name = COMMANDS[command][0], NAMES.get(command, "out")
    for folder in ("parent", "other"):
        (tmp_path / folder).mkdir()
    (tmp_path / "parent" / "file").write_text("x")
    out = tmp_path / "parent" / "file" / name
    said = f"cannot be made ({out.parent} is a file, expected a folder)"
    assert str(out) in assert_refused(said, *arguments(world, out, 0))
    out = tmp_path / "other" / name
    if command in NAMES:
        out.mkdir()
    else:
        out.write_text("x")
    said = "is a folder, expected a file" if command in NAMES else "is a file"
    assert_refused(said, *arguments(world, out, 0))
    assert [path.name for path in out.parent.iterdir()] == [name]
    assert contents(tmp_path / "parent") == {"file": b"x"}
    out = small_disk(100, "ro") / name
    said = "cannot be made (Read-only file system)"
    assert str(out) in assert_refused(said, *arguments(world, out, 0))


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
    calls: dict[str, Callable[[], object]] = {
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
    for name, attempt in calls.items():
        with pytest.raises(WriteError, match="cannot be made") as refused:
            attempt()
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
        prepared, options = Prepared.open(world.prepared), Options.of_run(begun)
        train(prepared, options, folder, resume=True, progress=no_work)


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


MADE = {"HOME", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "MPLCONFIGDIR"}
# A user who is in no list, in mounts of a namespace of its own: $1 is a folder, $2 the package.
_NOBODY = (
    'mount --bind "$1/passwd" /etc/passwd && mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf && '
    'mount --bind "$2" "$2" && mount -o remount,ro,bind "$2" && shift 2 && exec "$@"'
)


@pytest.mark.slow
@pytest.mark.parametrize("home", ["read-only", "unset", "missing", "nobody's"])
def test_annotating_needs_neither_a_home_nor_a_package_that_can_be_written(
    home: str, bundle_folder: Path, small_disk: Callable[..., Path], tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.mgf").write_text(
        "BEGIN IONS\nFEATURE_ID=7\nPEPMASS=195.0877\nCHARGE=1+\nIONMODE=positive\n"
        "42.0338 10\n69.0447 25\n110.0713 40\n138.0662 100\nEND IONS\n"
    )
    arguments = ["annotate", str(work / "a.mgf"), "--model", str(bundle_folder), "--jobs", "1"]
    arguments += ["--ppm", "1000", "--allow-empty", "--out"]
    status, _, said = call(*arguments, tmp_path / "expected")
    assert status == 0, said
    environment = {name: value for name, value in os.environ.items() if name not in MADE}
    package, before = Path(mzseek.__file__).parent.parent, []
    mounted = None
    if home == "missing":
        environment["HOME"] = str(tmp_path / "none")
    elif home == "read-only":
        mounted = tmp_path / "package"
        mounted.mkdir()
        environment |= {"HOME": str(small_disk(100, "ro")), "PYTHONPATH": str(mounted)}
        subprocess.run(["mount", "--bind", str(package), str(mounted)], check=True)
        subprocess.run(["mount", "-o", "remount,ro,bind", str(mounted)], check=True)
    elif home == "nobody's":
        (tmp_path / "passwd").touch()
        (tmp_path / "nsswitch.conf").write_text("passwd: files\n")
        before = ["unshare", "--mount", "sh", "-c", _NOBODY, "sh", str(tmp_path), str(package)]
        asked = [*before, sys.executable, "-c", "import os; print(os.path.expanduser('~'))"]
        if shutil.which("unshare") is None:
            pytest.skip("there is no unshare")
        found = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
        if found.returncode:
            pytest.skip("only root can mount in a namespace of its own")
        assert found.stdout == "~\n"
    try:
        ended = subprocess.run(
            [*before, *CLI, *arguments, "out"], env=environment | {"OMP_NUM_THREADS": "1"},
            cwd=work, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(mounted)], check=True)
    assert (ended.returncode, "Traceback" in ended.stderr) == (0, False), ended.stderr
    assert {path.name for path in work.iterdir()} == {"a.mgf", "out"}
    tables = [(top / "candidates.tsv").read_text() for top in (work / "out", tmp_path / "expected")]
    assert tables[0] == tables[1]
