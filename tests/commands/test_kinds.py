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


@pytest.mark.parametrize(
    ("arguments", "found", "expected"),
    [
        (["train", "IT", "--loss", "bce", "--out", "OUT"], "molecule database", "prepared folder"),
        (["train", "IT", "--loss", "bce", "--out", "OUT"], "data set", "prepared folder"),
        (["bands", "IT"], "run folder", "prepared folder"),
        (["advise", "IT"], "molecule database", "prepared folder"),
        (["negatives", "IT", "--database", "DB"], "molecule database", "prepared folder"),
        (["data", "match", "IT", "--database", "DB"], "molecule database", "prepared folder"),
        (["negatives", "PREPARED", "--database", "IT"], "prepared folder", "molecule database"),
        (["evaluate", "IT"], "prepared folder", "run folder"),
        (["evaluate", "RUN", "--data", "IT"], "molecule database", "prepared folder"),
        (["evaluate", "RUN", "--control", "IT"], "data set", "run folder"),
        (["database", "search", "IT", "--mass", "100"], "prepared folder", "molecule database"),
        (["database", "add", "IT", "MOLECULES"], "run folder", "molecule database"),
        (["database", "export", "IT", "OUT"], "data set", "molecule database"),
        (["prepare", "IT", "--out", "OUT"], "prepared folder", "data set"),
        (["prepare", "IT", "--out", "OUT"], "molecule database", "data set"),
        (["data", "check", "IT"], "run folder", "data set"),
    ],
)
def test_every_command_says_so(
    arguments: list[str], found: str, expected: str, folders: dict[str, Path], world: World,
    assert_refused, tmp_path: Path,
) -> None:  # fmt: skip
    given = {
        "IT": folders[found], "OUT": tmp_path / "out.tsv", "DB": world.store,
        "RUN": world.run.folder, "PREPARED": world.prepared, "MOLECULES": world.molecules[0],
    }  # fmt: skip
    said = f"{folders[found]}: is a {found}, expected a {expected}; "
    assert_refused(said, *(given.get(word, word) for word in arguments))
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_has_lost_its_kind_is_not_called_missing(world: World, tmp_path: Path) -> None:
    shutil.copytree(world.run.folder, tmp_path / "run")
    (tmp_path / "run" / "run.json").write_text('{"status": "finished"}')
    with pytest.raises(MzseekError, match=r"run\.json does not say what it is"):
        Run.open(tmp_path / "run")
