import os
import pickle
from pathlib import Path

import pytest

from mzseek.parallel import LocalEngine, OpenedOnce
from mzseek.parallel import processes as opened


def note_and_open(folder: Path, version: int) -> tuple[Path, int]:
    """Opens, and leaves a mark that it has."""
    (folder / f"{os.getpid()}-{version}-{len(list(folder.iterdir()))}").touch()
    return folder, version


def scaled(thing: tuple[Path, int], batch: int) -> int:
    return thing[1] * batch


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_process_opens_once(jobs: int, tmp_path: Path) -> None:
    work = OpenedOnce(scaled, note_and_open, tmp_path, 3)
    assert list(LocalEngine(jobs).results(work, range(12))) == [3 * n for n in range(12)]
    openings = [path.name.partition("-")[0] for path in tmp_path.iterdir()]
    assert len(openings) == len(set(openings)) <= jobs
    assert (str(os.getpid()) in openings) == (jobs == 1)


def test_another_key_is_opened_anew_and_the_first_let_go(tmp_path: Path) -> None:
    for version in (1, 2, 1):
        assert OpenedOnce(scaled, note_and_open, tmp_path, version)(10) == 10 * version
        assert len(opened._kept) == 1
    assert len(list(tmp_path.iterdir())) == 3
    opened._kept.clear()


def test_nothing_stays_open_in_this_process(tmp_path: Path) -> None:
    work = OpenedOnce(scaled, note_and_open, tmp_path, 1)
    list(LocalEngine(1).results(work, range(3)))
    assert opened._kept == {}
    results = LocalEngine(1).results(work, range(3))
    next(results)
    results.close()
    assert opened._kept == {}


def test_what_cannot_be_opened_is_told_and_tried_again() -> None:
    def refuse() -> None:
        raise FileNotFoundError("gone")

    work = OpenedOnce(lambda thing, batch: batch, refuse)
    for _ in range(2):
        with pytest.raises(FileNotFoundError, match="gone"):
            work(1)


def test_it_travels() -> None:
    work = pickle.loads(pickle.dumps(OpenedOnce(scaled, note_and_open, Path("a"), 2)))
    assert (work.work, work.opener, work.key) == (scaled, note_and_open, (Path("a"), 2))


def scaled_by_others(thing: tuple[Path, int], batch: int) -> int:
    """Hands out work of its own, that opens something too."""
    work = OpenedOnce(scaled, note_and_open, thing[0] / "inner", thing[1])
    return sum(LocalEngine(1).results(work, [batch, batch]))


@pytest.mark.parametrize("jobs", [1, 2])
def test_work_that_hands_out_work_keeps_what_it_has_open(jobs: int, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    work = OpenedOnce(scaled_by_others, note_and_open, tmp_path, 3)
    assert list(LocalEngine(jobs).results(work, range(6))) == [6 * n for n in range(6)]
    openings = [path.name.partition("-")[0] for path in tmp_path.iterdir() if path.is_file()]
    assert len(openings) == len(set(openings)) <= jobs
    assert opened._kept == {}
