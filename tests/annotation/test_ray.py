"""Annotation on a Ray cluster: the bytes of one process, also where a worker is lost."""

import os
import platform
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mzseek.annotation.annotator import Annotator, open_on_node
from mzseek.annotation.config import AnnotateConfig, Tolerance
from mzseek.core.errors import AnnotationError
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.prepared_queries import spectra_from
from mzseek.export.job import annotate_files
from mzseek.parallel import LocalEngine, RayEngine
from mzseek.spectra import write_mgf
from mzseek.version import PACKAGES, versions

VERSIONS = tuple(versions(*PACKAGES).items())


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A Ray cluster of two workers on this machine."""
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.fixture
def config(bundle_folder: Path, small_set, make_library, tmp_path: Path) -> AnnotateConfig:
    """Candidates of a file and a library, of which other processes get no temporary copies."""
    prepared = Prepared.open(small_set.folder)
    listed = tmp_path / "list.smi"
    listed.write_text("".join(f"{text}\n" for text in prepared.smiles[: prepared.base_molecules]))
    library = make_library([("CCCCCCCC(=O)O", "[M+H]+", [57.0699, 85.1012], [1.0, 0.5])])
    wide = Tolerance(1000.0)
    return AnnotateConfig(
        model=bundle_folder, database=listed, library=library, ppm=wide, coverage=0.5
    )


class Deadly(RayEngine):
    """A cluster on which the worker that gets the second batch is killed at the first try."""

    def __init__(self, marker: Path) -> None:
        super().__init__(2)
        self.marker = marker

    def results(self, work, batches):
        marker = self.marker

        def task(numbered):
            number, batch = numbered
            if number == 1 and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return work(batch)

        yield from super().results(task, enumerate(batches))


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_a_lost_worker_costs_its_batch_and_the_bytes_are_those_of_one_process(
    config, small_set, tmp_path, monkeypatch
):
    monkeypatch.setattr("mzseek.annotation.annotator._BATCH", 2)
    monkeypatch.setattr("mzseek.annotation.annotator.MIN_FEATURES", 4)
    mgf = tmp_path / "many.mgf"
    write_mgf(mgf, spectra_from(Prepared.open(small_set.folder), np.arange(8)))
    written = []
    engines = (LocalEngine(1), RayEngine(1), Deadly(tmp_path / "killed"))
    for number, engine in enumerate(engines):
        out = tmp_path / f"{number}.json"
        annotate_files([mgf], out, config, engine=engine)
        written.append(out.read_bytes())
    assert (tmp_path / "killed").exists()
    assert written[1:] == written[:1] * 2


def test_what_a_node_lacks_is_named(config, tmp_path):
    key = Annotator(config).key
    assert open_on_node(config, key, VERSIONS).key == key
    with pytest.raises(AnnotationError, match=rf"on node {platform.node()} is another one"):
        open_on_node(config, "another", VERSIONS)
    other = (("numpy", "0.1"),)
    with pytest.raises(AnnotationError, match=rf"node {platform.node()} has numpy .* 0\.1: insta"):
        open_on_node(config, key, other)
    Path(str(config.database)).unlink()
    with pytest.raises(AnnotationError, match=r"list\.smi: is not on node .* by the same path"):
        open_on_node(config, key, VERSIONS)
