"""A disk that is full: one line that names the output, nothing half-made, and room mends it."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mzseek.annotation.config import AnnotateConfig, Tolerance
from mzseek.bundle import Bundle
from mzseek.core.errors import WriteError
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.prepared_queries import spectra_from
from mzseek.export.job import annotate_files
from mzseek.runs.run import Run
from mzseek.spectra import write_mgf
from mzseek.training.options import Options
from mzseek.training.train import train

from .conftest import COMMANDS, World, contents, output

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


@pytest.fixture
def ended(mzseek, threads_kept: None) -> Callable[[list[str]], tuple[int, str]]:
    """Status and errors of a command."""
    return lambda arguments: mzseek(*arguments)[::2]


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
    whole: Callable[[str, int], Any], ended,
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


@pytest.mark.slow
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
    world: World, small_disk: Callable[..., Path], ended
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


@pytest.mark.slow
@pytest.mark.parametrize("kilobytes", [0, 8, 40])
def test_an_exported_model_on_a_full_disk(
    kilobytes: int, fitted_run: Run, bundle_folder: Path, small_disk: Callable[..., Path], ended
) -> None:
    disk = small_disk(20_000)
    out = disk / "there" / "model"
    shutil.copytree(bundle_folder, out)
    before = contents(out)
    assert sum(map(len, before.values())) > 40 * KILOBYTE
    leave(kilobytes, disk)
    arguments = ["model", "export", str(fitted_run.folder), "--out", str(out), "--jobs", "1"]
    status, said = ended(arguments)
    assert (status, said.count("\n")) == (2, 1), said
    assert FULL in said
    assert f"mzseek: {out}: " in said
    assert contents(out) == before
    assert [path.name for path in out.parent.iterdir()] == ["model"]
    (disk / "filler").unlink()
    assert ended(arguments)[0] == 0
    assert [path.name for path in out.parent.iterdir()] == ["model"]
    assert Bundle.open(out).verify() is None


def annotated(spectra: Path, model: Path, out: Path, *, resume: bool = False) -> str:
    """Annotate; returns what the disk said, or nothing."""
    config = AnnotateConfig(model=model, ppm=Tolerance(1000.0))
    try:
        done = annotate_files([spectra], out, config, resume=resume, jobs=1)
    except WriteError as error:
        return str(error)
    assert done.counts["unaccounted"] == 0
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["out", "out.tsv", "out.mztab"])
def test_annotating_that_fills_the_disk_is_resumed_to_the_same_bytes(
    name: str, small_set: Any, bundle_folder: Path, small_disk: Callable[..., Path], tmp_path: Path
) -> None:
    mgf, skipped = tmp_path / "mine.mgf", "BEGIN IONS\nTITLE=bad\nPEPMASS=none\n50 1\nEND IONS\n"
    write_mgf(mgf, spectra_from(Prepared.open(small_set.folder), np.arange(8)))
    with mgf.open("a") as file:
        file.write(skipped * 200)  # their reasons fill the disk before any answer
    whole = tmp_path / "whole" / name
    assert annotated(mgf, bundle_folder, whole) == ""
    expected = contents(whole)
    disk = small_disk(20_000)
    out, failed, resumed = disk / "there" / name, 0, 0
    out.parent.mkdir()
    for first in (0, 4, 8, 16, 48, 96, 192):
        leave(first, disk)
        said = annotated(mgf, bundle_folder, out)
        if not said:
            break  # room for all
        failed += 1
        assert FULL in said or "cannot be made (No space left on device)" in said
        assert str(out) in said
        assert not out.exists()
        left = {path.name for path in out.parent.iterdir()}
        assert left <= {f"{name}.partial"}
        leave(4, disk)  # less than before
        said = annotated(mgf, bundle_folder, out, resume=True)
        assert "No space left on device" in said
        assert str(out) in said
        resumed += bool(left)
        (disk / "filler").unlink()
        assert annotated(mgf, bundle_folder, out, resume=True) == ""
        found = contents(out)
        assert _without_times(found) == _without_times(expected)
        assert [path.name for path in out.parent.iterdir()] == [name]
        shutil.rmtree(out) if out.is_dir() else out.unlink()
    assert failed >= 3
    assert resumed >= 1


def _without_times(found: Any) -> Any:
    if isinstance(found, bytes):
        return found
    run = {key: value for key, value in found["run.json"].items() if key not in {"made", "seconds"}}
    return found | {"run.json": run}
