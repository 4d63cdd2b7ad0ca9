"""GPUs of a sweep, on machines without any: devices are counted as a test says."""

import os
import time
from pathlib import Path

import pytest
import torch

from mzseek.core.errors import ExperimentError, MzseekError
from mzseek.experiments import devices
from mzseek.experiments.devices import engine_and_devices, gpu_devices, take_device
from mzseek.experiments.sweep import plan_jobs, run_jobs
from mzseek.parallel import LocalEngine, RayEngine

from .test_sweep import plan


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of four GPUs and a process that has none of them yet."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)


@pytest.mark.usefixtures("four")
def test_jobs_follow_the_gpus_and_each_is_one_that_may_be_used(monkeypatch) -> None:
    assert gpu_devices() == ["0", "1", "2", "3"]
    assert (gpu_devices(2), gpu_devices(0)) == (["0", "1"], [])
    with pytest.raises(ExperimentError, match="--gpus 5: there are 4 on this machine"):
        gpu_devices(5)
    for jobs, gpus, expected in ((None, None, 4), (None, 2, 2), (1, None, 1), (9, 3, 3)):
        engine, used = engine_and_devices("local", jobs, None, gpus)
        assert (engine.jobs, len(used)) == (expected, gpus or 4)
    engine, used = engine_and_devices("local", None, None, 0)
    assert (engine.jobs, used) == (os.cpu_count(), [])
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    engine, used = engine_and_devices("local", None, None, None)
    assert (engine.jobs, used) == (os.cpu_count(), None)  # nothing is hidden from this process
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")  # as a scheduler gives them
    assert gpu_devices() == ["2", "3"]
    engine, used = engine_and_devices("ray", None, "auto", 2)
    assert (isinstance(engine, RayEngine), engine.gpus, used) == (True, 2, None)


def device_of_worker(names: tuple[str, ...], channel: object) -> tuple[int, str]:
    """Take a device, and stay for as long as another worker needs to take its own."""
    take_device(names)
    take_device(names)  # another job of the same process keeps it
    time.sleep(0.5)
    return os.getpid(), os.environ["CUDA_VISIBLE_DEVICES"]


@pytest.mark.slow
def test_each_process_has_a_device_of_its_own(tmp_path: Path) -> None:
    names = (f"{tmp_path.name}-a", f"{tmp_path.name}-b")
    found = list(LocalEngine(2).long_results(device_of_worker, [names] * 6))
    by_process = {process: {device for p, device in found if p == process} for process, _ in found}
    assert sorted(by_process.values(), key=str) == [{names[0]}, {names[1]}]


def test_where_all_are_taken_that_is_told(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(devices, "_taken", [])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "before")
    lock = devices.sole_writer(Path(devices.tempfile.gettempdir()) / "mzseek-gpu-x", "testing")
    with lock, pytest.raises(ExperimentError, match="GPUs x: other processes train on all of them"):
        take_device(["x"])
    take_device(None)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "before"
    take_device([])  # none is to be used
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.slow
def test_a_ray_cluster_of_two_gpus_gives_two_trials_different_ones(
    two, site, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray", reason="needs mzseek[cluster]")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    jobs = plan_jobs([plan(two, "bce"), plan(two, "emb-cos")], site)
    ray.init(num_cpus=2, num_gpus=2, include_dashboard=False, log_to_driver=False)
    try:
        outcomes = run_jobs(jobs, engine=RayEngine())
        assert sorted((outcome.failed, outcome.device) for outcome in outcomes) == [
            ("", "0"), ("", "1")
        ]  # fmt: skip
        with pytest.raises(MzseekError, match="--gpus 3: the Ray cluster has 2"):
            run_jobs(jobs, engine=RayEngine(gpus=3))
    finally:
        ray.shutdown()
