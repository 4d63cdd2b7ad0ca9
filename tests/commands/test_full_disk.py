"""A disk that is full: one line that names the output, nothing half-made, and room mends it."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mzseek.database import Database
from mzseek.errors import WriteError
from mzseek.prepared import Prepared
from mzseek.runs.run import Run
from mzseek.training.plan.options import Options
from mzseek.training.train import train

from .conftest import COMMANDS, SECONDS, World, contents, output, start

FULL = "cannot be written (No space left on device)"
# Kilobytes that are too few for each command's output, of those that it takes.
TOO_SMALL = {
    "prepare": [0, 20, 60],
    "data build": [0, 8, 16],
    "database build": [0, 8, 40, 60],
    "database add": [0, 8, 40, 60],
    "database export": [0, 8],
    "negatives": [0, 40],
    "data match": [0, 20],
    "train": [80],
    "bands": [0, 4],
}
KILOBYTE = 1024


def ended(arguments: list[str]) -> tuple[int, str]:
    process = start(arguments)
    _, said = process.communicate(timeout=SECONDS)
    return process.returncode, said


def leave(kilobytes: int, disk: Path) -> None:
    """Fill a disk until so much is left."""
    (disk / "filler").unlink(missing_ok=True)
    room = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    (disk / "filler").write_bytes(bytes(max(room - kilobytes * KILOBYTE, 0)))


@pytest.mark.slow
@pytest.mark.parametrize(("command", "kilobytes"), [(c, k) for c, all_of in TOO_SMALL.items()
                                                    for k in all_of])  # fmt: skip
def test_a_full_disk_is_one_line_and_the_command_works_when_there_is_room(
    command: str, kilobytes: int, world: World, small_disk: Callable[..., Path],
    whole: Callable[[str, int], Any],
) -> None:  # fmt: skip
    arguments, _ = COMMANDS[command]
    disk = small_disk(20_000)
    out, _ = output(command, world, disk / "there")
    before = contents(out) if out.exists() else None
    leave(kilobytes, disk)
    status, said = ended(arguments(world, out, 0))
    assert (status, said.count("\n")) == (2, 1), said
    assert FULL in said
    assert str(out) in said
    assert ".partial-" not in said
    if command != "train":
        assert (contents(out) if out.exists() else None) == before
        left = {path.name for path in out.parent.iterdir()} - {out.name}
        assert left <= {f".{out.name}.building"}
    (disk / "filler").unlink()
    again = arguments(world, out, 0)
    status, said = ended([*again, "--resume"] if command == "train" else again)
    assert status == 0, said
    assert contents(out) == whole(command, 0)
    assert [path.name for path in out.parent.iterdir()] == [out.name]


def as_trained(files: dict[str, object]) -> dict[str, object]:
    """Without what evaluations of other tests have added: other rankings, the train fold."""
    return {
        name: file for name, file in files.items() if not re.search(r"/((val|test)\.|train/)", name)
    }


@pytest.mark.parametrize("kilobytes", [0, 8, 16, 40, 100, 160, 240, 300])
def test_training_that_fills_the_disk_goes_on_from_its_last_validation(
    kilobytes: int, world: World, small_disk: Callable[..., Path], tmp_path: Path
) -> None:
    disk, prepared = small_disk(20_000), Prepared.open(world.prepared)
    leave(kilobytes, disk)
    with pytest.raises(WriteError, match="No space left on device") as refused:
        train(prepared, Options.of_run(world.run), disk / "run")
    assert str(disk / "run") in str(refused.value)
    assert ".partial-" not in str(refused.value)
    (disk / "filler").unlink()
    train(prepared, Options.of_run(world.run), disk / "run", resume=True)
    assert contents(disk / "run") == as_trained(contents(world.run.folder))


@pytest.mark.slow
def test_predictions_of_an_evaluation_on_a_full_disk(
    world: World, small_disk: Callable[..., Path]
) -> None:
    disk = small_disk(20_000)
    shutil.copytree(world.run.folder, disk / "run")
    shutil.rmtree(disk / "run" / "predictions")
    before = contents(disk / "run")
    leave(16, disk)
    arguments = ["evaluate", str(disk / "run"), "--no-decode"]
    status, said = ended(arguments)
    assert (status, said.count("\n")) == (2, 1), said
    assert "predictions" in said
    assert FULL in said
    assert contents(disk / "run") == before
    (disk / "filler").unlink()
    assert ended(arguments)[0] == 0
    for folder in (disk / "run" / "predictions").glob("step-*/test"):
        name = folder.relative_to(disk / "run")
        assert contents(folder) == contents(world.run.folder / name)


def test_what_was_made_with_room_can_be_opened(world: World) -> None:
    prepared = Prepared.open(world.prepared, verify=True)
    prepared.check_arrays()
    assert len(prepared) > 0
    store = Database.open(world.store)
    store.check()
    assert len(store) > 0
    assert Run.open(world.run.folder).finished
