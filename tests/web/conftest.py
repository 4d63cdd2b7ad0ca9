"""What tests of the server share: a running application, and spectra for it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from mzseek.web.app import create_app
from mzseek.web.settings import Limits, ServerSettings

URL = "http://127.0.0.1"
CAFFEINE = "Cn1c(=O)c2c(ncn2C)n(C)c1=O"
PEAKS = [[42.0338, 10.0], [69.0447, 25.0], [110.0713, 40.0], [138.0662, 100.0]]
SPECTRUM: dict[str, Any] = {"peaks": PEAKS, "precursor_mz": 195.0877, "adduct": "[M+H]+"}
# So low that each can be passed by a short request.
LIMITS = Limits(
    body=200_000, spectra=3, job_spectra=40, peaks=50, candidates=5, smiles=100, seconds=30.0,
    jobs=4, rows=50,
)  # fmt: skip

Start = Callable[..., Any]


@contextmanager
def running(settings: ServerSettings) -> Iterator[TestClient]:
    with TestClient(create_app(settings), base_url=URL, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="session")
def measured() -> str:
    """A file with measured spectra, each of a feature of its own."""
    text = (files("mzseek.data") / "demo" / "queries.mgf").read_text("utf-8")
    return "END IONS\n".join(text.split("END IONS\n")[:30]) + "END IONS\n"


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client of a server with one worker, which all tests share that change no settings."""
    folder = tmp_path_factory.mktemp("server")
    with running(ServerSettings(data_dir=folder, workers=1, limits=LIMITS)) as client:
        yield client


@pytest.fixture
def idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Start a server whose workers never become ready: jobs and requests wait."""
    monkeypatch.setattr("mzseek.web.pool.Pool.start", _no_workers)
    return lambda **fields: running(
        ServerSettings(**{"data_dir": tmp_path, "workers": 1, "limits": LIMITS, **fields})
    )


async def _no_workers(pool: Any) -> None:
    """Start no worker."""


def submit(client: TestClient, text: str, name: str = "my.mgf", **more: Any) -> str:
    response = client.post("/api/v1/jobs", files=[("files", (name, text.encode()))], **more)
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def wait(client: TestClient, job: str, seconds: float = 60.0) -> dict[str, Any]:
    until = time.monotonic() + seconds
    while (found := client.get(f"/api/v1/jobs/{job}").json())["state"] in ("queued", "running"):
        assert time.monotonic() < until, found
        time.sleep(0.05)
    return dict(found)
