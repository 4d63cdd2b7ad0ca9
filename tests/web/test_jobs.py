"""Jobs: followed, downloaded, cancelled, expired; killed workers and servers lose none."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from starlette.testclient import TestClient

import mzseek as mz
from mzseek.cli.commands.serve import serve
from mzseek.client import Client, RefusedError
from mzseek.core.errors import MzseekError, ServerError
from mzseek.web.job_files import Lines, safe_name
from mzseek.web.settings import ServerSettings
from mzseek.web.store import Job, JobStore

from .conftest import CAFFEINE, LIMITS, PEAKS, running, submit, wait


def copies(number: int) -> str:
    """Make so many spectra of caffeine, under different names."""
    peaks = "\n".join(f"{mz} {height}" for mz, height in PEAKS)
    return "".join(
        f"BEGIN IONS\nTITLE=s{at}\nPEPMASS=195.0877\nADDUCT=[M+H]+\n{peaks}\nEND IONS\n"
        for at in range(number)
    )


def events_of(text: str) -> list[tuple[str, Any]]:
    blocks = [dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
              for block in text.strip().split("\n\n")]  # fmt: skip
    return [(block["event"], json.loads(block["data"])) for block in blocks if block]


def test_a_job_is_followed_and_downloaded(
    client: TestClient, measured: str, tmp_path: Path
) -> None:
    table = "row ID,row m/z\n1,195.0877\n"
    files = [
        ("files", ("../a <b>.mgf", measured.encode())),
        ("files", ("a <b>.mgf", copies(2).encode())),
        ("features", ("table.csv", table.encode())),
    ]
    response = client.post("/api/v1/jobs", files=files, data={"options": '{"top": 3}'})
    job, page = response.json()["id"], response.json()["url"]
    assert page == f"/jobs/{job}"
    events = events_of(client.get(f"/api/v1/jobs/{job}/events").text)
    assert events[-1] == ("end", {"state": "done", "error": None})
    found = wait(client, job)
    number = found["progress"]["total"]
    assert found["summary"]["counts"]["features"] == number == found["progress"]["done"]
    assert set(found["summary"]["routine"]) <= set(found["summary"]["messages"])
    assert found["files"] == ["a _b_.mgf", "a _b_-2.mgf", "table.csv"]
    results = [data for name, data in events if name == "result"]
    listed = client.get(f"/api/v1/jobs/{job}/rows?limit=50").json()
    assert (listed["rows"], listed["total"]) == (results, number)
    assert client.get(f"/api/v1/jobs/{job}/rows?offset=2&limit=1").json()["rows"] == results[2:3]
    again = client.get(f"/api/v1/jobs/{job}/events", headers={"last-event-id": str(number - 1)})
    assert [data for name, data in events_of(again.text) if name == "result"] == results[-1:]
    drawing = client.get(f"/api/v1/jobs/{job}/features/1").json()
    assert drawing["name"] == results[1]["name"]

    for name in found["formats"]:
        download = client.get(f"/api/v1/jobs/{job}/results/{name}")
        assert download.status_code == 200
        assert download.headers["content-disposition"].startswith("attachment")
        assert download.content
    expected = {"summary", "tsv", "peaks", "skipped", "json", "mztab", "html", "features", "run"}
    assert set(found["formats"]) == expected | {"zip"}
    archive = zipfile.ZipFile(io.BytesIO(client.get(f"/api/v1/jobs/{job}/results/zip").content))
    assert {"annotations/report.html", "annotations/run.json"} <= set(archive.namelist())
    assert client.get(f"/api/v1/jobs/{job}/results/graphml").json()["error"]["code"] == (
        "no_such_format"
    )
    assert client.get(f"/api/v1/jobs/{job}/features/99").json()["error"]["code"] == (
        "no_such_feature"
    )
    assert client.post(f"/api/v1/jobs/{job}/cancel").json()["error"]["code"] == "already_ended"
    assert client.delete(f"/api/v1/jobs/{job}").status_code == 204
    assert client.get(f"/api/v1/jobs/{job}").json()["error"]["code"] == "no_such_job"


def test_a_job_that_cannot_be_done_says_why(client: TestClient) -> None:
    many = wait(client, submit(client, copies(41)))
    assert (many["state"], many["error"]["code"]) == ("failed", "too_many_spectra")
    other = wait(client, submit(client, "no spectra", "x.dat"))
    assert (other["state"], other["error"]["code"]) == ("failed", "unsupported_format")
    assert other["error"]["message"].startswith("x.dat: ")
    broken = wait(client, submit(client, "BEGIN IONS\nPEPMASS=0\n1 1\nEND IONS\n"))
    assert (broken["state"], broken["error"]["code"]) == ("failed", "bad_spectrum")
    assert "my.mgf" in broken["error"]["message"]


def test_candidates_of_a_job(client: TestClient) -> None:
    files = [
        ("files", ("a.mgf", copies(1).encode())),
        ("candidates", ("mine.csv", f"smiles\n{CAFFEINE}\n".encode())),
    ]
    response = client.post("/api/v1/jobs", files=files, data={"options": '{"strict": true}'})
    job = response.json()["id"]
    found = wait(client, job)
    assert (found["state"], found["files"]) == ("done", ["a.mgf", "mine.csv"])
    assert "--database mine.csv" in found["command"]
    (feature,) = client.get(f"/api/v1/jobs/{job}/results/json").json()
    assert [candidate["smiles"] for candidate in feature["candidates"]] == [CAFFEINE]
    files[1] = ("candidates", ("none.smi", b"not a molecule\n"))
    failed = wait(client, client.post("/api/v1/jobs", files=files).json()["id"])
    assert failed["error"]["message"].startswith("none.smi: ")  # and says nothing of the server


@pytest.mark.parametrize(
    ("data", "files", "code"),
    [
        ({"options": "{"}, ["files"], "invalid"),
        ({"options": '{"database": "../x"}'}, ["files"], "unknown_database"),
        ({"options": '{"ppm": "wide"}'}, ["files"], "bad_option"),
        ({"options": '{"adduct": ["[M+Q]+"]}'}, ["files"], "bad_adduct"),
        ({"options": '{"scores": "/etc/passwd"}'}, ["files"], "invalid"),
        ({}, ["candidates"], "invalid"),
    ],
)
def test_jobs_that_are_refused(
    client: TestClient, data: dict[str, str], files: list[str], code: str
) -> None:
    uploads = [(name, ("a.mgf", b"BEGIN IONS\nEND IONS\n")) for name in files]
    response = client.post("/api/v1/jobs", files=uploads, data=data)
    assert (response.status_code, response.json()["error"]["code"]) == (422, code)


def test_limits_on_jobs(idle: Any, measured: str, tmp_path: Path) -> None:
    with idle() as client:
        for _ in range(4):
            job = submit(client, measured)
        response = client.post("/api/v1/jobs", files=[("files", ("a", b"x"))])
        assert (response.status_code, response.json()["error"]["code"]) == (429, "too_many_jobs")
        cancelled = client.post(f"/api/v1/jobs/{job}/cancel").json()
        assert cancelled["state"] == "cancelled"
        response = client.get(f"/api/v1/jobs/{job}/results/zip")
        assert (response.status_code, response.json()["error"]["code"]) == (409, "not_finished")
    with idle(quota=10) as client:  # the same jobs are there again
        response = client.post("/api/v1/jobs", files=[("files", ("a", b"x"))])
        assert response.json()["error"]["code"] == "quota_exceeded"
        assert client.get(f"/api/v1/jobs/{job}").json()["state"] == "cancelled"


def test_a_job_keeps_the_database_and_libraries_that_it_was_submitted_with(
    idle: Any, tmp_path: Path
) -> None:
    table = tmp_path / "mine.csv"
    table.write_text(f"smiles\n{CAFFEINE}\n")
    databases = {"mine.csv": str(table), "bundled": None}
    with idle(databases=databases, libraries={"refs": "/lab/refs"}) as client:
        found = client.get(f"/api/v1/jobs/{submit(client, copies(1))}").json()
        assert found["options"] == {"database": "mine.csv", "library": ["refs"]}
        assert found["command"] == (
            "mzseek annotate my.mgf --database mine.csv --library refs --out answers"
        )
        options = {"options": '{"database": "bundled", "library": []}'}
        found = client.get(f"/api/v1/jobs/{submit(client, copies(1), data=options)}").json()
        assert found["command"] == "mzseek annotate my.mgf --out answers"


def test_a_restart_removes_only_uploads_that_were_cut_off(idle: Any, tmp_path: Path) -> None:
    with idle() as client:
        job = submit(client, copies(1))
    cut, foreign = tmp_path / "jobs" / ("x" * 32), tmp_path / "jobs" / "my thesis"
    for folder in (cut, foreign):
        (folder / "inputs").mkdir(parents=True)
    with idle() as client:
        assert client.get(f"/api/v1/jobs/{job}").json()["state"] == "queued"
    assert sorted(path.name for path in (tmp_path / "jobs").iterdir()) == sorted([job, "my thesis"])


def test_jobs_expire_and_leave_nothing(idle: Any, measured: str, tmp_path: Path) -> None:
    with idle(retention=0.0) as client:
        job = submit(client, measured)
        assert (tmp_path / "jobs" / job).is_dir()
        client.post(f"/api/v1/jobs/{job}/cancel")
        client.portal.call(client.app.state.services.jobs.look_after)
        assert client.get(f"/api/v1/jobs/{job}").status_code == 404
        assert list((tmp_path / "jobs").iterdir()) == []


@pytest.mark.slow
def test_a_killed_worker_loses_no_job_and_makes_no_result_twice(tmp_path: Path) -> None:
    text = copies(20)
    with running(ServerSettings(data_dir=tmp_path, workers=1, limits=LIMITS)) as client:
        pool = client.app.state.services.pool
        job = submit(client, text)
        while client.get(f"/api/v1/jobs/{job}/rows").json()["total"] < 3:
            time.sleep(0.02)
        os.kill(pool._workers[0].process.pid, signal.SIGKILL)
        found = wait(client, job)
        assert found["state"] == "done"
        assert pool.restarts == 1
        assert sum(found["summary"]["levels"].values()) == 20
        names = [feature["feature"] for feature in results(client, job)]
    assert names == [f"s{at}" for at in range(20)]


@pytest.mark.slow
def test_a_worker_that_is_killed_at_a_request_is_replaced(tmp_path: Path) -> None:
    limits = {**vars(LIMITS), "seconds": 0.05}
    settings = ServerSettings(data_dir=tmp_path, workers=1, limits=type(LIMITS)(**limits))
    with running(settings) as client:
        for seconds in (0.0005, 30.0):
            object.__setattr__(settings.limits, "seconds", seconds)
            body = {"peaks": [[138.0662, 1.0]], "precursor_mz": 195.0877}
            response = client.post("/api/v1/annotate", json=body)
            if seconds < 1:
                assert response.json()["error"]["code"] == "timeout"
            else:
                assert response.status_code == 200


@contextlib.contextmanager
def served(folder: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    command = [sys.executable, "-m", "mzseek", "serve", "--data-dir", str(folder), "--port", "0",
               "--workers", "1"]  # fmt: skip
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().split()[3]
        yield server, url
    finally:
        server.kill()
        server.wait()


@pytest.mark.slow
def test_a_cluster_annotates_large_jobs_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.setattr("mzseek.web.jobs._SMALL_JOB", 5_000)
    context = ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    address = context.address_info["gcs_address"]
    limits = replace(LIMITS, job_spectra=100)
    text = copies(70)
    try:
        made = []
        for cluster in (None, address):
            folder = tmp_path / str(len(made))
            settings = ServerSettings(data_dir=folder, limits=limits, cluster=cluster)
            with running(settings) as client:
                job = submit(client, text, data={"options": '{"top": 2}'})
                small = submit(client, copies(1))
                assert [wait(client, id, 200)["state"] for id in (small, job)] == ["done", "done"]
                made.append(client.get(f"/api/v1/jobs/{job}/results/tsv").content)
    finally:
        ray.shutdown()
    assert made[0] == made[1]


def test_a_cluster_needs_an_address_and_two_workers() -> None:
    pytest.importorskip("ray")
    with pytest.raises(ServerError, match="--address"):
        serve(engine="ray")
    with pytest.raises(ServerError, match="--workers 1, expected 2"):
        serve(engine="ray", address="head:6379", workers=1)
    with pytest.raises(MzseekError, match="engine 'local' has no address"):
        serve(address="head:6379")


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    monkeypatch.setattr("mzseek.web.jobs._SMALL_JOB", 5_000)
    limits = replace(LIMITS, job_spectra=100)
    settings = ServerSettings(data_dir=tmp_path, limits=limits, cluster="127.0.0.1:1")
    with running(settings) as client:
        job = wait(client, submit(client, copies(70)), 200)
    assert (job["state"], job["error"]["code"]) == ("failed", "unavailable")


@pytest.mark.slow
def test_a_killed_server_loses_no_job(tmp_path: Path) -> None:
    (tmp_path / "s.mgf").write_text(copies(30))
    data = tmp_path / "data"
    with served(data) as (_, url):
        client = Client(url)
        jobs = [client.submit([tmp_path / "s.mgf"], top=top) for top in (3, 4)]
        until = time.monotonic() + 120
        while not client.rows(jobs[0]) and time.monotonic() < until:
            time.sleep(0.05)
        partial = client.job(jobs[0])
        assert partial["state"] == "running"
    with served(data) as (server, url):
        with urlopen(f"{url}health") as response:
            assert json.load(response)["status"] in ("loading", "ready")
        client = Client(url)
        ended = [client.wait(job, 120) for job in jobs]
        assert [job["state"] for job in ended] == ["done", "done"]
        file = client.download(jobs[0], "json", tmp_path / "found.json")
        found = json.loads(file.read_text())
        assert [feature["feature"] for feature in found] == [f"s{at}" for at in range(30)]
        with pytest.raises(RefusedError, match="no job") as refused:
            client.job("unknown")
        assert (refused.value.status, refused.value.code) == (404, "no_such_job")
        (feature,) = client.annotate([(138.0662, 1.0)], 195.0877, adduct="[M+H]+")
        (ranked,) = client.formulas([(138.0662, 1.0)], 195.0877, adduct="[M+H]+", top=2)
        assert len(ranked["formulas"]) == 2
        assert feature["candidates"]
        client.delete(jobs[1])
        server.send_signal(signal.SIGTERM)
        _, log = server.communicate(timeout=20)
    assert jobs[0] not in log
    assert "s.mgf" not in log


def results(client: TestClient, job: str) -> list[Any]:
    return list(client.get(f"/api/v1/jobs/{job}/results/json").json())


def test_a_job_uses_the_isotope_patterns_of_its_feature_table(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = copies(1).replace("TITLE=s0", "FEATURE_ID=17")
    table = "row ID,row m/z,isotopes\n17,195.0877,195.0877:1000 196.0907:98\n"
    (tmp_path / "my.mgf").write_text(text)
    (tmp_path / "table.csv").write_text(table)
    files = [("files", ("my.mgf", text.encode())), ("features", ("table.csv", table.encode()))]
    response = client.post("/api/v1/jobs", files=files)
    job = response.json()["id"]
    found = wait(client, job)
    assert "--features table.csv" in found["command"]
    monkeypatch.chdir(tmp_path)
    mz.annotate("my.mgf", features="table.csv").save("python.json")
    expected = json.loads((tmp_path / "python.json").read_text())
    assert results(client, job) == expected
    assert expected[0]["formulas"][0]["isotopeScore"] is not None


def test_lines_of_a_growing_file(tmp_path: Path) -> None:
    path, lines = tmp_path / "rows.jsonl", Lines()
    path.write_text('{"a":1}\n{"a":2}\n{"a"')
    assert lines.read("j", path, 1, 5) == ([{"a": 2}], 2)
    path.write_text('{"a":1}\n{"a":2}\n{"a":3}\n')
    assert lines.read("j", path, 2, 5) == ([{"a": 3}], 3)
    path.write_text('{"a":9}\n')  # cut by a job that was resumed
    assert lines.read("j", path, 0, 5) == ([{"a": 9}], 1)


@pytest.mark.parametrize(
    "name", ["..", "/etc/passwd", "a\x00b", "COM\\x", "." * 300, "-rf", "\u202egfm.mgf", ""]
)
def test_names_of_uploads_are_no_paths(name: str, tmp_path: Path) -> None:
    safe = safe_name(name, "file")
    assert (tmp_path / safe).resolve().parent == tmp_path.resolve()
    assert safe.isprintable()
    assert not safe.startswith(("-", "."))


def test_the_store_moves_a_job_once(tmp_path: Path) -> None:
    store = JobStore(tmp_path / "jobs.sqlite")
    job = Job(
        "a", None, "queued", 0.0, None, 1.0, {"top": 1}, ["x"], "c", 5, 0, None, 0, None, None
    )
    store.add(job)
    assert store.get("a") == job
    assert store.move("a", ["queued"], "running")
    assert not store.move("a", ["queued"], "cancelled")
    assert (store.counts(), store.bytes()) == ({"running": 1}, 5)
    assert store.expired(2.0) == []
