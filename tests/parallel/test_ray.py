import os
import signal
from pathlib import Path

import pytest

from mzseek.core.errors import ClusterError, MzseekError
from mzseek.database import Database, build_database
from mzseek.database import build as parts
from mzseek.database.negatives import Truth, mine
from mzseek.database.sources import file_sources
from mzseek.parallel import Channel, Engine, LocalEngine, RayEngine, engine_named

from ..molecules import MOLECULES

RAY = pytest.mark.slow  # a cluster takes seconds to start


def test_ray_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MzseekError, match=r"needs ray: pip install 'mzseek\[cluster\]'"):
        list(RayEngine().results(len, ["a"]))


def test_engines_by_name() -> None:
    assert isinstance(engine_named("local", 3), LocalEngine)
    ray = engine_named("ray", 3, "somewhere:6379")
    assert isinstance(ray, RayEngine)
    assert (ray.jobs, ray.address) == (3, "somewhere:6379")
    with pytest.raises(MzseekError, match="engine 'dask' is unknown, expected one of: local, ray"):
        engine_named("dask")
    with pytest.raises(MzseekError, match="engine 'local' has no address"):
        engine_named("local", address="somewhere:6379")


def test_a_cluster_that_is_not_there_is_named() -> None:
    pytest.importorskip("ray")
    with pytest.raises(ClusterError, match=r"no Ray cluster at 127\.0\.0\.1:1: "):
        list(RayEngine(address="127.0.0.1:1").results(len, ["a"]))


@pytest.fixture
def molecules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(parts, "BATCH", 10)
    monkeypatch.setattr(parts, "CHUNK", 40)
    path = tmp_path / "molecules.smi"
    path.write_text("\n".join(MOLECULES[:200]))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def mined(database: Database, engine: Engine) -> list[tuple]:
    table = database.query("SELECT mass, formula, key, fingerprint FROM molecules")
    truths = [Truth(number, *row.values()) for number, row in enumerate(table.to_pylist())]
    return [(each.number, each.rows.tobytes(), each.similarities.tobytes(), each.total)
            for each in mine(database, truths, keep=8, ppm=2e4, engine=engine)]  # fmt: skip


@RAY
@pytest.mark.usefixtures("cluster")
def test_a_build_and_its_negatives_on_a_cluster_are_those_of_this_process(
    molecules: Path, tmp_path: Path
) -> None:
    sources = file_sources([molecules])
    here = build_database(sources, tmp_path / "here", engine=LocalEngine(1))
    there = build_database(sources, tmp_path / "there", engine=RayEngine())
    assert contents(there.folder) == contents(here.folder)
    assert mined(there, RayEngine()) == mined(here, LocalEngine(1))


class Deadly(RayEngine):
    """A cluster on which the worker that gets the sixth batch is killed at the first try."""

    def __init__(self, marker: Path) -> None:
        super().__init__(2)
        self.marker = marker

    def results(self, work, batches):
        marker = self.marker

        def task(numbered):
            number, batch = numbered
            if number == 5 and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return work(batch)

        yield from super().results(task, enumerate(batches))


@RAY
@pytest.mark.usefixtures("cluster")
def test_a_killed_worker_does_not_change_the_results(molecules: Path, tmp_path: Path) -> None:
    sources = file_sources([molecules])
    here = build_database(sources, tmp_path / "here", engine=LocalEngine(1))
    there = build_database(sources, tmp_path / "there", engine=Deadly(tmp_path / "killed"))
    assert (tmp_path / "killed").exists()
    assert contents(there.folder) == contents(here.folder)


@RAY
@pytest.mark.usefixtures("cluster")
def test_a_cluster_that_runs_is_left_running() -> None:
    import ray

    assert list(RayEngine().results(len, ["a", "bb"])) == [1, 2]
    assert ray.is_initialized()


@RAY
@pytest.mark.usefixtures("cluster")
def test_long_work_whose_worker_is_killed_is_done_by_another(tmp_path: Path) -> None:
    def dies_once(batch: int, channel: Channel) -> int:
        channel.say(f"began {batch}")
        if batch == 1 and not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return batch

    lines: list[str] = []
    assert list(RayEngine(2).long_results(dies_once, range(3), say=lines.append)) == [0, 1, 2]
    assert {"began 0", "began 1", "began 2"} == set(lines)
