"""MassSpecGym from a small local server that speaks the hub's API, and from files at hand."""

import gzip
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mzseek.core.errors import BusyError, DatasetError
from mzseek.datasets.files import find_dataset
from mzseek.datasets.get import FILES, MOLECULES, REPOSITORY, get_massspecgym, get_molecules
from mzseek.datasets.prepare import prepare
from mzseek.io import sole_writer

from .conftest import MEASURED

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """What the server holds, and what was asked of it."""

    files: dict[str, bytes]
    downloads: list[str] = field(default_factory=list)
    address: str = ""


@pytest.fixture
def hub(write_set) -> Iterator[Hub]:
    written = write_set()
    paths = {"spectra": written.spectra, **written.candidates}
    hub = Hub(
        {name: paths[part].read_bytes() for of in FILES.values() for part, name in of.items()}
    )

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            prefix = f"/datasets/{REPOSITORY}/resolve/"
            revision, _, name = self.path.removeprefix(prefix).partition("/")
            content = hub.files.get(name)
            if content is None or revision not in {"main", COMMIT}:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command == "GET":
                hub.downloads.append(name)
                self.wfile.write(content)

        do_GET = do_HEAD

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield hub
        server.shutdown()


@pytest.mark.parametrize("version", FILES)
def test_download_then_prepare(hub: Hub, tmp_path: Path, version: str) -> None:
    files = get_massspecgym(tmp_path / "msg", version, endpoint=hub.address)
    assert sorted(hub.downloads) == sorted(FILES[version].values())
    assert files.spectra.read_bytes() == hub.files[FILES[version]["spectra"]]
    assert find_dataset(tmp_path / "msg") == files
    prepared, _ = prepare(files.spectra, files.candidates, tmp_path / "prepared")
    assert prepared.manifest["counts"]["measured_molecules"] == len(MEASURED)


def test_what_is_there_is_not_fetched_again(hub: Hub, tmp_path: Path) -> None:
    folder = tmp_path / "msg"
    folder.mkdir()
    names = FILES["1.5"]
    (folder / Path(names["spectra"]).name).write_bytes(hub.files[names["spectra"]])
    packed = gzip.compress(hub.files[names["mass"]])
    (folder / (Path(names["mass"]).name + ".gz")).write_bytes(packed)
    files = get_massspecgym(folder, "1.5", endpoint=hub.address)
    assert hub.downloads == [names["formula"]]
    assert files.candidates["mass"].suffix == ".gz"
    hub.downloads.clear()
    get_massspecgym(folder, "1.5", endpoint=hub.address)
    assert hub.downloads == []


def test_a_revision_can_be_pinned(hub: Hub, tmp_path: Path) -> None:
    get_massspecgym(tmp_path / "a", "1", endpoint=hub.address, revision=COMMIT)
    assert len(hub.downloads) == 3
    with pytest.raises(DatasetError, match="not received"):
        get_massspecgym(tmp_path / "b", "1", endpoint=hub.address, revision="f" * 40)


def test_a_file_that_the_hub_lacks(hub: Hub, tmp_path: Path) -> None:
    del hub.files[FILES["1.5"]["formula"]]
    with pytest.raises(DatasetError) as caught:
        get_massspecgym(tmp_path / "msg", "1.5", endpoint=hub.address)
    assert FILES["1.5"]["formula"] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_hub_at_all(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"put MassSpecGym1\.5\.tsv, .* into .* by hand"):
        get_massspecgym(tmp_path / "msg", "1.5", endpoint="http://127.0.0.1:9")


def test_unknown_version(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"'2' is unknown, expected one of: 1, 1\.5"):
        get_massspecgym(tmp_path, "2")


def test_one_download_at_a_time_and_none_where_all_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "gym"
    with (
        sole_writer(folder / "MassSpecGym", "downloading MassSpecGym"),
        pytest.raises(BusyError, match="another process is downloading MassSpecGym there"),
    ):
        get_massspecgym(folder, endpoint="http://127.0.0.1:9")
    assert list(tmp_path.iterdir()) == []
    for name in FILES["1.5"].values():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    with sole_writer(folder / "MassSpecGym", "downloading another version"):
        assert get_massspecgym(folder, "1.5").spectra == folder / FILES["1.5"]["spectra"]


def test_the_molecules_of_hard_negatives_are_fetched_once(hub: Hub, tmp_path: Path) -> None:
    hub.files[MOLECULES] = b"smiles\nCCO\n"
    for _ in range(2):
        path = get_molecules(tmp_path / "msg", endpoint=hub.address)
    assert path.read_bytes() == hub.files[MOLECULES]
    assert hub.downloads == [MOLECULES]
    files = get_massspecgym(tmp_path / "msg", endpoint=hub.address)
    assert find_dataset(tmp_path / "msg").spectra == files.spectra  # it is no table of spectra
