"""A folder of one kind in the place of another: told what it is, and which command takes it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mzseek.core.errors import MzseekError
from mzseek.database import Database
from mzseek.datasets.files import find_dataset
from mzseek.datasets.prepared import Prepared
from mzseek.runs.run import Run

from .conftest import World

OPENERS: dict[str, Callable[[Path], object]] = {
    "prepared folder": Prepared.open,
    "molecule database": Database.open,
    "run folder": Run.open,
    "data set": find_dataset,
}
TAKEN_BY = {
    "prepared folder": "`mzseek train`",
    "molecule database": "`mzseek database` and `mzseek negatives --database` take it",
    "run folder": "`mzseek evaluate` and `mzseek report` take it",
    "data set": "`mzseek prepare` makes a prepared folder of it",
}


@pytest.fixture(scope="module")
def folders(world: World, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One of each kind; the data set as `data build` makes it."""
    from mzseek.datasets.build import build_dataset

    made = tmp_path_factory.mktemp("set") / "set"
    build_dataset([world.libraries[0]], [world.molecules[0]], made, jobs=1)
    return {
        "prepared folder": world.prepared,
        "molecule database": world.store,
        "run folder": world.run.folder,
        "data set": made,
    }


@pytest.mark.parametrize("expected", OPENERS)
@pytest.mark.parametrize("found", OPENERS)
def test_each_kind_is_opened_by_its_own_alone(
    found: str, expected: str, folders: dict[str, Path]
) -> None:
    if found == expected:
        OPENERS[expected](folders[found])
        return
    with pytest.raises(MzseekError) as refused:
        OPENERS[expected](folders[found])
    said = str(refused.value)
    assert f"{folders[found]}: is a {found}, expected a {expected}; " in said
    assert TAKEN_BY[found] in said
    assert "\n" not in said


def test_a_run_that_has_lost_its_kind_is_not_called_missing(world: World, tmp_path: Path) -> None:
    shutil.copytree(world.run.folder, tmp_path / "run")
    (tmp_path / "run" / "run.json").write_text('{"status": "finished"}')
    with pytest.raises(MzseekError, match=r"run\.json does not say what it is"):
        Run.open(tmp_path / "run")
